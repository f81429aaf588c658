"""What the tests of the checks in tools/ share."""
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


def check(tool, files, *flags):
    """Lines and exit code of a check for a project with these files."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        result = subprocess.run(
            [sys.executable, TOOLS / tool, *flags, root], capture_output=True, text=True)
        return result.stdout.splitlines(), result.returncode
