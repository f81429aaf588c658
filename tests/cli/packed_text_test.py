"""Text that gzip, xz or Zstandard has packed is read as the same text unpacked."""

import bz2
import gzip
import json
import lzma
import os
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from hostile.case import TRANSLATE
from support import run


def zstandard(data):
    """A frame of blocks that are not compressed."""
    frame = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data))
    blocks = [data[at:at + 100_000] for at in range(0, len(data), 100_000)] or [b""]
    for block in blocks:
        frame += struct.pack("<I", (block is blocks[-1]) | len(block) << 3)[:3] + block
    return frame


PACKERS = {"gzip": gzip.compress, "xz": lzma.compress, "Zstandard": zstandard}


def contents(folder):
    """The files of a model that do not say when and where it was made."""
    names = ["model.safetensors", "source.dict.txt", "target.dict.txt", "dict.txt"]
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


class PackedText(unittest.TestCase):
    def packed(self, name, kind, content=None):
        """A file that does not say by its name how it is packed."""
        file = support.scratch() / f"{name}-{kind}"
        if content is None:
            content = (support.data() / name).read_bytes()
        file.write_bytes(PACKERS[kind](content))
        return file

    def same(self, *arguments, stdin=b""):
        """Runs on plain and packed standard input, which write the same, and gives it."""
        plain = run(*arguments, stdin=stdin)
        self.assertEqual(plain.code, 0, plain.message)
        for kind, pack in PACKERS.items():
            result = run(*arguments, stdin=pack(stdin))
            self.assertEqual((result.code, result.out), (0, plain.out), (kind, result.message))
        return plain.out

    def test_training(self):
        plain = contents(support.model())
        text = support.config().read_text(encoding="utf-8")
        kinds = iter(["gzip", "xz", "Zstandard", "gzip"])
        for name in ("train.src", "train.tgt", "valid.src", "valid.tgt"):
            text = text.replace(f"{support.data()}/{name}", f"{self.packed(name, next(kinds))}")
        settings = support.scratch() / "packed.toml"
        settings.write_text(text, encoding="utf-8")
        dry = run("train", settings, "--output", support.scratch() / "dry", "--dry-run")
        self.assertEqual(dry.code, 0, dry.message)
        folder = support.trained("packed", settings)
        self.assertEqual(contents(folder), plain)
        self.assertGreater(len(plain), 1)

    def test_a_dry_run_sees_how_much_text_is_packed(self):
        large = self.packed("large", "gzip", b"1 2 3\n" * (12 << 20))
        result = run("train", support.config(), "--output", support.scratch() / "dry", "--dry-run",
                     "--set", f"data.train_source={json.dumps(os.fspath(large))}",
                     "--set", f"data.train_target={json.dumps(os.fspath(large))}")
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("made of more than 128 MiB of training data", result.message)

    def test_translating(self):
        base = ["translate", "--model", support.model(), *TRANSLATE]
        source = (support.data() / "valid.src").read_bytes()
        plain = self.same(*base, stdin=source)
        self.same(*base, "--json-input", "--format", "json", stdin=b'{"text": "1 2"}\n')
        for kind in PACKERS:
            result = run(*base, "--input", self.packed("valid.src", kind))
            self.assertEqual((result.code, result.out), (0, plain), result.message)

    def test_evaluating(self):
        reference = support.data() / "valid.tgt"
        plain = run("evaluate", "bleu", "--reference", reference, "--hypotheses", reference)
        self.assertEqual(plain.code, 0, plain.message)
        hypotheses = reference.read_bytes()
        for kind, pack in PACKERS.items():
            file = self.packed("valid.tgt", kind)
            result = run("evaluate", "bleu", "--reference", file, "--hypotheses", file)
            self.assertEqual((result.code, result.out), (0, plain.out), result.message)
            result = run("evaluate", "bleu", "--reference", file, stdin=pack(hypotheses))
            self.assertEqual((result.code, result.out), (0, plain.out), result.message)

    def test_scoring(self):
        base = ["score", "--model", support.model()]
        files = [support.data() / "valid.src", support.data() / "valid.tgt"]
        plain = run(*base, "--source", files[0], "--target", files[1])
        packed = run(*base, "--source", self.packed("valid.src", "xz"),
                     "--target", self.packed("valid.tgt", "gzip"))
        self.assertEqual((plain.code, packed.code), (0, 0), packed.message)
        self.assertEqual(packed.out, plain.out)

    def test_language_models(self):
        model = support.language_model()
        text = (support.data() / "valid.tgt").read_bytes()
        self.same("perplexity", "--model", model, stdin=text)
        prompt = self.packed("prompt", "Zstandard", b"eins zwei")
        base = ["generate", "--model", model, "--length", "20", "--seed", "1"]
        plain = run(*base, "--prompt", "eins zwei")
        packed = run(*base, "--prompt-file", prompt)
        self.assertEqual((packed.code, packed.out), (0, plain.out), packed.message)

    def test_tokens_and_codes(self):
        text = (support.data() / "train.tgt").read_bytes()
        self.same("tokenize", "--language", "de", stdin=text)
        codes = self.same("bpe", "learn", "--merges", "20", stdin=text)
        learned = run("bpe", "learn", "--merges", "20", self.packed("train.tgt", "xz"))
        self.assertEqual((learned.code, learned.out), (0, codes), learned.message)
        self.same("bpe", "apply", "--codes", self.packed("codes", "gzip", codes), stdin=text)

    def test_what_is_damaged_is_said_and_not_passed_over(self):
        source = (support.data() / "valid.src").read_bytes()
        for kind, pack in PACKERS.items():
            cut = support.scratch() / "cut"
            cut.write_bytes(pack(source)[:-5])
            base = ["translate", "--model", support.model(), *TRANSLATE]
            for result, name in ((run(*base, "--input", cut), cut),
                                 (run(*base, stdin=cut.read_bytes()), "standard input")):
                self.assertEqual(result.code, 1)
                self.assertIn(f"cannot unpack '{name}': its {kind} data are cut short",
                              result.message)
            result = run("evaluate", "bleu", "--reference", cut, stdin=source)
            self.assertEqual((result.code, result.out), (1, b""))
            self.assertIn(f"cannot unpack '{cut}'", result.message)
        result = run("tokenize", "--language", "de", stdin=bz2.compress(source))
        self.assertEqual((result.code, result.out), (1, b""))
        self.assertIn("packed by bzip2: unpack it first", result.message)

    def test_folders_of_models_hold_plain_text(self):
        folder = support.copy_model("packed-dictionary")
        file = next(folder.glob("*dict.txt"))
        file.write_bytes(gzip.compress(file.read_bytes()))
        for result in (run("info", folder),
                       run("translate", "--model", folder, *TRANSLATE, stdin=b"1\n")):
            self.assertEqual(result.code, 1)
            self.assertIn(f"{file}:1: UTF-8 was wanted", result.message)

    def test_a_job_that_can_go_on_wants_plain_text(self):
        output = support.scratch() / "job.txt"
        for kind in PACKERS:
            file = self.packed("valid.src", kind)
            result = run("translate", "--model", support.model(), "--input", file,
                         "--output", output)
            self.assertEqual(result.code, 2)
            self.assertIn(f"'{file}' is packed by {kind}: unpack it first", result.message)
        self.assertFalse(list(support.scratch().glob("job.txt*")))


if __name__ == "__main__":
    unittest.main()
