"""Every command of docs/translating.md, run in order in an empty folder.

A block that begins with ```bash is run by bash -euo pipefail; one that begins
with ```bash fails must end with an error. A block ```text right behind it is
what they write, standard error included; three dots in it stand for anything.
Blocks of other kinds are only shown.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support

DOCUMENT = support.ROOT / "docs" / "translating.md"
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


class Document(unittest.TestCase):
    def test_every_command_does_what_is_said(self):
        folder = support.scratch()
        path = os.pathsep.join([os.fspath(support.PROGRAM.parent), os.environ["PATH"]])
        steps = commands(DOCUMENT.read_text(encoding="utf-8"))
        self.assertGreater(len(steps), 10)
        for line, script, must_fail, wanted in steps:
            with self.subTest(line=line):
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", script],
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


if __name__ == "__main__":
    unittest.main()
