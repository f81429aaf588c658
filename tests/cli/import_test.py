"""`seqconv import` from the command line, with small checkpoints."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
from hostile.imports import BOTH, DATA
from support import run, scratch


class Imports(unittest.TestCase):
    def test_a_preset_tells_what_the_checkpoint_does_not(self):
        preset = scratch() / "preset.toml"
        side = "layers = 1\nheads = 2\nkernel_sizes = [3]\n"
        preset.write_text(f"[model.encoder]\n{side}[model.decoder]\n{side}")
        model = scratch() / "preset_model"
        done = run(
            *("import", "--checkpoint", DATA / "bare.pt", *BOTH),
            *("--preset", preset, "--output", model),
        )
        self.assertEqual(done.code, 0, done.message)
        self.assertIn("model.decoder.heads = 2 (preset)", done.message)
        self.assertIn("holds no arguments", done.message)

    def test_the_folder_is_one_for_every_other_verb(self):
        model = scratch() / "whole_model"
        files = [DATA / "published.pt", DATA / "half.pt"]
        done = run("import", "--checkpoint", *files, *BOTH, "--output", model)
        self.assertEqual(done.code, 0, done.message)
        lines = "w1 w2 w3\n\nw0 w5\n"
        translated = run("translate", "--model", model, stdin=lines)
        self.assertEqual(translated.code, 0, translated.message)
        self.assertEqual(len(translated.lines), 3)
        source = scratch() / "lines.txt"
        source.write_text("w1 w2 w3\nw0 w5\n")
        scored = run("score", "--model", model, "--source", source, "--target", source)
        self.assertEqual(scored.code, 0, scored.message)
        mean = scratch() / "mean_model"
        averaged = run("average", "--output", mean, model, model)
        self.assertEqual(averaged.code, 0, averaged.message)
        described = run("info", mean)
        self.assertIn("parameters:", "\n".join(described.lines))


if __name__ == "__main__":
    unittest.main()
