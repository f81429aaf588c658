"""Our program, as the plugins call it."""
import json
import os
import pathlib
import subprocess
import tempfile

BIN = pathlib.Path(os.environ["SEQCONV_BIN"])


class Refused(ValueError):
    """Our program refused what it was asked for."""


def call(name, *arguments, text=""):
    run = subprocess.run([BIN / name, *map(str, arguments)], input=text.encode(), capture_output=True)
    if run.returncode:
        raise Refused(run.stderr.decode())
    return run.stdout.decode()


def evaluate(metric, systems, references, *flags):
    """The scores that `seqconv evaluate` gives systems, {name: lines}; references are a list of texts (or None) for each line."""
    with tempfile.TemporaryDirectory() as folder:
        def write(name, values):
            path = pathlib.Path(folder) / name
            path.write_text("".join(json.dumps({"t": value}) + "\n" for value in values))
            return path
        files = [write(f"system{i}", lines) for i, lines in enumerate(systems.values())]
        answer = call("seqconv", "-q", "evaluate", metric, "--format", "json", "--reference", write("references", references),
                      "--reference-key", "t", "--hypotheses", *files, "--hypothesis-key", "t", *flags)
        return json.loads(answer)


def mark(items, reasons):
    """Marks the tests whose names hold a key of `reasons` as not applicable."""
    import pytest

    for item in items:
        for part, reason in reasons.items():
            if part in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=reason))
                break
