"""check_prose.py finds sentences that do not begin as the rule says, and no others."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from checked_project import TOOLS, check

TOOL = "check_prose.py"


class CheckProse(unittest.TestCase):
    def expect(self, files, *errors):
        self.assertEqual(check(TOOL, files, "--all"), (list(errors), 1 if errors else 0))

    def test_good_sentences_pass(self):
        self.expect({
            "a.h": "/// Says what came. The rows are those of a batch;\n"
                   "/// whether they fit is asked elsewhere.\n"
                   "int what;  // What stands behind code is no sentence's beginning\n",
            "a.py": '"""Makes seeds.\n\nWhat is written?"""\nx = "What a string"\n',
            "a.md": "Of\n\n```sh\n# What is run\n```\n\n1,000 tokens per second\n"[4:],
            "docs/reference/a.md": "What is generated\n",
            "a.json": "What\n",
        })

    def test_openings_are_named_with_their_lines(self):
        self.expect(
            {
                "a.cpp": "int x;\n// What came first.\n//\n// Reads it. Where it ends, that "
                         "is\n// said.\n",
                "b.md": "# How it works\n\n- That is all.\n\n| The same | of all |\n",
                "c.py": 'def f():\n    """Whether it fits."""\n    # Of two the first\n',
                "d.sh": "#!/bin/sh\n# Whose turn it is\n",
            },
            "a.cpp:2: begins with 'What came first'",
            "a.cpp:4: begins with 'Where it ends, that is said'",
            "b.md:1: begins with 'How it works'",
            "b.md:3: begins with 'That is all'",
            "b.md:5: begins with 'The same'",
            "c.py:3: begins with 'Of two the first'",
            "c.py:2: begins with 'Whether it fits'",
            "d.sh:2: begins with 'Whose turn it is'",
        )

    def test_a_rate_has_per(self):
        self.expect(
            {"a.md": "It reads 1,000 tokens a second, or 3 MB per second.\n"},
            "a.md:1: 'tokens a second': a rate has \"per second\"",
        )

    def test_only_lines_that_are_newer_count(self):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            def git(*arguments):
                subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b",
                                *arguments], check=True, capture_output=True)
            (root / "a.h").write_text("// What is old.\n\nint x;\n")
            git("init")
            git("add", ".")
            git("commit", "-m", "a")
            (root / "a.h").write_text("// What is old.\n\nint y;\n\n// What is new.\n")
            (root / "b.h").write_text("// How new.\n")
            tool = (TOOLS / TOOL).read_text()
            start = tool.index('SINCE = "')
            tool = tool[:start] + 'SINCE = "HEAD"' + tool[tool.index("\n", start):]
            (root / "check.txt").write_text(tool)
            found = subprocess.run([sys.executable, root / "check.txt", root],
                                   capture_output=True, text=True)
            self.assertEqual(found.stdout.splitlines(), [
                "a.h:5: begins with 'What is new'", "b.h:1: begins with 'How new'"])


if __name__ == "__main__":
    unittest.main()
