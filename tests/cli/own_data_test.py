"""Models of one's own data: files without a configuration, sizes chosen, runs that are
stopped when they please."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import tomllib
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
sys.path.insert(0, os.fspath(pathlib.Path(__file__).parents[1] / "support"))
import made_up_translation
import support
from support import run


def exact_matches(model, stem):
    """The share of translations that are right to the letter."""
    wanted = pathlib.Path(f"{stem}.tgt").read_text().splitlines()
    done = run("translate", "--model", model, stdin=pathlib.Path(f"{stem}.src").read_bytes())
    return sum(line == right for line, right in zip(done.lines, wanted)) / len(wanted)


def write_numbers(stem, count, seed):
    """STEM.src and STEM.tgt: up to six digits, and their names from right to left."""
    names = "null eins zwei drei vier fünf sechs sieben acht neun".split()
    draw = random.Random(seed)
    rows = [[draw.randrange(10) for _ in range(draw.randint(1, 6))] for _ in range(count)]
    pathlib.Path(f"{stem}.src").write_text("".join(" ".join(map(str, row)) + "\n" for row in rows))
    pathlib.Path(f"{stem}.tgt").write_text(
        "".join(" ".join(names[digit] for digit in reversed(row)) + "\n" for row in rows))


class FilesAlone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.scratch()
        made_up_translation.write_pairs(cls.folder / "train", 600, seed=1)
        made_up_translation.write_pairs(cls.folder / "other", 60, seed=2)

    def train(self, *arguments, output):
        return run("train", *arguments, "--output", self.folder / output,
                   "--set", "training.threads=1")

    def settings(self, output):
        return tomllib.loads((self.folder / output / "training" / "config.toml").read_text())

    def pairs(self):
        return ("--source", self.folder / "train.src", "--target", self.folder / "train.tgt")

    def test_two_files_make_a_run_that_goes_on_without_them_being_named(self):
        done = self.train(*self.pairs(), "--minutes", "0.1", output="pairs")
        self.assertEqual(done.code, 0, done.message)
        self.assertIn("chosen for 600 pairs", done.message)
        self.assertIn("text.subword_size = ", done.message)
        settings = self.settings("pairs")
        self.assertEqual(settings["sizes"], "auto")
        self.assertEqual(settings["schedule"]["kind"], "linear")
        training = self.folder / "pairs" / "training"
        held = (training / "validation.source").read_text().splitlines()
        self.assertTrue(50 <= len(held) <= 60, len(held))
        self.assertEqual(len(held), len((training / "validation.target").read_text().splitlines()))
        self.assertIn(f"validation data: {len(held)} pairs", done.message)
        self.assertIn(f"training data: {600 - len(held)} pairs", done.message)
        config = json.loads((self.folder / "pairs" / "config.json").read_text())
        self.assertIn(f"alignments: decoder layer {config['alignment']['layer']}, ", done.message)
        limits = config["decoding"]
        self.assertGreater(limits["max_length_a"], 0.5)
        self.assertLess(limits["max_length_b"], 100)
        source = (self.folder / "train.src").read_bytes()
        cut = run("translate", "--model", self.folder / "pairs", "--max-length-a", "0",
                  "--max-length-b", "2", stdin=source)
        self.assertIn("of 600 translations have as many tokens as they may", cut.message)
        self.assertIn("--max-length-a", cut.message)
        again = run("train", "--resume", "--minutes", "0.15", "--output", self.folder / "pairs")
        self.assertEqual(again.code, 0, again.message)
        self.assertIn("alignments: decoder layer ", again.message)
        self.assertIn("going on in epoch", again.message)
        changed = self.settings("pairs")
        for table in (settings, changed):
            del table["training"]["max_minutes"], table["training"]["threads"]
        self.assertEqual(changed, settings)

    def test_a_given_key_wins_and_so_does_a_configuration(self):
        done = self.train(*self.pairs(), "--minutes", "0.05", "--set", "model.dim=32",
                          "--set", "model.encoder.block=self_attention", output="given")
        self.assertEqual(done.code, 0, done.message)
        model = self.settings("given")["model"]
        self.assertEqual(model["dim"], 32)
        self.assertEqual(model["encoder"]["kernel_sizes"], [])
        config = self.folder / "sizes.toml"
        config.write_text('include = "auto"\n[batching]\nmax_tokens = 300\n')
        done = self.train(config, *self.pairs(), "--minutes", "0.05", output="file")
        self.assertEqual(done.code, 0, done.message)
        self.assertEqual(self.settings("file")["batching"]["max_tokens"], 300)

    def test_a_vocabulary_as_large_as_the_text_is_warned_of(self):
        files = ("--source", self.folder / "other.src", "--target", self.folder / "other.tgt")
        done = self.train(*files, "--minutes", "0.03", "--set", "text.subword=none", output="words")
        self.assertIn("the vocabulary is nearly as large as the text", done.message)
        self.assertIn("lower text.subword_size", done.message)

    def test_another_model_is_where_a_run_begins(self):
        self.train(*self.pairs(), "--minutes", "0.05", output="first")
        done = self.train("--source", self.folder / "other.src", "--target",
                          self.folder / "other.tgt", "--minutes", "0.05",
                          "--init-from", self.folder / "first", output="tuned")
        self.assertEqual(done.code, 0, done.message)
        self.assertIn("a quarter, as the run starts from a model", done.message)
        first, tuned = self.settings("first"), self.settings("tuned")
        self.assertEqual(tuned["model"]["dim"], first["model"]["dim"])
        self.assertLess(tuned["schedule"]["learning_rate"], first["schedule"]["learning_rate"])

    def test_one_text_makes_a_language_model_and_json_lines_summaries(self):
        done = self.train("--text", self.folder / "train.tgt", "--minutes", "0.05", output="text")
        self.assertEqual(done.code, 0, done.message)
        self.assertEqual(self.settings("text")["task"], "language_model")
        rare = self.folder / "rare"  # a character that only a held-out line has
        rare.write_text((self.folder / "train.tgt").read_text() + "a rare ☉\n")
        done = self.train("--text", rare, "--minutes", "0.05", output="rare-run")
        self.assertEqual(done.code, 0, done.message)
        documents = self.folder / "documents.jsonl"
        sides = [(self.folder / f"train.{side}").read_text().splitlines() for side in ("src", "tgt")]
        documents.write_text("".join(
            json.dumps({"text": source, "short": target}) + "\n" for source, target in zip(*sides)))
        done = self.train("--documents", documents, "--source-key", "text", "--target-key", "short",
                          "--minutes", "0.05", output="documents")
        self.assertEqual(done.code, 0, done.message)
        held = (self.folder / "documents" / "training" / "validation.lines").read_text()
        for line in held.splitlines():
            self.assertIn("short", json.loads(line))

    def test_settings_are_searched_by_the_tool(self):
        files = [argument for name, file in (
            ("source", "train.src"), ("target", "train.tgt"),
            ("test-source", "other.src"), ("test-target", "other.tgt"),
        ) for argument in (f"--{name}", self.folder / file)]
        command = [
            sys.executable, support.ROOT / "tools" / "tune_presets.py", *files, "--pairs", "200",
            "--minutes", "0.02", "--rounds", "1", "--lines", "20", "--seqconv", support.PROGRAM,
            "--output", self.folder / "tuned-presets",
            "--try", "model.dim=16", "--try", "model.dim=32 model.ffn_dim=32"]
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=support.TIMEOUT, check=True)
        self.assertIn(b"best: model.dim=", done.stdout)
        results = (self.folder / "tuned-presets" / "results.jsonl").read_text().splitlines()
        self.assertEqual(len(results), 2)
        self.assertEqual(json.loads(results[0])["pairs"], 200)

    def test_wrong_files_and_flags_say_what_is_wanted(self):
        text = self.folder / "train.src"
        few = self.folder / "few"
        few.write_text("a\nb\n")
        for arguments, message in (
            ([], "training text is required: --source FILE --target FILE"),
            (["--source", text], "must name as many files, but got 1 and 0"),
            (["--text", text, *self.pairs()], "--text is a language model's"),
            (["--documents", text], "--source-key and --target-key must name"),
            (["--source", self.folder / "none", "--target", text], "none"),
            (["--source", few, "--target", few, "--minutes", "1"],
             "needs 10 training samples or more, but there are 2"),
            ([*self.pairs(), "--set", "data.hold_out=0", "--set", "training.patience=2"],
             "needs validation text"),
            ([*self.pairs(), "--set", "data.hold_out=-1"], "data.hold_out must be >= 0"),
            (["--source", text, "--target", few], "parallel files must have the same number"),
            (["--resume"], "nothing to resume"),
        ):
            done = self.train(*arguments, output="wrong")
            self.assertNotEqual(done.code, 0, arguments)
            self.assertIn(message, done.message)
        done = run("train", *self.pairs())
        self.assertIn("--output DIR is required", done.message)


class StoppedRuns(unittest.TestCase):
    def test_a_run_of_an_hour_that_is_stopped_after_a_minute_is_a_usable_model(self):
        folder = support.scratch()
        write_numbers(folder / "train", 4000, seed=1)
        write_numbers(folder / "test", 200, seed=2)
        process = subprocess.Popen(
            [support.PROGRAM, "train", "--source", folder / "train.src", "--target",
             folder / "train.tgt", "--minutes", "60", "--output", folder / "run",
             "--set", "training.threads=1"], stderr=subprocess.PIPE)
        time.sleep(random.uniform(50, 60))
        process.send_signal(signal.SIGINT)
        message = process.communicate(timeout=support.TIMEOUT)[1].decode()
        self.assertIn("the state is saved", message)
        self.assertGreater(exact_matches(folder / "run", folder / "test"), 0.7, message)


if __name__ == "__main__":
    unittest.main()
