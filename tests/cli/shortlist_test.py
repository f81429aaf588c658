"""Shortlists from outside: learned from training text, heeded by translate."""

import functools
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from support import run

TEXT = "".join(f"{i % 10} {i % 7} {i % 3}\n" * (i % 4) for i in range(40))
LITTLE = ["--per-word", "1", "--common", "0", "--iterations", "40"]


def everything():
    """Flags with which all words are listed: digits come on the target side,
    too."""
    data = support.data()
    return ["--source", data / "train.tgt", "--target", data / "train.src",
            "--common", "1000"]


@functools.cache
def shortlist(*flags):
    """The file of one of the tiny model's training text."""
    path = support.scratch() / f"shortlist{hash(flags)}"
    data = support.data()
    result = run("shortlist", "--model", support.model(), "--output", path,
                 "--source", data / "train.src", "--target", data / "train.tgt",
                 *flags)
    assert result.code == 0, result.message
    return path, result.message


class Shortlists(unittest.TestCase):
    def translate(self, *flags, stdin=TEXT):
        result = run("translate", "--model", support.model(), "--max-length-b",
                     "12", "--format", "json", "--n-best", "2", *flags,
                     stdin=stdin)
        self.assertEqual(result.code, 0, result.message)
        return result.out

    def tokens(self, *flags, stdin=TEXT):
        """The symbols of each line's translations but the last, </s>."""
        return [
            [symbol for one in json.loads(line)["translations"]
             for symbol in one["tokens"].split()[:-1]]
            for line in self.translate(*flags, stdin=stdin).splitlines()
        ]

    def test_learning_says_what_was_learned(self):
        _, message = shortlist()
        self.assertRegex(
            message,
            r"learned a shortlist from 200 pairs \(0 with an empty side left "
            r"out\) in \S+ s: \d+ of 24 words a sentence, 100\.0 % of its "
            r"translation's among them")

    def test_one_of_all_words_changes_no_byte(self):
        path, _ = shortlist(*everything())
        for flags in ([], ["--sample", "--seed", "3"]):
            self.assertEqual(self.translate("--shortlist", path, *flags),
                             self.translate(*flags))

    def test_other_words_never_come(self):
        path, _ = shortlist(*LITTLE)
        names = dict(zip(map(str, range(10)), support.WORDS))
        for flags in ([], ["--sample", "--temperature", "3"]):
            found = self.tokens("--shortlist", path, *flags)
            for line, symbols in zip(TEXT.splitlines(), found, strict=True):
                digits = line.split()
                listed = {"<unk>", *digits, *(names[digit] for digit in digits)}
                self.assertLessEqual(set(symbols), listed, line)
        # Or it would not be much of a test.
        self.assertNotEqual(found, self.tokens())

    def test_neighbours_and_threads_change_no_byte(self):
        path, _ = shortlist(*LITTLE)
        for kind in ([], ["--sample"], ["--model", support.model()]):
            flags = ["--shortlist", path, *kind]
            wanted = self.translate(*flags, "--threads", "1")
            for more in (["--threads", "3"], ["--batch-tokens", "1"],
                         ["--batch-tokens", "40", "--threads", "2"]):
                self.assertEqual(self.translate(*flags, *more), wanted)

    def test_a_prefix_comes_whatever_is_listed(self):
        path, _ = shortlist(*LITTLE)
        request = json.dumps({"text": "1 2", "target_prefix": "neun acht"})
        for flags in ([], ["--sample"]):
            for line in self.translate("--shortlist", path, "--json-input",
                                       *flags, stdin=request).splitlines():
                for one in json.loads(line)["translations"]:
                    self.assertTrue(one["text"].startswith("neun acht"), one)
                    self.assertTrue(all(
                        isinstance(score, float) and score <= 0
                        for score in one["token_scores"]), one)

    def test_one_of_another_model_is_refused_before_any_output(self):
        path, _ = shortlist()
        other = support.copy_model("other-vocabulary")
        dictionary = other / "dict.txt"
        dictionary.write_bytes(dictionary.read_bytes() + b"zehn 1\n")
        result = run("translate", "--model", other, "--shortlist", path,
                     stdin=TEXT)
        self.assertEqual(result.code, 1)
        self.assertEqual(result.out, b"")
        self.assertIn(f"{path}: the shortlist is of another source vocabulary",
                      result.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
