"""Pages of man and the completion of bash: they say what the help says.

SEQCONV_BINARY_DIR names the build folder.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support


def help_of(*verb):
    return support.run(*verb, "--help").out.decode()


def verbs_of(*verb):
    """The verbs that the help lists."""
    listed = help_of(*verb).partition("Subcommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\w+)", listed, re.MULTILINE)


def flags_of(*verb):
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", "\n".join(
        line[:34] if not line.startswith("  -") else line.split("  ")[1]
        for line in help_of(*verb).splitlines() if line.startswith("  -"))))  # fmt: skip


@functools.cache
def share():
    folder = support.scratch() / "share"
    done = support.run("reference", "installed", "--output", folder)
    if done.code != 0:
        raise AssertionError(done.message)
    return folder


def pages():
    return sorted((share() / "man/man1").iterdir())


class Pages(unittest.TestCase):
    def test_each_verb_has_one(self):
        names = {"seqconv.1", *(f"seqconv-{verb}.1" for verb in verbs_of())}
        self.assertEqual({page.name for page in pages()}, names)
        self.assertGreater(len(names), 15)

    def test_they_have_every_flag_of_the_help(self):
        for verb in verbs_of():
            text = (share() / f"man/man1/seqconv-{verb}.1").read_text().replace("\\-", "-")
            for flags in (flags_of(verb), *(flags_of(verb, below) for below in verbs_of(verb))):
                self.assertGreater(len(flags), 1)
                for flag in flags:
                    self.assertRegex(text, rf"(?m)^\\fB(?:\S*,)?{flag}(?:,\S*)?\\fR")

    def test_man_shows_them_without_a_warning(self):
        done = subprocess.run(
            ["man", "--warnings", "-l", *pages()], capture_output=True, check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANPAGER": "cat"})  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        shown = re.sub(r".\x08", "", done.stdout.decode())
        # Signs stand as they must be typed.
        self.assertIn("tr ' ' '\\n' < train.bpe.de | grep .", shown)
        self.assertIn("echo '{\"text\": \"zwei\", \"target_prefix\": \"t\", \"id\": 7}' |", shown)
        self.assertIn("length^X", shown)

    def test_an_installation_has_them(self):
        installed = support.installation() / "share"
        for file in (*pages(), share() / "bash-completion/completions/seqconv"):
            name = file.relative_to(share())
            self.assertEqual((installed / name).read_bytes(), file.read_bytes(), name)


class Completion(unittest.TestCase):
    def offered(self, *words):
        """Words that bash offers for the last of these."""
        script = """
            source "$0"; compopt() { :; }
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _seqconv; printf '%s\\n' "${COMPREPLY[@]}"
        """
        done = subprocess.run(
            ["bash", "-euc", script, share() / "bash-completion/completions/seqconv", *words],
            capture_output=True, text=True, check=False, cwd=support.ROOT / "tests/model/folders")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_verbs_are_offered(self):
        self.assertEqual(self.offered("seqconv", ""), verbs_of())
        self.assertEqual(self.offered("seqconv", "-q", "tr"), ["train", "translate"])
        self.assertEqual(self.offered("seqconv", "bpe", ""), verbs_of("bpe"))
        self.assertEqual(self.offered("seqconv", "translate", ""), [])

    def test_flags_are_those_of_the_verb(self):
        for verb in (["translate"], ["evaluate", "bleu"], ["bpe", "learn"]):
            offered = self.offered("seqconv", *verb, "-")
            self.assertEqual(set(offered), flags_of(*verb) | {"-q", "--quiet"})
        self.assertEqual(self.offered("seqconv", "translate", "--model", "a", "--be"), ["--beam"])

    def test_folders_are_offered_for_models(self):
        self.assertIn("translation_1", self.offered("seqconv", "score", "-m", "transl"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
