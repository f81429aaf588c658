"""fairseq's binarised data give what the text gives that they were made of."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import binarised
import support
from support import run

WRITERS = {"mapped": binarised.mapped, "cached": binarised.cached}


def symbols_of_characters(line):
    return " ".join("▁" if c == " " else c for c in line)


class Binarised(unittest.TestCase):
    """The validation pairs, with an empty line, as text and as ids."""

    @classmethod
    def setUpClass(cls):
        cls.folder = support.scratch() / "binarised"
        cls.folder.mkdir(exist_ok=True)
        cls.dictionary = support.model() / "dict.txt"
        ids = binarised.dictionary(cls.dictionary)
        cls.text, cls.files = {}, {}
        for side in ("src", "tgt"):
            lines = (support.data() / f"valid.{side}").read_text().splitlines()
            lines.insert(3, "")
            cls.text[side] = cls.folder / f"valid.{side}"
            cls.text[side].write_text("".join(l + "\n" for l in lines))
            for name, write in WRITERS.items():
                cls.files[name, side] = write(
                    cls.folder / f"{name}.{side}", binarised.encode(lines, ids))

    def same(self, wanted, found):
        self.assertEqual((found.code, wanted.code), (0, 0), found.message)
        self.assertEqual(found.out, wanted.out)
        self.assertTrue(found.out)

    def test_translations_are_the_same(self):
        verb = ["translate", "--model", support.model(), "--max-length-b", "8",
                "--buffer-lines", "7"]
        text = self.text["src"]
        for flags in ([], ["--n-best", "2"], ["--format", "json"]):
            wanted = run(*verb, *flags, stdin=text.read_bytes())
            self.same(wanted, run(*verb, *flags, "--input", text))
            for name in WRITERS:
                file = self.files[name, "src"]
                self.same(wanted, run(*verb, *flags, "--input", file))
        index = self.files["mapped", "src"].with_suffix(".idx")
        self.same(run(*verb, stdin=text.read_bytes()),
                  run(*verb, "--input", index))

    def test_scores_are_the_same(self):
        verb = ["score", "--model", support.model()]
        wanted = run(*verb, "--source", self.text["src"],
                     "--target", self.text["tgt"])
        for source in ("mapped", "cached"):
            self.same(wanted, run(*verb, "--source", self.files[source, "src"],
                                  "--target", self.files["mapped", "tgt"]))
        self.same(wanted, run(*verb, "--source", self.text["src"],
                              "--target", self.files["cached", "tgt"]))

    def test_the_text_comes_back(self):
        for (_, side), file in self.files.items():
            found = run("text", "--dictionary", self.dictionary, file)
            self.assertEqual(found.out, self.text[side].read_bytes())

    def test_the_text_needs_no_torch(self):
        found = run("text", "--dictionary", self.dictionary,
                    self.files["mapped", "src"],
                    env={**os.environ, "LD_DEBUG": "files"})
        self.assertEqual(found.code, 0)
        self.assertIn("libstdc++", found.message)
        self.assertNotRegex(found.message, "torch|libc10|seqconv_engine")

    def test_pieces_of_words_are_joined(self):
        path = self.folder / "pieces.txt"
        path.write_text("ab@@ 3\nc 2\n", encoding="utf-8")
        file = binarised.mapped(
            self.folder / "pieces", [[4, 5, 5, 4, 4, 5, 2], [3, 2], [2], [4]])
        flags = ["text", "--dictionary", path, file]
        self.assertEqual(run(*flags).lines,
                         ["ab@@ c c ab@@ ab@@ c", "<unk>", "", "ab@@"])
        self.assertEqual(run(*flags, "--remove-bpe").lines,
                         ["abc c ababc", "<unk>", "", "ab"])

    def test_a_sentence_is_one_line_whatever_its_symbols_hold(self):
        path = self.folder / "separators.txt"
        path.write_bytes("a\u2028b 3\nc\x85d 2\ne\x0b\x1c 1\n".encode())
        file = binarised.mapped(self.folder / "separators", [[4, 5, 2], [6, 2]])
        found = run("text", "--dictionary", path, file)
        self.assertEqual(found.lines, ["a b c d", "e  "])

    def test_perplexities_are_the_same(self):
        lines = (support.data() / "valid.tgt").read_text().splitlines()
        lines.insert(3, "")
        ids = binarised.dictionary(support.language_model() / "dict.txt")
        text = self.folder / "language"
        text.write_text("".join(line + "\n" for line in lines))
        sentences = binarised.encode(map(symbols_of_characters, lines), ids)
        verb = ["perplexity", "--model", support.language_model(), "--format",
                "json", "--context-window", "8"]
        wanted = run(*verb, stdin=text.read_bytes())
        self.same(wanted, run(*verb, "--input", text))
        for name, write in WRITERS.items():
            file = write(self.folder / f"language.{name}", sentences)
            self.same(wanted, run(*verb, "--input", file))
        self.assertGreater(json.loads(wanted.out)["tokens"], 100)

    def test_a_model_trained_on_ids_is_that_of_the_text(self):
        data = support.data()
        ids = binarised.dictionary(self.dictionary)
        given = ["train", support.config(), "--set",
                 f"text.source_dictionary={self.dictionary}"]
        for part in ("train", "valid"):
            for side, key in (("src", "source"), ("tgt", "target")):
                lines = (data / f"{part}.{side}").read_text().splitlines()
                file = binarised.mapped(self.folder / f"run.{part}.{side}",
                                        binarised.encode(lines, ids))
                given += ["--set", f"data.{part}_{key}={file}"]
        folder = self.folder / "run"
        result = run(*given, "--output", folder)
        self.assertEqual(result.code, 0, result.message)
        self.assertEqual((folder / "model.safetensors").read_bytes(),
                         (support.model() / "model.safetensors").read_bytes())
        dry = run(*given, "--output", self.folder / "dry", "--dry-run")
        self.assertEqual(dry.code, 0, dry.message)
        self.assertIn("200 pairs of 200", dry.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
