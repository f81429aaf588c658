"""The server from outside: LibreTranslate's interface, streams, keys, limits, faults, ends."""

import concurrent.futures
import functools
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from serve_exchanges import EXCHANGES, T
from serve_support import FOLDERS, Server, events, wait_until
from support import PROGRAM

DE_EN, EN_DE, BOOK = FOLDERS / "translation_1", FOLDERS / "translation_2", FOLDERS / "language_1"
MODELS = {"de-en": DE_EN, "en-de": EN_DE, "pt-BR:en": DE_EN, "zh-Hans:en": DE_EN,
          "de-fr": DE_EN, "en-fr": EN_DE}  # fmt: skip
ASKED = {"q": "dalan mira", "source": "de", "target": "en"}
# Nothing of this model ends before its longest.
LONG = {"q": ". ".join(["Dalan mira zo " * 20] * 40), "source": "de", "target": "en"}


class TestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="seqconv-serve-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


def models(*names):
    return [flag for name in names for flag in ("--model", f"{name}={MODELS[name]}")]


@functools.cache
def translated(pair, sentence):
    """The translation of the program, with nothing beside it."""
    run = subprocess.run([PROGRAM, "translate", "--model", MODELS[pair], "--quiet"],
                         input=sentence + "\n", capture_output=True, text=True, check=True)
    return run.stdout.removesuffix("\n")


def is_right(answer, wanted):
    """True for an answer that is what a row of the table says."""
    if callable(wanted):
        return wanted(answer)
    if isinstance(wanted, T):
        return answer == translated(*wanted)
    if isinstance(wanted, dict):
        return set(answer) == set(wanted) and all(is_right(answer[k], v) for k, v in wanted.items())
    if isinstance(wanted, list) and isinstance(answer, str):  # parts of a text
        return answer == "".join(translated(*p) if isinstance(p, T) else p for p in wanted)
    if isinstance(wanted, list):
        return len(answer) == len(wanted) and all(map(is_right, answer, wanted))
    return answer == wanted


class Interface(TestCase):
    def test_every_exchange_of_the_table(self):
        self.assertGreaterEqual(len(EXCHANGES), 50)
        flags = ["--language-model", f"book={BOOK}", "--max-characters", 2000, "--max-items", 8,
                 "--max-length", 1000, "--allowed-host", "translate.example"]
        with Server(*models(*MODELS), *flags) as server:
            for name, request, status, wanted in EXCHANGES:
                with self.subTest(name):
                    got, answer = server.exchange(request)
                    self.assertEqual(got, status, answer)
                    self.assertTrue(is_right(answer, wanted), answer)
            self.assertEqual(server.end(), 0)
            self.assertNotIn("error", server.message)

    def test_a_stream_tells_sentences_in_order_and_all_at_the_end(self):
        text = "Dalan mira. Mira zo!\n\nZo dalan?"
        with Server(*models("de-en")) as server:
            asked = {"q": [text, "zo", ""], "source": "de", "target": "en"}
            status, whole = server.post("/translate", **asked)
            self.assertEqual(status, 200)
            status, headers, body = server.request(
                "POST", "/translate/stream", json.dumps(asked),
                {"Content-Type": "application/json"})
            self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
            parts, end = events(body)[:-1], events(body)[-1]
            self.assertEqual(end, ("done", whole))
            self.assertEqual([name for name, _ in parts], ["part"] * 5)
            for i, wanted in enumerate(whole["translatedText"]):
                told = [data["translatedText"] for _, data in parts if data["index"] == i]
                self.assertEqual("".join(told), wanted)
            status, answer = server.post("/translate/stream", source="de", target="en")
            self.assertEqual((status, list(answer)), (400, ["error"]))

    def test_a_language_model_writes_as_a_stream(self):
        with Server("--language-model", f"book={BOOK}") as server:
            asked = {"prompt": "1", "length": 20, "seed": 4}
            _, whole = server.post("/generate", **asked)
            _, _, body = server.request("POST", "/generate", json.dumps(asked | {"stream": True}),
                                        {"Content-Type": "application/json"})
            *parts, end = events(body)
            self.assertEqual(end, ("done", whole))
            self.assertEqual("".join(data["text"] for _, data in parts), whole["text"])

    def test_answers_are_the_same_whatever_is_beside_them(self):
        sentences = ["dalan mira", "zo", "mira mira zo", "dalan dalan", "zo dalan mira zo"]
        wanted = [translated("de-en", one) for one in sentences]
        with Server(*models("de-en"), "--max-wait-ms", 5) as server:
            def ask(i):
                one = i % len(sentences)
                _, answer = server.post("/translate", q=sentences[one], source="de", target="en")
                return answer["translatedText"] == wanted[one]
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                self.assertTrue(all(pool.map(ask, range(200))))


class Keys(TestCase):
    def new_key(self, name):
        run = subprocess.run([PROGRAM, "serve", "--new-key", name], capture_output=True, text=True,
                             check=True)
        key = re.search(r"kept anywhere: ([0-9a-f]{64})$", run.stderr.strip())[1]
        self.assertNotIn(key, run.stdout)
        return key, run.stdout.strip()

    def test_keys_are_asked_for_and_have_limits_of_their_own(self):
        (anna, line), (otto, other) = self.new_key("anna"), self.new_key("otto")
        file = self.folder / "keys"
        file.write_text(f"# keys\n{line} 3\n\n{other} # any number\n")
        with Server(*models("de-en"), "--keys", file, "--require-key") as server:
            status, answer = server.post("/translate", **ASKED)
            self.assertEqual(status, 400)
            self.assertIn("key", answer["error"])
            for wrong in ("x", anna[:-1], line.split()[1], anna.upper()):
                self.assertEqual(server.post("/translate", **ASKED, api_key=wrong)[0], 403)
            statuses = [server.post("/translate", **ASKED, api_key=anna)[0] for _ in range(4)]
            self.assertEqual(statuses, [200, 200, 200, 429])
            self.assertEqual({server.post("/translate", **ASKED, api_key=otto)[0]
                              for _ in range(9)}, {200})  # fmt: skip
            form = {"Authorization": f"Bearer {otto}"}
            self.assertEqual(server.request("POST", "/detect?q=zo", headers=form)[0], 200)
            self.assertEqual(server.request("GET", "/languages")[0], 200)
            self.assertTrue(json.loads(server.request("GET", "/frontend/settings")[2])
                            ["keyRequired"])  # fmt: skip
            # One more key, and one less.
            file.write_text(other + "\n")
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "anew" in server.message))
            self.assertEqual(server.post("/translate", **ASKED, api_key=anna)[0], 403)
            file.write_text("nonsense\n")
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: f"{file}:1: a line must be" in server.message))
            self.assertEqual(server.post("/translate", **ASKED, api_key=otto)[0], 200)

    def test_addresses_without_a_key_have_a_limit(self):
        with Server(*models("de-en"), "--requests-per-minute", 2) as server:
            answers = [server.request("POST", "/translate?q=zo&source=de&target=en")
                       for _ in range(3)]
            self.assertEqual([status for status, _, _ in answers], [200, 200, 429])
            self.assertIn(int(answers[2][1]["Retry-After"]), range(1, 31))
            self.assertEqual(server.request("GET", "/health")[0], 200)


class Safety(TestCase):
    def test_pages_of_other_origins_read_nothing_unless_told(self):
        page = {"Origin": "https://example.org"}
        with Server(*models("de-en")) as server:
            _, headers, _ = server.request("GET", "/languages", headers=page)
            self.assertFalse([name for name in headers if name.startswith("Access-Control")])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        with Server(*models("de-en"), "--cors", "https://example.org") as server:
            _, headers, _ = server.request("GET", "/languages", headers=page)
            self.assertEqual(headers["Access-Control-Allow-Origin"], "https://example.org")
            self.assertNotIn("Access-Control-Allow-Credentials", headers)
            self.assertEqual(headers["Vary"], "Origin")
            status, headers, _ = server.request("OPTIONS", "/translate", headers=page)
            self.assertEqual(status, 204)
            self.assertIn("Content-Type", headers["Access-Control-Allow-Headers"])
            _, headers, _ = server.request("GET", "/languages", headers={"Origin": "https://a.b"})
            self.assertNotIn("Access-Control-Allow-Origin", headers)
        with Server(*models("de-en"), "--cors", "*") as server:
            _, headers, _ = server.request("GET", "/languages", headers=page)
            self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
            self.assertNotIn("Access-Control-Allow-Credentials", headers)

    def test_log_and_metrics_tell_nothing_of_clients(self):
        log = self.folder / "log"
        flags = ["--access-log", log, "--metrics-port", free_port()]
        with Server(*models("de-en"), *flags) as server:
            server.request("POST", "/translate?q=secrettext&source=de&target=en&api_key=secretkey")
            server.request("GET", "/hidden/secretpath")
            self.assertTrue(wait_until(lambda: len(log.read_text().splitlines()) == 2))
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            self.assertEqual([line["path"] for line in lines], ["/translate", "/hidden/secretpath"])
            self.assertEqual([line["status"] for line in lines], [200, 404])
            self.assertEqual(set(lines[0]), {"time", "method", "path", "status", "request_bytes",
                                             "answer_bytes", "seconds"})  # fmt: skip
            port = server.ports["metrics"]
            status, _, text = server.request("GET", "/metrics", port=port)
            self.assertEqual(status, 200)
            self.assertIn(b'seqconv_requests_total{route="/translate",status="200"} 1\n', text)
            self.assertIn(b'seqconv_requests_total{route="other",status="404"} 1\n', text)
            self.assertIn(b'seqconv_translated_sentences_total{source="de",target="en"} 1\n', text)
            self.assertEqual(server.request("GET", "/metrics")[0], 404)
            for secret in (b"secrettext", b"secretkey", b"127.0.0.1"):
                self.assertNotIn(secret, text + log.read_bytes())
            log.rename(self.folder / "old")
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(wait_until(log.exists))

    def test_limits_of_bodies_and_headers(self):
        with Server(*models("de-en"), "--max-body-kb", 4) as server:
            big = json.dumps({"q": "x" * 5000, "source": "de", "target": "en"})
            status, _, body = server.request("POST", "/translate", big,
                                             {"Content-Type": "application/json"})
            self.assertEqual((status, "error" in json.loads(body)), (413, True))
            status, _, _ = server.request("GET", "/health", headers={"X-Long": "x" * 20_000})
            self.assertEqual(status, 431)
            # A gigabyte is refused by its length alone.
            with socket.create_connection(("127.0.0.1", server.port)) as raw:
                raw.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
                            b"Content-Length: 1000000000\r\n\r\n")
                self.assertIn(b" 413 ", raw.recv(100))
            self.assertLess(server.resident_bytes(), 100 << 20)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as other:
        return other.getsockname()[1]


class Models(TestCase):
    def test_models_are_opened_when_wanted_and_closed_when_idle(self):
        port = free_port()
        with Server(*models("de-en", "en-de"), "--keep-minutes", 0.01,
                    "--metrics-port", port) as server:  # fmt: skip
            def opened():
                text = server.request("GET", "/metrics", port=port)[2].decode()
                return re.findall(r'seqconv_model_open\{model="(.*)"\} 1', text)
            self.assertEqual(opened(), [])
            self.assertEqual(server.post("/translate", **ASKED)[0], 200)
            self.assertEqual(opened(), ["de-en"])
            self.assertTrue(wait_until(lambda: opened() == []))
            self.assertEqual(server.post("/translate", **ASKED)[0], 200)

    def test_terms_of_a_file_belong_to_a_model_and_are_read_anew(self):
        file = self.folder / "terms.tsv"
        file.write_text("mira\ttolu tolu\n")
        with Server(*models("de-en", "en-de"), "--terminology", f"de-en={file}") as server:
            def ask(**more):
                return server.post("/translate", **ASKED, **more)[1]["translatedText"]
            self.assertIn("tolu tolu", ask())
            own = ask(terms={"mira": "zo zo"})
            self.assertIn("zo zo", own)
            self.assertNotIn("tolu tolu", own)
            file.write_text("mira\tkebana kebana\n")
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: "kebana kebana" in ask()))

    def test_preload_opens_all(self):
        port = free_port()
        with Server(*models("de-en", "en-de"), "--preload", "--metrics-port", port) as server:
            text = server.request("GET", "/metrics", port=port)[2].decode()
            self.assertEqual(len(re.findall(r"seqconv_model_open\{.*\} 1", text)), 2)

    def test_a_replaced_folder_is_read_anew_without_a_lost_request(self):
        folder = self.folder / "model"
        shutil.copytree(DE_EN, folder)
        with Server("--model", f"de-en={folder}") as server:
            def ask(_):
                return server.post("/translate", **ASKED)
            before, after = translated("de-en", "dalan mira"), translated("en-de", "dalan mira")
            self.assertNotEqual(before, after)
            self.assertEqual(ask(0)[1]["translatedText"], before)
            shutil.copytree(EN_DE, self.folder / "new")
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = pool.map(ask, range(300))
                folder.rename(self.folder / "old")
                (self.folder / "new").rename(folder)
                server.process.send_signal(signal.SIGHUP)
                for status, answer in answers:
                    self.assertEqual(status, 200)
                    self.assertIn(answer["translatedText"], (before, after))
            self.assertTrue(wait_until(lambda: "anew" in server.message))
            self.assertEqual(ask(0)[1]["translatedText"], after)

    def test_a_damaged_model_fails_its_requests_and_no_others(self):
        folder = self.folder / "model"
        shutil.copytree(DE_EN, folder)
        with Server("--model", f"de-en={folder}", *models("en-de")) as server:
            (folder / "model.safetensors").write_bytes(b"nothing")
            status, answer = server.post("/translate", **ASKED)
            self.assertEqual(status, 500)
            self.assertNotIn(str(folder), answer["error"])
            self.assertTrue(wait_until(lambda: "model.safetensors" in server.message))
            self.assertEqual(server.post("/translate", q="zo", source="en", target="de")[0], 200)


class Ends(TestCase):
    def test_sigterm_answers_what_is_under_way(self):
        with Server(*models("de-en"), "--threads", 1) as server:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                answers = [pool.submit(server.post, "/translate", **LONG) for _ in range(4)]
                time.sleep(0.2)
                self.assertEqual(server.end(), 0)
                self.assertEqual([one.result()[0] for one in answers], [200] * 4)
            with self.assertRaises(ConnectionRefusedError):
                server.post("/translate", **ASKED)

    def test_the_longest_drain_cancels_the_rest(self):
        flags = ["--threads", 1, "--drain-seconds", 0.2, "--max-characters", 10_000_000]
        with Server(*models("de-en"), *flags) as server:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                asked = LONG | {"q": [LONG["q"]] * 100}
                answers = [pool.submit(server.post, "/translate", **asked) for _ in range(4)]
                time.sleep(0.5)
                self.assertFalse(any(one.done() for one in answers))
                start = time.monotonic()
                self.assertEqual(server.end(), 0)
                self.assertLess(time.monotonic() - start, 10)
                for one in answers:  # the connection ends without an answer
                    self.assertIsInstance(one.exception(), (OSError, http.client.HTTPException))

    def test_a_client_that_leaves_stops_its_work(self):
        port = free_port()
        flags = ["--threads", 1, "--max-waiting", 5000, "--max-characters", 10_000_000]
        with Server(*models("de-en"), *flags, "--metrics-port", port) as server:
            body = json.dumps(LONG | {"q": [LONG["q"]] * 100}).encode()
            head = (f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
                    f"\r\nContent-Length: {len(body)}\r\n\r\n")  # fmt: skip
            with socket.create_connection(("127.0.0.1", server.port)) as raw:
                raw.sendall(head.encode() + body)
                time.sleep(0.3)
            # The only thread is free for others.
            start = time.monotonic()
            self.assertEqual(server.post("/translate", **ASKED)[0], 200)
            self.assertLess(time.monotonic() - start, 5)

    def test_a_deadline_ends_a_request(self):
        flags = ["--threads", 1, "--timeout-seconds", 0.2, "--max-characters", 10_000_000]
        with Server(*models("de-en"), *flags) as server:
            status, answer = server.post("/translate", **(LONG | {"q": [LONG["q"]] * 30}))
            self.assertEqual((status, list(answer)), (503, ["error"]))
            self.assertEqual(server.post("/translate", **ASKED)[0], 200)

    def test_too_many_that_wait_are_refused(self):
        with Server(*models("de-en"), "--threads", 1, "--max-waiting", 50) as server:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda _: server.request(
                    "POST", "/translate", json.dumps(LONG), {"Content-Type": "application/json"}),
                    range(8)))  # fmt: skip
            statuses = {status for status, _, _ in answers}
            self.assertEqual(statuses, {200, 429})
            self.assertTrue(all(headers["Retry-After"] == "1" for status, headers, _ in answers
                                if status == 429))  # fmt: skip


class CommandLine(TestCase):
    def refuse(self, code, words, *flags):
        run = subprocess.run([PROGRAM, "serve", *map(str, flags)], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertIn(words, run.stderr)

    def test_terms_that_make_no_sense_are_refused_at_the_start(self):
        file = self.folder / "terms.tsv"
        file.write_text("mira\n")
        one = models("de-en")
        self.refuse(1, "terms.tsv:1: a term must be", *one, "--terminology", f"de-en={file}")
        self.refuse(1, "none.tsv", *one, "--terminology", f"de-en={self.folder}/none.tsv")
        self.refuse(2, "there is none of en-de", *one, "--terminology", f"en-de={file}")
        self.refuse(2, "SOURCE-TARGET=FILE", *one, "--terminology", file)

    def test_bad_command_lines(self):
        self.refuse(2, "--model SOURCE-TARGET=DIR")
        self.refuse(2, "must be SOURCE-TARGET=DIR", "--model", "de=x")
        self.refuse(1, "config.json", "--model", f"de-en={self.folder}")
        self.refuse(2, "named once", *models("de-en"), "--model", f"DE-en={EN_DE}")
        self.refuse(2, "port must be between", *models("de-en"), "--port", 70000)
        self.refuse(2, "require_key needs keys", *models("de-en"), "--require-key")
        self.refuse(1, "host must be an IP address", *models("de-en"), "--host", "here")
        self.refuse(1, "cannot read the keys", *models("de-en"), "--keys", self.folder / "none")
        self.refuse(2, "--new-key", "--new-key", "a b")
        with socket.create_server(("127.0.0.1", 0)) as other:
            self.refuse(1, "cannot listen at 127.0.0.1 port", *models("de-en"), "--port",
                        other.getsockname()[1])  # fmt: skip

    def test_a_file_of_options_and_flags_over_it(self):
        file = self.folder / "serve.toml"
        file.write_text(f'model = ["de-en={DE_EN}"]\nmax_characters = 5\nmax_items = 2\n')
        with Server("--config", file, "--max-items", 3) as server:
            settings = json.loads(server.request("GET", "/frontend/settings")[2])
            self.assertEqual(settings["charLimit"], 5)
            self.assertEqual(server.post("/translate", q=["a"] * 3, source="de", target="en")[0],
                             200)  # fmt: skip
        file.write_text('modle = ["x"]\n')
        self.refuse(2, "model", "--config", file)

    def test_nohup_keeps_hangups_away(self):
        with Server(*models("de-en")) as server:
            for _ in range(3):
                server.process.send_signal(signal.SIGHUP)
            self.assertEqual(server.post("/translate", **ASKED)[0], 200)
            self.assertEqual(server.end(signal.SIGINT), 0)


if __name__ == "__main__":
    unittest.main()
