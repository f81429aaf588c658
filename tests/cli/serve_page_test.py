"""The page of `seqconv serve` in headless Chromium: what it shows, and what it lets no model do.

Without Chromium (browser.py) only its files are tested, and it exits with 77 (skipped), unless
SEQCONV_PYTHON_REQUIRED=1.
"""

import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from browser import CHROMIUM, SKIPPED, Browser
from serve_support import FOLDERS, Server

ASSETS = support.ROOT / "src" / "serve" / "assets"
FILES = sorted(path for path in ASSETS.iterdir() if path.suffix != ".json")
MODELS = ["--model", f"de-en={FOLDERS / 'translation_1'}",
          "--model", f"en-ar={FOLDERS / 'translation_2'}",
          "--language-model", f"tales={FOLDERS / 'language_1'}"]
EVIL = "<img src=x onerror=document.title='broken'>"

# It learns to give back a few lines, so that its translations are what one types.
COPIES = """\
[data]
train_source = "{data}/copies"
train_target = "{data}/copies"
valid_source = "{data}/copies"
valid_target = "{data}/copies"

[text]
subword = "none"

[model]
dim = 32
ffn_dim = 32
dropout = 0.0

[model.encoder]
layers = 1
block = "lightconv"
kernel_sizes = 3
heads = 2

[model.decoder]
layers = 1
block = "lightconv"
kernel_sizes = 3
heads = 2

[batching]
max_tokens = 400

[training]
max_updates = 200
log_every = 100
threads = 1
device = "cpu"

[schedule]
learning_rate = 0.02
warmup_updates = 10
"""


@support.once
def copier():
    """A model that copies some lines, that with a script among them."""
    folder = support.scratch() / "copies"
    folder.mkdir()
    lines = [EVIL, "a b c", "b a", "c c a", f"<p> {EVIL} </p>"]
    (folder / "copies").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    path = folder / "copies.toml"
    path.write_text(COPIES.format(data=folder), encoding="utf-8")
    return support.trained("copier", path)


def fetched(url, **headers):
    """Status, headers and body of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def posted(url, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class Serving(unittest.TestCase):
    """A server for the tests of a class, and a browser."""

    arguments = MODELS
    needs_browser = True

    @classmethod
    def setUpClass(cls):
        if cls.needs_browser and CHROMIUM is None:
            raise unittest.SkipTest("there is no chromium")
        cls.url = cls.enterClassContext(Server(*cls.arguments)).url + "/"
        if cls.needs_browser:
            cls.browser = Browser()
            cls.addClassCleanup(cls.browser.close)

    def opened(self, place="#translate?source=de&target=en", url=None):
        tab = self.browser.tab()
        tab.look(1200)
        tab.go((url or self.url) + place)
        tab.wait("document.querySelector('nav [aria-current]')")
        return tab

    def translated(self, tab, text):
        """Types a text, and gives its translation once it is there."""
        tab.type("#q", text)
        tab.wait(f"document.getElementById('q').value.endsWith({json.dumps(text)})")
        return tab.wait("document.getElementById('translation').ariaBusy === 'false' && "
                        "document.getElementById('translation').textContent")

    def assert_quiet(self, tab):
        self.assertEqual(tab.complaints(), [])


class Files(Serving):
    needs_browser = False

    def test_they_are_small_and_name_no_other_host(self):
        self.assertLessEqual(sum(path.stat().st_size for path in FILES), 60_000)
        for path in FILES:
            text = path.read_text(encoding="utf-8")
            text = text.replace("http://www.w3.org/2000/svg", "")
            self.assertNotRegex(text, r"https?:|//[a-z0-9-]+\.[a-z]", path.name)
            self.assertNotRegex(text, r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval",
                                path.name)
        page = (ASSETS / "index.html").read_text(encoding="utf-8")
        self.assertNotRegex(page, r'<script(?! type="module" src=)|<style|\sstyle=|\son[a-z]+=')
        self.assertNotRegex(page, r'(src|href)="/')

    def test_each_is_served_with_its_type_and_a_policy(self):
        types = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
                 ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
        for path in FILES:
            address = self.url + ("" if path.name == "index.html" else "assets/" + path.name)
            status, headers, body = fetched(address)
            self.assertEqual((status, body), (200, path.read_bytes()), path.name)
            self.assertEqual(headers["Content-Type"], types[path.suffix])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
            self.assertEqual(headers["Cache-Control"], "no-cache")
            policy = headers["Content-Security-Policy"]
            self.assertTrue(policy.startswith("default-src 'none'; script-src 'self';"), policy)
            self.assertNotIn("unsafe", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            again, headers, body = fetched(address, **{"If-None-Match": headers["ETag"]})
            self.assertEqual((again, body, headers["Content-Length"]), (304, b"", None))

    def test_other_names_are_not_there(self):
        for name in ("openapi.json", "", "..%2Fservice.cpp", "page", "index.html/x", ".."):
            self.assertEqual(fetched(self.url + "assets/" + name)[0], 404, name)
        self.assertEqual(fetched(self.url + "assets")[0], 404)

    def test_alignments_are_ranges_of_code_points(self):
        text = "\U0001F600 dalan pelim.\r\n\nmira zo"
        read = text.replace("\r\n", "\n")
        call = {"source": "de", "target": "en", "alignments": True}
        one = posted(self.url + "translate", q=text, **call)
        self.assertGreater(len(one["alignments"]), 0)
        for pair in one["alignments"]:
            for side, own in (("source", read), ("target", one["translatedText"])):
                begin, end = pair[side]
                self.assertRegex(own[begin:end], r"^(\w+|[^\w\s])$")
        several = posted(self.url + "translate", q=["", text], **call)
        self.assertEqual(several["alignments"], [[], one["alignments"]])
        html = posted(self.url + "translate", q="<b>dalan</b> mira", format="html", **call)
        self.assertEqual(html["alignments"], [])
        none = posted(self.url + "translate", q=text, source="de", target="en")
        self.assertNotIn("alignments", none)

    def test_inspecting_gives_symbols_and_weights(self):
        found = posted(self.url + "inspect", q="dalan pelim mira", source="de", target="en")
        symbols = found["symbols"]
        self.assertEqual(symbols["source"][-1], "</s>")
        self.assertEqual(symbols["read"][1:], symbols["written"][:-1])
        for layer in found["encoder"] + found["decoder"]:
            weights = layer["weights"]
            size = weights["rows"] * weights["heads"] * weights["width"]
            self.assertEqual(len(weights["values"]), size)
        self.assertEqual({layer["weights"]["form"] for layer in found["encoder"]},
                         {"fixedTaps", "reach"})
        for weights in found["crossAttention"]:
            self.assertEqual((weights["rows"], weights["width"]),
                             (len(symbols["written"]), len(symbols["source"])))
        long = posted(self.url + "inspect", q="zo " * 200, source="de", target="en")
        self.assertEqual(len(long["symbols"]["source"]), 101)
        self.assertIn("200 symbols, of which the first 100", long["notes"][0])
        empty = posted(self.url + "inspect", q="", source="de", target="en")
        self.assertEqual(empty["symbols"]["source"], ["</s>"])


class Translating(Serving):
    def test_what_is_typed_becomes_its_translation(self):
        tab = self.opened()
        text = "dalan pelim mira. zo so!"
        found = self.translated(tab, text)
        answer = posted(self.url + "translate", q=text, source="de", target="en", alternatives=3)
        self.assertEqual(found, answer["translatedText"])
        others = tab.value("[...document.querySelectorAll('#others li')].map(e => e.textContent)")
        self.assertEqual(others, answer["alternatives"])
        self.assertEqual(tab.text("#count"), f"{len(text)} / 100000")
        self.assertEqual(tab.value("document.getElementById('translation').lang"), "en")
        self.assertEqual(tab.value("document.title"), "Translate – seqconv")
        self.assert_quiet(tab)

    def test_only_the_last_of_quick_changes_is_asked_for(self):
        tab = self.opened()
        tab.wait("document.getElementById('count').textContent")
        for letter in "dalan":
            tab.type("#q", letter)
        self.translated(tab, " mira")
        asked = [json.loads(event["request"]["postData"])["q"]
                 for event in tab.events("Network.requestWillBeSent")
                 if event["request"]["url"].endswith("translate/stream")]
        self.assertEqual(asked, ["dalan mira"])
        self.assert_quiet(tab)

    def test_a_word_shows_what_it_came_from(self):
        tab = self.opened()
        self.translated(tab, "dalan pelim mira")
        near = "document.querySelectorAll('#mirror .near').length"
        tab.move("#translation .word")
        tab.wait(near)
        self.assertIn(" ← ", tab.text("#pair"))
        tab.move("h1")
        tab.wait(f"{near} === 0")
        tab.value("document.getElementById('translation').focus()")
        tab.press("ArrowRight")
        self.assertEqual(tab.text("#translation .at"), tab.text("#translation .word"))
        self.assertGreater(tab.value(near), 0)
        tab.press("End")
        words = tab.value("[...document.querySelectorAll('#translation .word')].at(-1).textContent")
        self.assertEqual(tab.text("#translation .at"), words)
        tab.move("#mirror .word")
        tab.wait("document.querySelectorAll('#mirror .at').length")
        self.assertIn(" → ", tab.text("#pair"))
        rows = tab.value("document.querySelectorAll('#pairs tbody tr').length")
        self.assertEqual(rows, tab.value("document.querySelectorAll('#translation .word').length"))
        self.assert_quiet(tab)

    def test_html_is_shown_in_an_empty_sandbox_and_as_its_source(self):
        tab = self.opened()
        tab.click("[name=format][value=html]")
        found = self.translated(tab, "<p>dalan <b>mira</b></p><script>top.document.title=1</script>")
        self.assertIn("<b>", found)
        frame = tab.value("(() => { const f = document.querySelector('iframe'); return "
                          "[f.hidden, f.getAttribute('sandbox'), f.srcdoc]; })()")
        self.assertEqual(frame, [False, "", found])
        end = time.monotonic() + 20
        while tab.colours("iframe") < 20:  # letters
            self.assertLess(time.monotonic(), end, "the frame stays white")
            time.sleep(0.1)
        self.assertEqual(tab.value("document.title"), "Translate – seqconv")

    def test_languages_are_chosen_kept_in_the_address_and_swapped(self):
        tab = self.opened("")
        tab.wait("document.getElementById('source').options.length === 3")
        tab.value("(() => { const s = document.getElementById('source'); s.value = 'en';"
                  "s.dispatchEvent(new Event('change')); })()")
        self.assertEqual(tab.value("location.hash"), "#translate?source=en&target=ar")
        self.translated(tab, "dalan")
        self.assertEqual(tab.value("document.getElementById('translation').dir"), "rtl")
        self.assertTrue(tab.value("document.getElementById('swap').disabled"))
        tab.value("location.hash = '#inspect?source=de&target=en'")
        tab.wait("document.getElementById('source').value === 'de'")
        self.assertTrue(tab.value("document.getElementById('translate').hidden"))
        self.assert_quiet(tab)

    def test_a_server_without_detection_offers_none(self):
        with prefixed(self.url, detectsLanguages=False) as url:
            tab = self.opened("#translate?source=auto&target=en", url)
            codes = tab.value("[...document.getElementById('source').options].map(o => o.value)")
            self.assertEqual(codes, ["de", "en"])
            self.assertEqual(tab.value("document.getElementById('source').value"), "de")
            self.assertTrue(self.translated(tab, "dalan mira"))
            self.assert_quiet(tab)

    def test_a_language_is_detected(self):
        tab = self.opened("#translate?source=auto&target=en")
        self.translated(tab, "der Hund")
        self.assertEqual(tab.text("#detected"), "Detected: German")

    def test_faults_are_said(self):
        tab = self.opened()
        tab.value("window.fetch = () => Promise.reject(new TypeError('no'))")
        tab.type("#q", "dalan")
        tab.wait("document.getElementById('error').textContent === 'The server cannot be reached.'")

    def test_it_fits_a_narrow_phone(self):
        for view in "translate", "inspect", "write":
            tab = self.opened(f"#{view}?source=de&target=en")
            tab.look(320)
            if view == "inspect":
                tab.type("#sentence", "dalan pelim mira zo")
                tab.press("Enter")
                tab.click("#inspect-form button")
                tab.wait("document.querySelector('#layers svg')")
            self.assertLessEqual(tab.value("document.documentElement.scrollWidth"), 320, view)

    def test_it_works_below_a_path(self):
        with prefixed(self.url) as url:
            tab = self.opened(url=url)
            self.assertTrue(self.translated(tab, "dalan mira"))
            self.assert_quiet(tab)


class Copying(Serving):
    """A model that copies what could do harm."""

    @classmethod
    def setUpClass(cls):
        cls.arguments = ["--model", f"aa-bb={copier()}"]
        super().setUpClass()

    def test_a_script_stays_text(self):
        tab = self.opened("#translate?source=aa&target=bb")
        self.assertEqual(self.translated(tab, EVIL), EVIL)
        for view in "inspect", "translate":
            tab.click(f"#view-{view}")
            tab.wait(f"!document.getElementById('{view}').hidden")
            if view == "inspect":
                tab.click("#inspect-form button")
                tab.wait("document.querySelector('#layers details')")
                tab.click("#layers summary")
                self.assertIn("<img", tab.value("document.getElementById('layers').textContent"))
            self.assertEqual(tab.value("document.images.length"), 0)
        self.assertEqual(tab.value("document.title"), "Translate – seqconv")
        self.assert_quiet(tab)

    def test_a_script_of_html_does_not_run(self):
        tab = self.opened("#translate?source=aa&target=bb")
        tab.click("[name=format][value=html]")
        escaped = EVIL.replace("<", "&lt;").replace(">", "&gt;")
        found = self.translated(tab, f"<p>{escaped}</p>{EVIL.replace('document', 'top.document')}")
        self.assertIn("&lt;img", found)
        tab.wait("document.querySelector('iframe').srcdoc.includes('&lt;img')")
        self.assertEqual(tab.value("document.images.length"), 0)
        self.assertEqual(tab.value("document.title"), "Translate – seqconv")


class Inspecting(Serving):
    def test_kernels_windows_and_attention_are_drawn_and_told(self):
        tab = self.opened("#inspect?source=de&target=en")
        tab.type("#sentence", "dalan pelim mira")
        tab.click("#inspect-form button")
        tab.wait("document.getElementById('inspect-status').textContent === 'Shown below.'")
        titles = tab.value("[...document.querySelectorAll('#layers h3, #layers h4')]"
                           ".map(e => e.textContent)")
        for title in ("Cross-attention", "Encoder", "Decoder"):
            self.assertIn(title, titles)
        self.assertIn("Layer 1: lightconv, 2 heads, 3 positions wide", titles)
        drawn = tab.value("document.querySelectorAll('#layers svg path').length")
        self.assertGreater(drawn, 10)
        tab.click("#layers summary")
        sums = tab.wait(
            "[...document.querySelectorAll('#layers table tr')].slice(1).map(row => "
            "[...row.querySelectorAll('td')].reduce((sum, td) => sum + Number(td.textContent), 0))")
        for total in sums:  # attention
            self.assertAlmostEqual(total, 1, delta=0.01)
        tab.move("#layers svg g")
        tab.wait("document.querySelector('.says').textContent.includes('→')")
        self.assert_quiet(tab)

    def test_a_sentence_that_is_too_long_is_cut_and_words_say_so(self):
        tab = self.opened("#inspect?source=de&target=en")
        tab.type("#sentence", "zo " * 200)
        tab.click("#inspect-form button")
        tab.wait("document.getElementById('layers').textContent.includes('the first 100')")
        self.assert_quiet(tab)


class Writing(Serving):
    def test_a_text_is_written_and_can_be_stopped(self):
        tab = self.opened("#write")
        tab.type("#prompt", "dalan")
        tab.value("document.getElementById('length').value = 20")
        tab.click("#begin")
        tab.wait("document.getElementById('write-status').textContent.startsWith('Done: ')")
        self.assertTrue(tab.text("#written").startswith("dalan"))
        self.assertGreater(len(tab.text("#written")), len("dalan"))
        tab.value("document.getElementById('length').value = 2000")
        tab.value("document.getElementById('begin').click();"
                  "document.getElementById('stop').click()")
        tab.wait("document.getElementById('write-status').textContent === 'Stopped.'")
        self.assert_quiet(tab)


class WithKeys(Serving):
    @classmethod
    def setUpClass(cls):
        made = subprocess.run([support.PROGRAM, "serve", "--new-key", "anna"],
                              capture_output=True, check=True, text=True)
        keys = support.scratch() / "keys"
        keys.write_text(made.stdout, encoding="utf-8")
        cls.key = re.search(r": (\w{64})$", made.stderr.strip())[1]
        cls.arguments = [*MODELS[:2], "--keys", keys, "--require-key"]
        super().setUpClass()

    def test_the_page_asks_for_a_key_and_keeps_it_for_the_tab(self):
        tab = self.opened("")
        tab.wait("!document.getElementById('key-form').hidden")
        self.assertTrue(tab.value("document.getElementById('view-write').hidden"))
        tab.type("#key", "wrong")
        tab.click("#key-form button")
        tab.type("#q", "dalan mira")
        tab.wait("document.getElementById('error').textContent === 'Invalid API key'")
        tab.wait("!document.getElementById('key-form').hidden")
        tab.type("#key", self.key)
        tab.click("#key-form button")
        tab.wait("document.getElementById('translation').textContent")
        self.assertEqual(tab.text("#error"), "")
        kept = tab.value("[localStorage.length, document.cookie, Object.values(sessionStorage)]")
        self.assertEqual(kept, [0, "", [self.key]])


class prefixed:
    """A proxy that has the server below a path, with other settings where some are given."""

    def __init__(self, url, **settings):
        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self):
                if not self.path.startswith("/some/path/"):
                    return self.send_error(404)
                length = int(self.headers.get("Content-Length", 0))
                request = urllib.request.Request(
                    url + self.path.removeprefix("/some/path/"),
                    self.rfile.read(length) if length else None,
                    {"Content-Type": self.headers.get("Content-Type", "")})
                with urllib.request.urlopen(request) as answer:
                    body = answer.read()
                    if self.path.endswith("frontend/settings"):
                        body = json.dumps(json.loads(body) | settings).encode()
                    self.send_response(answer.status)
                    for name in "Content-Type", "Content-Security-Policy":
                        if answer.headers[name]:
                            self.send_header(name, answer.headers[name])
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            do_GET = do_POST = handle_any

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}/some/path/"

    def __exit__(self, *arguments):
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    done = unittest.main(verbosity=2, exit=False)
    if CHROMIUM is None and done.result.wasSuccessful():
        print("there is no chromium: tools/setup.sh --python-tests installs it")
        required = os.environ.get("SEQCONV_PYTHON_REQUIRED") == "1"
        sys.exit(1 if required else SKIPPED)
    sys.exit(not done.result.wasSuccessful())
