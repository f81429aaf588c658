"""Every command of docs/translating.md, run in order in an empty folder, and those of
docs/your_own_data.md in one with a little text, in seconds rather than minutes.

A block that begins with ```bash is run by bash -euo pipefail; one that begins
with ```bash fails must end with an error. A block ```text right behind it is
what they write, standard error included; three dots in it stand for anything.
Blocks of other kinds are only shown.
"""

import lzma
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
sys.path.insert(0, os.fspath(pathlib.Path(__file__).parents[1] / "support"))
import made_up_translation
import real_text
import support

DOCUMENTS = support.ROOT / "docs"
BLOCK = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text):
    """(kind, content, line, what stands between it and the block before)."""
    end = 0
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield match[1], match[2], line, text[end:match.start()]
        end = match.end()


def commands(text):
    """(line, commands, must fail, output or None) of each block to run."""
    found = []
    for kind, content, line, between in blocks(text):
        if kind in ("bash", "bash fails"):
            found.append([line, content, kind == "bash fails", None])
        elif kind == "text" and found and not between.strip():
            found[-1][3] = content
        elif kind not in ("sh", "toml", "json"):
            raise ValueError(f"line {line}: unknown kind of block: {kind!r}")
    return found


def matches(wanted, output):
    parts = map(re.escape, wanted.rstrip("\n").split("..."))
    return re.fullmatch(".*?".join(parts), output.rstrip("\n"), re.DOTALL)


def write_text(folder):
    """3,000 pairs, real ones where there are any, sorted by length."""
    packed = real_text.find("tatoeba-de-en")
    if packed:
        sides = [lzma.open(packed / f"train.{side}.xz", "rt").readlines() for side in ("de", "en")]
        pairs = list(zip(*sides))[20000::48][:3000]
    else:
        made_up_translation.write_pairs(folder / "made", 3000, seed=1)
        sides = [(folder / f"made.{side}").open().readlines() for side in ("src", "tgt")]
        pairs = sorted(zip(*sides), key=lambda pair: len(pair[1]))
    for side, column in (("de", 0), ("en", 1)):
        (folder / f"train.{side}").write_text("".join(pair[column] for pair in pairs))


def in_seconds(script):
    """With three seconds for a minute."""
    return re.sub(r"--minutes (\d+)", lambda match: f"--minutes {int(match[1]) / 20}", script)


class Document(unittest.TestCase):
    def check(self, name, folder, change=lambda script: script):
        path = os.pathsep.join([os.fspath(support.PROGRAM.parent), os.environ["PATH"]])
        steps = commands((DOCUMENTS / name).read_text(encoding="utf-8"))
        self.assertGreater(len(steps), 5)
        for line, script, must_fail, wanted in steps:
            with self.subTest(line=line):
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", change(script)],
                    cwd=folder, env={**os.environ, "PATH": path},
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, timeout=support.TIMEOUT, check=False,
                )
                output = done.stdout.decode("utf-8")
                self.assertEqual(done.returncode != 0, must_fail, output)
                if wanted is not None:
                    self.assertTrue(
                        matches(wanted, output),
                        f"line {line}: wanted\n{wanted}\nbut got\n{output}",
                    )

    def test_translating_does_what_is_said(self):
        self.check("translating.md", support.scratch())

    def test_your_own_data_does_what_is_said(self):
        folder = support.scratch()
        write_text(folder)
        self.check("your_own_data.md", folder, in_seconds)


if __name__ == "__main__":
    unittest.main()
