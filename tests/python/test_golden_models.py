"""The golden models and trajectories of tests/golden are what their makers make."""

import pathlib
import subprocess
import sys

MAKER = pathlib.Path(__file__).resolve().parents[1] / "golden/make_checkpoints.py"


def test_golden_models_made_anew_are_the_same():
    done = subprocess.run([sys.executable, MAKER, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
