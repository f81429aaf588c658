#!/usr/bin/env python3
"""Imports language models, and holds their perplexities and greedy continuations
against what was computed with them elsewhere.

    golden_language_model_test.py PROGRAM

Models: those of $SEQCONV_GOLDEN, default tests/golden.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import golden_folders  # noqa: E402

TOLERANCE = 1e-5  # relative


def run(command, text=""):
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


BACKENDS = ("runtime", "libtorch")


def check_row(program, model, row, backend):
    command = [program, "perplexity", "--model", model, "--format", "json"]
    command += ["--backend", backend, "--threads", "1"]
    found = json.loads(run(command, row["target"] + "\n"))
    tokens = len(row["target"].split()) + 1
    assert found["tokens"] == tokens, f"{found['tokens']} tokens, not {tokens}"
    wanted = row["perplexity"]
    perplexity = found["perplexity_per_token"]
    print(f"row {row['row']}: {perplexity:.6f}, reference {wanted:.6f}")
    assert math.isclose(perplexity, wanted, rel_tol=TOLERANCE), "another perplexity"
    loss, wanted = found["bits"] * math.log(2), row["loss_nats_sum"]
    assert math.isclose(loss, wanted, rel_tol=TOLERANCE), f"loss {loss}, not {wanted}"


def check_continuation(program, model, words, case, backend):
    length = len(case["tokens"])
    command = [program, "generate", "--model", model, "--length", str(length)]
    command += ["--backend", backend, "--threads", "1"]
    command += ["--temperature", "0", "--prompt", case["prompt_text"]]
    prompt = case["prompt_text"].split()
    found = run(command).split()
    wanted = prompt + [words[token] for token in case["tokens"]]
    assert found == wanted, f"generated {found}, but the reference {wanted}"
    print(f"prompt of {len(prompt)}: {length} tokens equal")


def read_words(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return ["<s>", "<pad>", "</s>", "<unk>"] + [s.rsplit(" ", 1)[0] for s in lines]


def import_model(program, golden, model):
    command = [program, "import", "--checkpoint", golden / "model.pt"]
    run([*command, "--dictionary", golden / "dict.txt", "--output", model])
    # The recorded rows are one sequence each.
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["stream"]["samples"] = "lines"
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")


def check_model(program, golden, model):
    print(golden.name)
    import_model(program, golden, model)
    reference = json.loads((golden / "outputs.json").read_text(encoding="utf-8"))
    # The program leaves out blank lines of a model of lines.
    rows = [row for row in reference["rows"] if row["target"]]
    assert rows and reference["greedy"]
    words = read_words(golden / "dict.txt")
    for backend in BACKENDS:
        print(backend)
        for row in rows:
            check_row(program, model, row, backend)
        for case in reference["greedy"]:
            check_continuation(program, model, words, case, backend)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="seqconv-golden-") as temporary:
        for folder in golden_folders.with_files("model.pt", "outputs.json", "dict.txt"):
            check_model(program, folder, pathlib.Path(temporary) / folder.name)


if __name__ == "__main__":
    main()
