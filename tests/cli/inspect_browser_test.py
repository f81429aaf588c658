"""A model's page in headless Chromium: no error, and what its script does.

Needs Debian's chromium (tools/setup.sh --python-tests), or CHROMIUM; without
one it exits with 77 (skipped), unless SEQCONV_PYTHON_REQUIRED=1.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from inspect_test import EVIL, Page, inspected

SKIPPED = 77
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
# Points at the middle of each figure, as a person would, and notes what is said.
POINTING = """
<script nonce="seqconv">
addEventListener("load", () => {
  const said = [];
  for (const svg of document.querySelectorAll("svg[data-kind]")) {
    const box = svg.querySelector(".plot").getBoundingClientRect();
    svg.dispatchEvent(new PointerEvent("pointermove", {
      bubbles: true, clientX: box.x + box.width * 0.4,
      clientY: box.y + box.height * 0.4}));
    const tip = document.getElementById("tip");
    said.push(tip.hidden ? "(nothing)" : tip.textContent);
  }
  const list = document.createElement("ol");
  list.id = "said";
  for (const text of said) {
    const item = document.createElement("li");
    item.textContent = text;
    list.append(item);
  }
  document.body.append(list);
  parent.postMessage(document.documentElement.scrollWidth, "*");
});
</script>
"""


# A window has a least width, which is wider than a phone's; a frame has none.
PHONE = """<!DOCTYPE html>
<iframe src="pointing.html" width="360" height="800" style="border:0"></iframe>
<p id="width"></p>
<script>
addEventListener("message", event => {
  document.getElementById("width").textContent = event.data;
});
</script>
"""


def opened(page, *flags):
    """The page's elements and the browser's messages once its script has run."""
    done = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu",
         "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update",
         f"--user-data-dir={support.scratch() / 'chromium'}",
         "--enable-logging=stderr", "--log-level=0",
         "--virtual-time-budget=5000", *flags, page.as_uri()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout.decode(), done.stderr.decode("utf-8", "replace")


class PageInChromium(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = inspected("--text", EVIL, "--run", support.language_model(),
                         name="browser.html")
        path = support.scratch() / "pointing.html"
        path.write_text(text.replace("</main>", "</main>" + POINTING, 1),
                        encoding="utf-8")
        cls.dom, cls.messages = opened(path, "--dump-dom",
                                       "--window-size=1200,900")
        cls.page = Page(cls.dom)

    def test_the_console_has_no_error(self):
        console = re.findall(r".*CONSOLE.*", self.messages)
        self.assertEqual(console, [])

    def test_the_elements_are_there(self):
        for section in ("training", "cross-attention", "encoder", "decoder"):
            self.assertEqual(len(self.page.all("section", id=section)), 1)
        self.assertGreater(len(self.page.all("svg", **{"class": "map"})), 10)

    def test_a_sentence_with_a_script_does_not_run(self):
        title = re.search(r"<title>(.*?)</title>", self.dom)[1]
        self.assertEqual(title, "Model model")
        self.assertIn("broken", self.dom)  # as text

    def test_pointing_at_a_figure_says_its_numbers(self):
        said = re.search(r'<ol id="said">(.*?)</ol>', self.dom, re.S)[1]
        items = re.findall(r"<li>(.*?)</li>", said, re.S)
        figures = len(self.page.all("svg", **{"data-kind": "line"}) +
                      self.page.all("svg", **{"data-kind": "map"}) +
                      self.page.all("svg", **{"data-kind": "windows"}))
        self.assertEqual(len(items), figures)
        self.assertNotIn("(nothing)", items)
        self.assertRegex(items[0], r"model, training: [\d.]+ at \d+")
        maps = [item for item in items if "\u2192" in item]
        self.assertRegex(maps[0], r"layer 1, .*\n.* \u2192 .*\n0\.\d{3}$")
        self.assertTrue(any("to the left, 0.00 to the right" in item
                            for item in items))

    def test_a_phone_shows_it_without_scrolling_sideways(self):
        phone = support.scratch() / "phone.html"
        phone.write_text(PHONE, encoding="utf-8")
        dom, _ = opened(phone, "--dump-dom")
        self.assertLessEqual(
            int(re.search(r'<p id="width">(\d+)</p>', dom)[1]), 360)

    def test_it_draws_itself_as_a_picture(self):
        picture = support.scratch() / "page.png"
        opened(support.scratch() / "browser.html", f"--screenshot={picture}",
               "--window-size=1200,900")
        self.assertEqual(picture.read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    if CHROMIUM is None:
        print("there is no chromium: tools/setup.sh --python-tests installs it")
        required = os.environ.get("SEQCONV_PYTHON_REQUIRED") == "1"
        sys.exit(1 if required else SKIPPED)
    unittest.main(verbosity=2)
