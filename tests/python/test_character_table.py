"""The table of characters is made of files of the wanted version of Unicode alone."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES = {
    "DerivedCoreProperties": "0041..005A    ; Alphabetic # L&  [26] A..Z",
    "DerivedAge": "0000..001F    ; 1.1",
    "ScriptExtensions": "3001 ; Hira Kana",
    "Scripts": "0E01..0E30    ; Thai",
}


class CharacterTable(unittest.TestCase):
    def make(self, first_lines):
        """Makes a table of files with these first lines: the exit code, the message, the table."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, line in LINES.items():
                first = first_lines.get(name, f"# {name}-15.0.0.txt")
                (folder / f"{name}.txt").write_text(f"{first}\n{line}\n" if first else "")
            table = folder / "table"
            run = subprocess.run(
                [sys.executable, ROOT / "tools/make_character_table.py", folder, "15.0.0", table],
                capture_output=True, text=True)
            return run.returncode, run.stderr, table.read_text() if table.exists() else None

    def test_is_made_of_the_wanted_version(self):
        code, message, table = self.make({})
        self.assertEqual((code, message), (0, ""))
        self.assertIn("kCharacterBlocks", table)

    def test_another_version_of_any_file_is_an_error(self):
        for name in LINES:
            for version in ("15.1.0", "14.0.0", "15.0.10"):
                code, message, table = self.make({name: f"# {name}-{version}.txt"})
                self.assertEqual((code, table), (1, None))
                self.assertRegex(message, rf"^error: .*/{name}\.txt must be of Unicode 15\.0\.0, "
                                          rf"which utf8proc has, but is of {version}\n$")

    def test_a_file_that_tells_no_version_is_an_error(self):
        for first in ("# Scripts.txt", "0041 ; Latin", "# Scripts-15.0.0.txt.old", ""):
            code, message, table = self.make({"Scripts": first})
            self.assertEqual((code, table), (1, None))
            self.assertIn("does not begin with '# Scripts-15.0.0.txt'", message)


if __name__ == "__main__":
    unittest.main()
