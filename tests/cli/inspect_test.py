"""A model's page from outside: what is in it, and that its numbers are right."""

import html
import json
import math
import os
import pathlib
import re
import shutil
import sys
import unittest
import xml.dom.minidom
from html.parser import HTMLParser

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from support import run

SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
EVIL = "1 <script>document.title='broken'</script> \"2\" & '3'"


class Page(HTMLParser):
    """Elements with attributes, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data.strip())

    def all(self, tag, **wanted):
        return [
            found for name, found in self.elements
            if name == tag and all(found.get(key) == value
                                   for key, value in wanted.items())
        ]

    def names(self, identity):
        (element,) = self.all("i", id=identity)
        return json.loads(element["data-list"])


def numbers(svg):
    """What a map's element holds, in rows."""
    signs = svg["data-v"]
    values = [
        (SIGNS.index(a) * 64 + SIGNS.index(b) - 2048) / 2047
        * float(svg["data-full"]) for a, b in zip(signs[::2], signs[1::2])
    ]
    return values


def inspected(*arguments, model=None, name="page.html"):
    path = support.scratch() / name
    result = run("inspect", "--model", model or support.model(),
                 "--output", path, *arguments)
    if result.code != 0:
        raise AssertionError(result.message)
    return path.read_text(encoding="utf-8")


class InspectedModel(unittest.TestCase):
    def test_a_page_shows_curves_kernels_windows_and_attention(self):
        page = Page(inspected("--text", "1 2 3"))
        self.assertEqual(page.names("source"), ["1", "2", "3", "</s>"])
        written = page.names("written")
        self.assertEqual(written.index("</s>"), len(written) - 1)
        self.assertEqual(page.names("read"), ["</s>", *written[:-1]])
        titles = [text for text in page.texts if text.startswith("Layer ")]
        self.assertIn("Layer 2: lightconv, 2 heads, 3 positions wide", titles)
        self.assertIn("Layer 2: talk, 2 heads, reach of at most 3", titles)
        charts = [svg["data-id"] for svg in page.all("svg", **{"data-kind": "line"})]
        self.assertEqual(charts[0], "nll_base2")
        self.assertIn("learning_rate", charts)
        # Encoder: 3 maps of dynamicconv, 1 of lightconv. Decoder: 3 of
        # dynamicconv, windows of talk. 3 of the look at the source in 2 layers.
        self.assertEqual(len(page.all("svg", **{"data-kind": "map"})), 13)
        self.assertEqual(len(page.all("svg", **{"data-kind": "windows"})), 3)

    def test_attention_and_kernels_sum_to_one(self):
        page = Page(inspected("--text", "4 5 6 7"))
        for svg in page.all("svg", **{"data-kind": "map"}):
            width = len(page.names(svg["data-columns"]))
            values = numbers(svg)
            self.assertEqual(len(values),
                             width * len(page.names(svg["data-rows"])))
            for start in range(0, len(values), width):
                total = math.fsum(values[start:start + width])
                self.assertAlmostEqual(total, 1, delta=0.01, msg=svg["data-name"])

    def test_windows_stay_within_reach_and_sentence(self):
        page = Page(inspected("--text", "4 5 6 7"))
        for svg in page.all("svg", **{"data-kind": "windows"}):
            values = numbers(svg)
            for t, (left, right) in enumerate(zip(values[::2], values[1::2])):
                self.assertTrue(-1e-3 <= left <= min(3, t) + 1e-3, (t, left))
                self.assertEqual(round(right, 3), 0)

    def test_without_a_sentence_there_are_the_kernels_alone(self):
        page = Page(inspected())
        self.assertEqual(len(page.all("svg", **{"data-kind": "map"})), 1)
        self.assertEqual(page.all("svg", **{"data-kind": "windows"}), [])
        said = "They depend on the sentence: give one by --text."
        self.assertEqual(page.texts.count(said), 3)

    def test_a_language_model_has_no_source(self):
        page = Page(inspected("--text", "eins zwei",
                              model=support.language_model()))
        self.assertEqual(page.all("section", id="cross-attention"), [])
        self.assertEqual(page.all("section", id="encoder"), [])
        self.assertEqual(page.names("read")[:5], ["</s>", "e", "i", "n", "s"])
        self.assertEqual(len(page.all("svg", **{"data-kind": "map"})), 4)

    def test_no_text_becomes_markup(self):
        text = inspected("--text", EVIL)
        page = Page(text)
        self.assertEqual(len(page.all("script")), 1)
        self.assertNotIn("<script>", text)
        self.assertIn(EVIL, page.texts)

    def test_runs_stand_side_by_side(self):
        other = support.copy_model("run <b>")
        page = Page(inspected("--run", other))
        loss = page.all("svg", **{"data-id": "nll_base2"})[0]
        names = [name for name, _, _ in json.loads(loss["data-series"])]
        self.assertEqual(names, [
            "model, training", "model, validation", "run <b>, training",
            "run <b>, validation"])
        records = [json.loads(line) for line in
                   (other / "training/metrics.jsonl").read_text().splitlines()]
        wanted = [[r["update"], r["nll_base2"]] for r in records
                  if r["kind"] == "train"]
        _, updates, values = json.loads(loss["data-series"])[0]
        self.assertEqual(updates, [update for update, _ in wanted])
        for value, (_, right) in zip(values, wanted):
            self.assertAlmostEqual(value, right, delta=1e-4)

    def test_a_model_without_its_run_says_so(self):
        silent = support.copy_model("imported")
        shutil.rmtree(silent / "training")
        page = Page(inspected(model=silent))
        self.assertTrue(any("There are no curves" in text
                            for text in page.texts))
        (silent / "training").mkdir()
        (silent / "training/metrics.jsonl").write_text(
            '{"kind":"start","update":0}\n')
        page = Page(inspected(model=silent))
        self.assertTrue(any("holds no record" in text for text in page.texts))

    def test_damaged_lines_are_told_of_twice(self):
        torn = support.copy_model("torn")
        with open(torn / "training/metrics.jsonl", "a") as log:
            log.write('{"kind":"tra')
        path = support.scratch() / "torn.html"
        result = run("inspect", "--model", torn, "--output", path)
        self.assertEqual(result.code, 0)
        self.assertIn("1 line is no record", result.message)
        notes = path.read_text(encoding="utf-8")
        self.assertIn("1 line is no record", html.unescape(notes))

    def test_curves_are_files_too(self):
        folder = support.scratch() / "curves"
        result = run("inspect", "--model", support.model(), "--run",
                     support.language_model(), "--format", "svg",
                     "--output", folder)
        self.assertEqual(result.code, 0, result.message)
        names = sorted(path.name for path in folder.iterdir())
        self.assertEqual(names, [
            "gradient_norm.svg", "learning_rate.svg", "nll_base2.svg",
            "target_tokens_per_second.svg"])
        for path in folder.iterdir():
            drawing = xml.dom.minidom.parse(os.fspath(path))
            self.assertEqual(drawing.documentElement.tagName, "svg")
            self.assertGreater(
                len(drawing.getElementsByTagName("path")), 4, path)

    def test_the_page_refers_to_nothing_outside(self):
        text = inspected("--text", "1")
        self.assertEqual(re.findall(r"https?:|//\w|@import|url\(", text), [])
        page = Page(text)
        self.assertEqual([tag for tag, found in page.elements
                          if "src" in found], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
