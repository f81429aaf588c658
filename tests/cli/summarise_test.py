"""A summariser from JSON lines to scores: trained, run and judged by the
program alone, on a task whose right summaries are known. And what it does with
documents of each kind."""

import json
import os
import pathlib
import random
import sys
import time
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from support import run

WORDS = "tea milk bread rice salt fish plum corn".split()
NAMES = "Ann Bob Cid".split()
TAIL = 12  # tokens that the cut leaves of a dialogue

CONFIG = """\
[data]
train = "{folder}/train.jsonl"
valid = "{folder}/valid.jsonl"
source_key = "chat.lines"
target_key = "summary"
max_source_tokens = {tokens}

[text]
subword = "none"

[model]
norm = "pre"
dim = 64
ffn_dim = 128
dropout = 0.0
input_dropout = 0.0
weight_dropout = 0.0

[model.encoder]
layers = 2
block = "dynamicconv"
kernel_sizes = [9, 15]
heads = 4

[model.decoder]
layers = 2
block = "dynamicconv"
kernel_sizes = [3, 7]
heads = 4

[batching]
max_tokens = 1000

[training]
max_updates = 300
label_smoothing = 0.0
best_by = "exact"
validate_every = 100
threads = 1

[optimizer]
clip_norm = 1.0

[schedule]
kind = "cosine"
period = 200
learning_rate = 3e-3
warmup_updates = 100

[decoding]
beam = 2
stepwise_length_penalty = true
"""


def dialogue(generator):
    """Four lines of three tokens; what the marked ones say is the summary. A
    tail behind the cut, with marks too, has no part in it."""
    words = generator.sample(WORDS, 4)
    marked = sorted(generator.sample(range(4), generator.randint(1, 2)))
    lines = [" ".join([generator.choice(NAMES), "!" if i in marked else ":", word])
             for i, word in enumerate(words)]
    sentences = [words[i] + "." for i in marked]
    tail = ["Ann ! tea"] * generator.randint(0, 5)
    return {"id": generator.randint(0, 10**9),
            "chat": {"lines": "\n".join(lines + tail)},
            "summary": "\n".join(sentences)}


def write_task(folder):
    folder.mkdir()
    for name, count, seed in (("train", 20000, 1), ("valid", 200, 2),
                              ("test", 200, 3)):
        generator = random.Random(seed)
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(dialogue(generator)) + "\n"
                    for _ in range(count)), encoding="utf-8")


class Summaries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.scratch() / "marked"
        write_task(cls.folder)
        cls.config = cls.folder / "marked.toml"
        cls.config.write_text(
            CONFIG.format(folder=cls.folder, tokens=TAIL + 1), encoding="utf-8")
        cls.model = cls.folder / "model"
        start = time.monotonic()
        cls.training = run("train", cls.config, "--output", cls.model)
        cls.seconds = time.monotonic() - start
        cls.test = (cls.folder / "test.jsonl").read_bytes()
        cls.objects = [json.loads(line) for line in cls.test.splitlines()]

    def summarise(self, *flags, stdin=None, code=0):
        result = run("summarise", "--model", self.model, *flags,
                     stdin=self.test if stdin is None else stdin)
        self.assertEqual(result.code, code, result.message)
        return result

    def exact(self, output, *flags):
        """By `evaluate`, in percent."""
        file = self.folder / "output"
        file.write_bytes(output)
        result = run("evaluate", "exact", "--hypotheses", file, "--reference",
                     self.folder / "test.jsonl", "--reference-key", "summary",
                     *flags)
        self.assertEqual(result.code, 0, result.message)
        return float(result.lines[0])

    def test_marked_lines_are_found(self):
        self.assertEqual(self.training.code, 0, self.training.message)
        self.assertLess(self.seconds, 60)
        result = self.summarise()
        self.assertRegex(result.message, rf"\d+ input lines were cut to their "
                                         rf"first {TAIL + 1} tokens")
        exact = self.exact(result.out, "--hypothesis-key", "summary_text")
        print(f"{exact} % exact after {self.seconds:.1f} s of training",
              file=sys.stderr)
        self.assertGreaterEqual(exact, 95)
        text = self.summarise("--format", "text")
        self.assertIn(" \u2424 ", text.lines[0] + text.lines[1] + text.lines[2])
        self.assertEqual(self.exact(text.out), exact)

    def test_the_log_says_what_was_cut(self):
        self.assertRegex(self.training.message,
                         r"training data: 20000 pairs of 20000 \(0 with an empty "
                         r"side and 0 too long left out, \d{5} sources and 0 "
                         r"targets cut\)")

    def test_all_fields_come_back_before_the_summary(self):
        line = (b'{"n": 1.50, "summary_text": "old", "chat": {"lines": '
                b'"Ann ! tea milk\\nBob : fish fish", "a": 1e999}, "x": "\\u0041"}\n')
        out = self.summarise(stdin=line.replace(b"1e999", b"[7]")).lines[0]
        self.assertTrue(out.startswith(
            '{"n":1.50,"chat":{"lines":"Ann ! tea milk\\nBob : fish fish",'
            '"a":[7]},"x":"\\u0041","summary_text":"'), out)
        best = json.loads(out)["summary_text"]
        several = json.loads(
            self.summarise("--n-best", "2", stdin=line.replace(b"1e999", b"7"))
            .lines[0])["summary_text"]
        self.assertEqual(len(several), 2)
        self.assertEqual(several[0], best)

    def test_a_document_is_the_same_in_every_format(self):
        lines = [one["chat"]["lines"].split("\n") for one in self.objects[:20]]
        wanted = [json.loads(line)["summary_text"]
                  for line in self.summarise().lines[:20]]
        listed = self.summarise("--source-key", "a.b", stdin="".join(
            json.dumps({"a": {"b": one}}) + "\n" for one in lines))
        self.assertEqual(
            [json.loads(one)["summary_text"] for one in listed.lines], wanted)
        text = self.summarise("--input-format", "text", stdin="".join(
            " ".join(one) + "\n" for one in lines))
        self.assertEqual(
            [one.replace(" \u2424 ", "\n") for one in text.lines], wanted)
        stories = self.folder / "stories"
        stories.mkdir(exist_ok=True)
        for i, one in enumerate(lines):
            (stories / f"{i}.story").write_text(
                "\n\n".join(one) + "\n\n@highlight\n\nx y\n\n@highlight\n\nz\n")
        story = self.summarise(
            "--input-format", "story", "--stories", stories, "--format", "json",
            stdin="".join(f"{i}.story\n" for i in range(20)))
        found = [json.loads(line) for line in story.lines]
        self.assertEqual([one["summary_text"] for one in found], wanted)
        self.assertEqual(list(found[3]),
                         ["id", "article", "highlights", "summary_text"])
        self.assertEqual(found[3]["highlights"], "x y\nz")
        self.assertEqual(found[3]["article"], " ".join(lines[3]))

    def test_both_backends_cut_the_same(self):
        stdin = b"".join(line + b"\n" for line in self.test.splitlines()[:20])
        self.assertEqual(
            self.summarise(stdin=stdin).out,
            self.summarise("--backend", "libtorch", stdin=stdin).out)

    def test_an_empty_document_has_an_empty_summary(self):
        out = self.summarise(stdin=b'{"chat": {"lines": "\\n"}}\n').lines
        self.assertEqual(json.loads(out[0])["summary_text"], "")

    def test_a_line_that_fails_leaves_the_others(self):
        lines = self.test.splitlines(keepends=True)
        result = self.summarise(stdin=lines[0] + b"{}\n" + lines[1], code=1)
        good = self.summarise(stdin=lines[0] + lines[1]).lines
        self.assertEqual([result.lines[0], result.lines[2]], good)
        failed = json.loads(result.lines[1])
        self.assertEqual(failed["line"], 2)
        self.assertIn('there is no "chat.lines"', failed["error"])

    def test_lines_of_a_beginning_are_sentences(self):
        document = {"chat": {"lines": "Ann ! tea\nBob ! fish"}}
        found = [json.loads(line)["summary_text"] for line in self.summarise(stdin="".join(
            json.dumps({**document, "target_prefix": prefix}) + "\n" for prefix in (
                "rice.\nsalt.", "rice. \u2424 salt.", "rice.\r\n\n salt.", "rice. salt.",
                "rice.\n", "rice. \u2424"))).lines]
        self.assertEqual(found[0].split("\n")[0], "rice.")
        self.assertTrue(found[0].startswith("rice.\nsalt."), found[0])
        self.assertEqual(found[:3], [found[0]] * 3)
        self.assertTrue(found[3].startswith("rice. salt."), found[3])
        self.assertEqual(found[4], found[5])
        self.assertTrue(found[4].startswith("rice.\n"), found[4])

    def test_a_field_may_be_an_option_or_the_document(self):
        document = {"chat": {"lines": "Ann ! tea\nBob ! fish"}}
        one, several, failed, own = self.summarise(
            "--source-key", "chat.lines", code=1, stdin="".join(
                json.dumps({**document, **fields}) + "\n" for fields in (
                    {}, {"n_best": 2}, {"beam": "wide"}, {"error": 1, "line": 2}))).lines
        self.assertEqual(json.loads(several)["summary_text"][0], json.loads(one)["summary_text"])
        self.assertIn("beam must be a whole number", json.loads(failed)["error"])
        self.assertEqual(own, one)
        listed = self.summarise("--source-key", "beam", stdin=json.dumps(
            {"beam": document["chat"]["lines"]})).lines[0]
        self.assertEqual(json.loads(listed)["summary_text"], json.loads(one)["summary_text"])

    def test_info_says_how_documents_are_read(self):
        said = run("info", self.model).out.decode()
        for wanted in ("format_version: 5", f"text.max_source_tokens: {TAIL + 1}",
                       'documents.source_key: "chat.lines"'):
            self.assertIn(wanted, said)

    def test_a_score_is_that_of_the_cut_document(self):
        def score(source):
            for name, text in (("s", source), ("t", "tea.")):
                (self.folder / name).write_text(text + "\n")
            result = run("score", "--model", self.model, "--source",
                         self.folder / "s", "--target", self.folder / "t")
            self.assertEqual(result.code, 0, result.message)
            return result.lines[0]

        lines = "Ann ! tea " + "Bob : fish " * 4
        self.assertEqual(score(lines), score(lines + "Cid ! corn"))
        self.assertNotEqual(score(lines), score("Cid ! corn " + lines))

    def test_another_cut_or_key_cannot_be_resumed(self):
        for key in ("max_source_tokens=9", "source_key=id"):
            result = run("train", self.config, "--output", self.model,
                         "--resume", "--set", f"data.{key}")
            self.assertEqual(result.code, 2, result.message)
            self.assertIn(f"data.{key.split('=')[0]} was", result.message)

    def test_stories_train_as_their_json_does(self):
        stories = self.folder / "training-stories"
        stories.mkdir()
        (self.folder / "train.list").write_text(
            "".join(f"{i}\n" for i in range(50)))
        with open(self.folder / "fifty.jsonl", "w", encoding="utf-8") as file:
            for i, one in enumerate(self.objects[:50]):
                file.write(json.dumps(one) + "\n")
                (stories / f"{i}.story").write_text(
                    one["chat"]["lines"].replace("\n", "\n\n") + "".join(
                        f"\n\n@highlight\n\n{sentence}"
                        for sentence in one["summary"].split("\n")))
        scores = []
        for name, keys in (
            ("json", ["train=" + os.fspath(self.folder / "fifty.jsonl")]),
            ("stories", [f"train={self.folder / 'train.list'}",
                         f"stories={stories}", "source_key=", "target_key="]),
        ):
            flags = ["valid=[]", *keys]
            output = self.folder / f"of-{name}"
            result = run(
                "train", self.config, "--output", output,
                "--set", "training.max_updates=3",
                "--set", "training.validate_every=0",
                "--set", "training.best_by=loss",
                *(part for key in flags for part in ("--set", f"data.{key}")))
            self.assertEqual(result.code, 0, result.message)
            scores.append((output / "model.safetensors").read_bytes())
        self.assertEqual(scores[0], scores[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
