"""Where is the torch that the operators are built against, and which is it?

`pip install ./python/torch` builds against the torch that is installed already and never
fetches another: it is no requirement of the build, whose isolated environment
would get a second copy of 2 GB, perhaps of another version. Used twice:

- as a script by CMake, which wants the folder: `python torch_location.py`;
- as scikit-build-core's metadata provider: a wheel requires the torch that it
  was built against, because only that can load it.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

FIND = (
    "import importlib.util as u; s = u.find_spec('torch'); "
    "print(s.origin if s and s.origin else '')"
)
MISSING = """\
seqconv-torch: its operators are built against an installed torch, but {python} finds
none. Install torch first (CPU or CUDA, whichever you use), then this. When
it is there and a build tool hides it, build with `pip install
--no-build-isolation ./python/torch`, or set SEQCONV_TORCH_DIR to the folder that holds
torch's include/ and lib/."""


def torch_folder():
    """The folder of the torch package, found without importing it."""
    named = os.environ.get("SEQCONV_TORCH_DIR")
    if named:
        return pathlib.Path(named)
    spec = importlib.util.find_spec("torch")
    if spec and spec.origin:
        return pathlib.Path(spec.origin).parent
    # pip's isolation hides site-packages from this process only: the same
    # interpreter, started without pip's variables (-E), sees them.
    answer = subprocess.run(
        [sys.executable, "-E", "-c", FIND], capture_output=True, text=True
    ).stdout.strip()
    if not answer:
        raise SystemExit(MISSING.format(python=sys.executable))
    return pathlib.Path(answer).parent


def torch_version(folder):
    """Such as "2.11.0+cu130", read from the package's own file."""
    file = folder / "version.py"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise SystemExit(f"seqconv-torch: no torch package in {folder}: {error}")
    found = re.search(r"""^__version__ = ['"](\d+\.\d+[^'"]*)""", text, re.M)
    if not found:
        raise SystemExit(f"seqconv-torch: {file} does not say torch's version")
    return found[1]


class Requirement:
    """Fills `dependencies` when a wheel is built."""

    state = "wheel"

    def build_state(self, state):
        self.state = state

    def dynamic_wheel(self, settings):
        return {"dependencies": True}

    def dynamic_metadata(self, settings, project):
        if self.state == "sdist":
            return {"dependencies": []}
        major, minor = torch_version(torch_folder()).split(".")[:2]
        return {"dependencies": [f"torch=={major}.{minor}.*"]}


if __name__ == "__main__":
    print(torch_folder(), end="")
