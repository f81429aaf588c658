#!/usr/bin/env python3
"""Reads two language models that the reference code trained, and holds their
perplexities and greedy continuations against what it computed with them.

    golden_language_model_test.py PROGRAM SOURCE_DIR

Models: $SEQCONV_GOLDEN, default ../shared/golden beside the source folder.
Without them the test is skipped (exit code 77), or fails where
SEQCONV_GOLDEN_REQUIRED=1. Needs torch: without it likewise, where
SEQCONV_PYTHON_REQUIRED=1.
"""
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
TOLERANCE = 1e-5  # relative
ARCHITECTURE = {
    "dim": 64,
    "ffn_dim": 128,
    "norm": "pre",
    "tie": "decoder",
    "decoder": {"layers": 3, "kernel_sizes": [3, 7, 15], "heads": 4},
}
ADAPTIVE = {
    "softmax_cutoffs": [50, 120],
    "input_cutoffs": [50, 120],
    "tie_projections": True,
}
# Folder: block, adaptive.
MODELS = {
    "lm-lightconv": ("lightconv", None),
    "lm-dynamicconv-adaptive": ("dynamicconv", ADAPTIVE),
}

# The reference's names without "decoder." and ours; what fits none of them is an
# error.
NAMES = [
    (r"embed_tokens\.weight", r"decoder.embedding.weight"),
    (r"embed_tokens\.embeddings\.(\d)\.0\.weight", r"decoder.embedding.bands.table\1"),
    (
        r"embed_tokens\.embeddings\.(\d)\.1\.weight",
        r"decoder.embedding.bands.projection\1",
    ),
    (
        r"adaptive_softmax\.head\.class_proj\.weight",
        r"output.adaptive.class_projection",
    ),
    (r"layers\.(\d)\.(linear[12]\..*)", r"decoder.layer\1.block.\2"),
    (r"layers\.(\d)\.conv\.weight", r"decoder.layer\1.block.conv.weight"),
    (
        r"layers\.(\d)\.conv\.weight_linear\.weight",
        r"decoder.layer\1.block.conv.weight_linear",
    ),
    (r"layers\.(\d)\.conv_layer_norm\.(.*)", r"decoder.layer\1.block_norm.\2"),
    (r"layers\.(\d)\.(fc[12]\..*)", r"decoder.layer\1.feed_forward.\2"),
    (r"layers\.(\d)\.final_layer_norm\.(.*)", r"decoder.layer\1.feed_forward_norm.\2"),
]
# Bookkeeping, and the softmax's side of tied matrices.
LEFT_OUT = re.compile(
    r"(.*\.)?(version|_float_tensor)|output_projection\.weight"
    r"|adaptive_softmax\.(head\.word_proj|tail\.\d\.[02])\.weight"
)


def our_name(name):
    for theirs, ours in NAMES:
        if match := re.fullmatch(theirs, name):
            return match.expand(ours)
    raise ValueError(f"no place for the parameter '{name}'")


def convert(state):
    """The reference's parameters under our names, as contiguous float32."""
    parameters = {}
    for name, value in state.items():
        name = name.removeprefix("decoder.")
        if LEFT_OUT.fullmatch(name):
            continue
        if name.endswith("conv.weight"):
            value = value.squeeze(1)  # [H, 1, K] -> [H, K]
        parameters[our_name(name)] = value.float().contiguous()
    return parameters


def write_safetensors(path, parameters):
    header, offset = {}, 0
    for name, value in parameters.items():
        end = offset + 4 * value.numel()
        header[name] = {
            "dtype": "F32",
            "shape": list(value.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in parameters.values():
            file.write(value.numpy().astype("<f4").tobytes())


def write_model(golden, model, block, adaptive):
    import torch

    checkpoint = torch.load(golden / "model.pt", weights_only=False)
    architecture = json.loads(json.dumps(ARCHITECTURE))
    architecture["decoder"]["block"] = block
    if adaptive:
        architecture["adaptive"] = adaptive
    config = {
        "format": "seqconv-model",
        "format_version": 1,
        "task": "language_model",
        "architecture": architecture,
        "text": {
            "subword": "none",
            "lowercase": False,
            "unknown": True,
            "side": {"dictionary": "dict.txt", "samples": []},
        },
        "stream": {"samples": "lines"},
    }
    model.mkdir()
    (model / "config.json").write_text(json.dumps(config))
    shutil.copyfile(golden / "dict.txt", model / "dict.txt")
    write_safetensors(model / "model.safetensors", convert(checkpoint["model"]))


def run(command, text=""):
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_row(program, model, row):
    command = [program, "perplexity", "--model", model, "--format", "json"]
    found = json.loads(run(command, row["target"] + "\n"))
    tokens = len(row["target"].split()) + 1
    assert found["tokens"] == tokens, f"{found['tokens']} tokens, not {tokens}"
    wanted = row["perplexity"]
    perplexity = found["perplexity_per_token"]
    print(f"row {row['row']}: {perplexity:.6f}, reference {wanted:.6f}")
    assert math.isclose(perplexity, wanted, rel_tol=TOLERANCE), "another perplexity"
    loss, wanted = found["bits"] * math.log(2), row["loss_nats_sum"]
    assert math.isclose(loss, wanted, rel_tol=TOLERANCE), f"loss {loss}, not {wanted}"


def check_continuation(program, model, words, case):
    length = len(case["tokens"])
    command = [program, "generate", "--model", model, "--length", str(length)]
    command += ["--temperature", "0", "--prompt", case["prompt_text"]]
    prompt = case["prompt_text"].split()
    found = run(command).split()
    wanted = prompt + [words[token] for token in case["tokens"]]
    assert found == wanted, f"generated {found}, but the reference {wanted}"
    print(f"prompt of {len(prompt)}: {length} tokens equal")


def read_words(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return ["<s>", "<pad>", "</s>", "<unk>"] + [s.rsplit(" ", 1)[0] for s in lines]


def check_model(program, golden, model, block, adaptive):
    print(golden.name)
    write_model(golden, model, block, adaptive)
    reference = json.loads((golden / "outputs.json").read_text(encoding="utf-8"))
    # The program leaves out blank lines of a model of lines.
    rows = [row for row in reference["rows"] if row["target"]]
    assert len(rows) == 7 and len(reference["greedy"]) == 4
    for row in rows:
        check_row(program, model, row)
    words = read_words(golden / "dict.txt")
    for case in reference["greedy"]:
        check_continuation(program, model, words, case)


def main():
    program, source_dir = sys.argv[1], pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(source_dir / "tests/python"))
    from run_pytest import missing_modules

    missing = missing_modules("torch", "numpy")
    if missing:
        return missing
    default = source_dir / ".." / "shared" / "golden"
    folder = pathlib.Path(os.environ.get("SEQCONV_GOLDEN", default)) / "models"
    for name in MODELS:
        if not (folder / name).is_dir():
            print(f"no golden model: {folder / name} is not a folder")
            required = os.environ.get("SEQCONV_GOLDEN_REQUIRED") == "1"
            return 1 if required else SKIPPED
    with tempfile.TemporaryDirectory(prefix="seqconv-golden-") as name:
        for model, (block, adaptive) in MODELS.items():
            golden = folder / model
            check_model(program, golden, pathlib.Path(name) / model, block, adaptive)
    return 0


if __name__ == "__main__":
    sys.exit(main())
