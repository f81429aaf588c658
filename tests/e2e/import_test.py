#!/usr/bin/env python3
"""Imports checkpoints of the reference code from the command line, translates
raw text with one, and exports them again.

    import_test.py PROGRAM SOURCE_DIR

Models: $SEQCONV_GOLDEN, default tests/golden; raw text: $SEQCONV_DATA. Without
them the test is skipped (exit code 77), or fails where SEQCONV_GOLDEN_REQUIRED=1.
Needs torch: without it likewise, where SEQCONV_PYTHON_REQUIRED=1.
"""
import json
import lzma
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
BOOKKEEPING = ("conv_bias", "_float_tensor", "version")
# What was recorded with the model (BLEU of the tokens, of detokenised text).
TOKEN_BLEU, TEXT_BLEU = 39.74, 39.71


class Setting:
    def __init__(self, program, source_dir, folder):
        self.program = program
        self.folder = folder
        self.golden = pathlib.Path(os.environ.get("SEQCONV_GOLDEN", source_dir / "tests/golden"))
        self.data = pathlib.Path(os.environ.get("SEQCONV_DATA", "no SEQCONV_DATA"))

    def run(self, *arguments, text=""):
        done = subprocess.run(
            [self.program, *map(str, arguments)],
            input=text,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def raw(self, name):
        with lzma.open(self.data / "multi30k" / f"{name}.xz", "rt", encoding="utf-8") as f:
            return f.read()


def import_multi30k(setting, output):
    golden = setting.golden / "multi30k-dynamicconv"
    setting.run(
        *("import", "--checkpoint", golden / "model.pt"),
        *("--source-dictionary", golden / "dict.de.txt"),
        *("--target-dictionary", golden / "dict.en.txt"),
        *("--bpe-codes", golden / "bpecodes", "--tokenizer", "moses"),
        *("--source-language", "de", "--target-language", "en"),
        *("--lowercase", "--output", output),
    )


def bleu(setting, hypotheses, references, tokenizer):
    reference = setting.folder / "reference.txt"
    reference.write_text(references, encoding="utf-8")
    found = setting.run(
        *("evaluate", "bleu", "--reference", reference),
        *("--tokenizer", tokenizer, "--json"),
        text=hypotheses,
    )
    return json.loads(found)["score"]


def best(answer):
    """The first translation of a JSON line, its tokens without </s>."""
    first = answer["translations"][0]
    return {**first, "tokens": first["tokens"].removesuffix("</s>").rstrip()}


def check_translations(setting):
    """Raw text through the imported model, all 1,000 sentences."""
    model = setting.folder / "multi30k"
    import_multi30k(setting, model)
    source = setting.raw("test_2016_flickr.de")
    found = [
        best(json.loads(line))
        for line in setting.run(
            "translate", "--model", model, "--format", "json", text=source
        ).splitlines()
    ]
    recorded = [
        line.split("\t")
        for line in (setting.golden / "multi30k-dynamicconv" / "test_2016.beam5.tsv")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    assert len(found) == len(recorded) == 1000
    equal = sum(a["tokens"] == b[2] for a, b in zip(found, recorded))
    print(f"hypotheses equal: {equal} of 1000")
    assert equal >= 995
    raw = setting.raw("test_2016_flickr.en").lower()
    text = "".join(item["text"] + "\n" for item in found)
    score = bleu(setting, text, raw, "13a")
    print(f"BLEU of the text: {score:.2f}, recorded {TEXT_BLEU}")
    assert abs(score - TEXT_BLEU) <= 0.1
    tokens = "".join(item["tokens"].replace("@@ ", "") + "\n" for item in found)
    reference = setting.run("tokenize", "--language", "en", "--lowercase", text=raw)
    score = bleu(setting, tokens, reference, "none")
    print(f"BLEU of the tokens: {score:.2f}, recorded {TOKEN_BLEU}")
    assert abs(score - TOKEN_BLEU) <= 0.1


def dictionaries(golden):
    if (golden / "dict.txt").exists():
        return ["--dictionary", golden / "dict.txt"]
    source, target = sorted(golden.glob("dict.*.txt"))
    if source.name == "dict.de.txt":  # de to en
        assert source.read_bytes() == target.read_bytes()
    return ["--source-dictionary", source, "--target-dictionary", target]


def check_export(setting, golden):
    """What the program exports is what the checkpoint held."""
    import torch

    model = setting.folder / golden.name
    setting.run(
        *("import", "--checkpoint", golden / "model.pt"),
        *dictionaries(golden),
        *("--output", model),
    )
    exported = setting.folder / f"{golden.name}.pt"
    setting.run("export", "--format", "fairseq", model, exported)
    found = torch.load(exported, weights_only=True)["model"]
    wanted = torch.load(golden / "model.pt", weights_only=False)["model"]
    for name, value in wanted.items():
        if name.endswith(BOOKKEEPING) and name not in found:
            continue  # of another version of the reference code
        assert found[name].shape == value.shape, name
        assert found[name].dtype == value.dtype, name
        if not name.endswith("conv_bias"):  # uninitialised there
            assert torch.equal(found[name], value), name
    extra = set(found) - set(wanted)
    assert all(name.endswith(BOOKKEEPING) for name in extra), extra
    setting.run("export", "--format", "pytorch", model, exported)
    ours = torch.load(exported, weights_only=True)
    assert sum(value.numel() for value in ours.values()) == sum(
        value.numel()
        for value in {
            value.data_ptr(): value
            for name, value in wanted.items()
            if not name.endswith(BOOKKEEPING)
        }.values()
    )
    print(f"{golden.name}: {len(wanted)} tensors equal after export")


def write_large(path):
    """A DynamicConv model of 213 million float16 parameters, the paper's big
    one, as fairseq names them."""
    import argparse

    import torch

    d, ffn, heads, vocabulary = 1024, 4096, 16, 32768
    kernels = {"encoder": [3, 7, 15, 31, 31, 31, 31], "decoder": [3, 7, 15, 31, 31, 31]}
    generator = torch.Generator().manual_seed(1)
    state = {}

    def add(name, *shape):
        values = torch.randint(-999, 999, shape, dtype=torch.int16, generator=generator)
        state[name] = (values / 1024).half()

    def linear(name, rows, columns):
        add(f"{name}.weight", rows, columns)
        add(f"{name}.bias", rows)

    add("encoder.embed_tokens.weight", vocabulary, d)
    state["decoder.embed_tokens.weight"] = state["encoder.embed_tokens.weight"]
    for side, sizes in kernels.items():
        for i, size in enumerate(sizes):
            layer = f"{side}.layers.{i}."
            linear(layer + "linear1", 2 * d, d)
            add(layer + "conv.weight_linear.weight", heads * size, d)
            linear(layer + "linear2", d, d)
            linear(layer + "fc1", ffn, d)
            linear(layer + "fc2", d, ffn)
            norms = ["layer_norms.0", "layer_norms.1"]
            if side == "decoder":
                norms = ["conv_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"]
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    linear(f"{layer}encoder_attn.{part}", d, d)
            for norm in norms:
                add(f"{layer}{norm}.weight", d)
                add(f"{layer}{norm}.bias", d)
    arguments = argparse.Namespace(encoder_attention_heads=16, decoder_attention_heads=16)
    torch.save({"args": arguments, "model": state}, path)
    words = "".join(f"w{i} 1\n" for i in range(vocabulary - 4))
    path.with_suffix(".txt").write_text(words, encoding="utf-8")


def check_large(setting):
    """Peak memory of importing a large file: at most 1.3 times the file and
    150 MB."""
    path = setting.folder / "large.pt"
    subprocess.run([sys.executable, __file__, "--write-large", path], check=True)
    size = path.stat().st_size / 1e6
    output = setting.folder / "large"
    command = [setting.program, "import", "--checkpoint", path, "--output", output]
    command += ["--source-dictionary", path.with_suffix(".txt")]
    command += ["--target-dictionary", path.with_suffix(".txt")]
    # By a small process: one that is started inherits the peak of its starter.
    measured = subprocess.run(
        [sys.executable, __file__, "--measure", *map(str, command)],
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    seconds, peak = map(float, measured.stdout.split())
    information = setting.run("info", output)
    assert "parameters: 213237760" in information, information
    print(f"{size:.0f} MB imported in {seconds:.1f} s, peak memory {peak:.0f} MB")
    assert peak <= 1.3 * size + 150
    path.unlink()


def measure(command):
    """Prints the seconds that a command takes and its peak memory in MB."""
    start = time.monotonic()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(seconds, peak * 1024 / 1e6)


def main():
    if sys.argv[1] == "--write-large":
        write_large(pathlib.Path(sys.argv[2]))
        return 0
    if sys.argv[1] == "--measure":
        measure(sys.argv[2:])
        return 0
    program, source_dir = sys.argv[1], pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(source_dir / "tests/python"))
    from run_pytest import missing_modules

    missing = missing_modules("torch", "numpy")
    if missing:
        return missing
    with tempfile.TemporaryDirectory(prefix="seqconv-import-") as name:
        setting = Setting(program, source_dir, pathlib.Path(name))
        for folder in (setting.golden / "models", setting.data / "multi30k"):
            if not folder.is_dir():
                print(f"no golden models or data: {folder} is not a folder")
                required = os.environ.get("SEQCONV_GOLDEN_REQUIRED") == "1"
                return 1 if required else SKIPPED
        check_large(setting)
        check_translations(setting)
        folders = [p.parent for p in sorted(setting.golden.glob("*/model.pt"))]
        folders += [p.parent for p in sorted(setting.golden.glob("models/*/model.pt"))]
        assert len(folders) >= 5
        for golden in folders:
            check_export(setting, golden)
    return 0


if __name__ == "__main__":
    sys.exit(main())
