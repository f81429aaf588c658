#!/usr/bin/env python3
"""Imports checkpoints from the command line, translates raw text, and exports them
again.

    import_test.py PROGRAM

Models: those of $SEQCONV_GOLDEN, default tests/golden; their raw text lies beside
them, but for that of Multi30k, which $SEQCONV_DATA names. SEQCONV_LARGE_CHECKPOINT=1
measures the import of a file of 427 MB instead of 63. Without torch the test is
skipped (exit code 77), or fails where SEQCONV_PYTHON_REQUIRED=1.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "python")]
import golden_folders  # noqa: E402
import real_text  # noqa: E402
from peak_memory import peak_kilobytes  # noqa: E402
from run_pytest import missing_modules  # noqa: E402

BOOKKEEPING = ("conv_bias", "_float_tensor", "version")


class Setting:
    def __init__(self, program, folder):
        self.program = program
        self.folder = folder

    def run(self, *arguments, text=""):
        done = subprocess.run(
            [self.program, *map(str, arguments)],
            input=text,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


class RawText:
    """The test set of a model: raw lines, and what was recorded of their translations."""

    def __init__(self, golden):
        self.golden = golden
        recorded = json.loads((golden / "golden.json").read_text(encoding="utf-8"))
        self.languages = recorded.get("languages", ["de", "en"])
        (self.table,) = golden.glob("*.beam5.tsv")
        self.there, self.part = True, 1
        if "test" in recorded:
            self.source, self.target = (
                (golden / f"test.{language}").read_text(encoding="utf-8") for language in self.languages
            )
            self.bleu_of = recorded["test"]
            self.bleu_bound, self.share_equal = 1e-6, 1.0
        elif real_text.FOLDER:  # Multi30k; figures are of its README.md
            self.source, self.target = (
                real_text.read(f"multi30k/test_2016_flickr.{language}.xz") for language in self.languages
            )
            self.bleu_of = {"bleu_tokens": 39.74, "bleu_text": 39.71}
            self.bleu_bound, self.share_equal = 0.1, 0.995
            self.part = 4  # in it as many in a thousand are equal as in the whole
        else:
            self.there = False

    def import_model(self, setting, output):
        source, target = self.languages
        setting.run(
            *("import", "--checkpoint", self.golden / "model.pt"),
            *golden_folders.dictionaries(self.golden),
            *("--bpe-codes", self.golden / "bpecodes", "--tokenizer", "moses"),
            *("--source-language", source, "--target-language", target),
            *("--lowercase", "--output", output),
        )

    def hypotheses(self):
        lines = self.table.read_text(encoding="utf-8").splitlines()
        return [line.split("\t")[2] for line in lines]


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


def without_bpe(tokens):
    return (tokens + " ").replace("@@ ", "").rstrip()


def check_translations(setting, text):
    """Raw text through the imported model: all of a test set, and for LibTorch, which
    is to find the same, one line in `part`."""
    model = setting.folder / "text"
    text.import_model(setting, model)
    raw = text.target.lower()
    reference = setting.run("tokenize", "--language", text.languages[1], "--lowercase", text=raw)
    recorded = text.hypotheses()
    for backend, part in (("runtime", 1), ("libtorch", text.part)):
        flags = ["--model", model, "--backend", backend, "--format", "json", "--threads", 1]
        source = "".join(text.source.splitlines(keepends=True)[::part])
        answers = setting.run("translate", *flags, text=source)
        found = [best(json.loads(line)) for line in answers.splitlines()]
        assert len(found) == len(recorded[::part]) > 0
        equal = sum(a["tokens"] == b for a, b in zip(found, recorded[::part]))
        print(f"{text.golden.name}, {backend}: hypotheses equal: {equal} of {len(found)}")
        assert equal >= text.share_equal * len(found)
        if part > 1:
            continue
        check_bleu(setting, text, "bleu_text", "".join(item["text"] + "\n" for item in found), raw, "13a")
        tokens = "".join(without_bpe(item["tokens"]) + "\n" for item in found)
        check_bleu(setting, text, "bleu_tokens", tokens, reference, "none")


def check_bleu(setting, text, name, hypotheses, references, tokenizer):
    score = bleu(setting, hypotheses, references, tokenizer)
    print(f"{name}: {score:.4f}, recorded {text.bleu_of[name]}")
    assert abs(score - text.bleu_of[name]) <= text.bleu_bound


def check_all_translations(setting):
    texts = [RawText(golden) for golden in golden_folders.with_files("golden.json")]
    there = [text for text in texts if text.there]
    assert there, f"{texts[0].golden} wants the raw text that SEQCONV_DATA names"
    for text in there:
        check_translations(setting, text)


def present_names(state, exported):
    """Tensors of an older checkpoint under the names of an exported one."""
    result = {}
    for name, value in state.items():
        present = name.replace("layer_norms.0", "layer_norm1").replace("layer_norms.1", "layer_norm2")
        if name in exported or "in_proj_" not in name:
            result[name if name in exported else present] = value
            continue
        for part, rows in zip("qkv", value.chunk(3)):
            result[name.replace("in_proj_", f"{part}_proj.")] = rows
    return result


def check_export(setting, golden):
    """What the program exports is what the checkpoint held."""
    import torch

    model = setting.folder / golden.name
    setting.run(
        *("import", "--checkpoint", golden / "model.pt"),
        *golden_folders.dictionaries(golden),
        *("--output", model),
    )
    exported = setting.folder / f"{golden.name}.pt"
    setting.run("export", "--format", "fairseq", model, exported)
    found = torch.load(exported, weights_only=True)["model"]
    held = torch.load(golden / "model.pt", weights_only=False)["model"]
    wanted = present_names(held, found)
    for name, value in wanted.items():
        if name.endswith(BOOKKEEPING) and name not in found:
            continue  # of another version of the reference code
        assert found[name].shape == value.shape, name
        assert found[name].dtype == value.dtype, name
        if not name.endswith("conv_bias"):  # uninitialised there
            assert torch.equal(found[name], value), name
    extra = {name for name in set(found) - set(wanted) if not name.endswith(BOOKKEEPING)}
    if extra:  # present fairseq repeats a tied table
        assert extra == {"decoder.output_projection.weight"}, extra
        assert torch.equal(found[extra.pop()], found["decoder.embed_tokens.weight"])
    setting.run("export", "--format", "pytorch", model, exported)
    ours = torch.load(exported, weights_only=True)
    assert sum(value.numel() for value in ours.values()) == sum(
        value.numel()
        for value in {
            value.data_ptr(): value for name, value in held.items() if not name.endswith(BOOKKEEPING)
        }.values()
    )
    print(f"{golden.name}: {len(wanted)} tensors equal after export")


# What is changed in a checkpoint of tests/golden/models, and what is said of it:
# arguments of its training, tensors that it loses.
CONTRADICTIONS = (
    ("lm-lightconv-widths", {"decoder_conv_dim": 16}, (), "decoder_conv_dim = 16 contradicts the shape"),
    ("lm-lightconv-widths", {"decoder_input_dim": 16}, (), "decoder_input_dim = 16 contradicts the shape"),
    ("lm-lightconv-widths", {"decoder_output_dim": 16}, (), "decoder_output_dim = 16 contradicts the shape"),
    ("lm-lightconv-widths", {}, ("project_in_dim",), "decoder_embed_dim = 16 contradicts the shape"),
    ("lm-lightconv-widths", {}, ("project_out_dim",), "decoder_output_dim = 20 is not the width"),
    ("lm-lightconv-widths", {"decoder_output_dim": 16}, ("project_out_dim",), "model.output_dim to be equal"),
    ("mixed-norm-encdec", {"encoder_normalize_before": False}, (), "encoder_normalize_before contradicts"),
    ("mixed-norm-encdec", {"decoder_normalize_before": True}, (), "decoder_normalize_before contradicts"),
    ("talk-encdec-conv-widths", {"encoder_conv_dim": 16}, (), "encoder_conv_dim = 16 contradicts the shape"),
)


def check_contradictions(setting):
    import torch

    for name, arguments, lost, wanted in CONTRADICTIONS:
        golden = TESTS / "golden/models" / name
        content = torch.load(golden / "model.pt", weights_only=False)
        vars(content["args"] or content["cfg"]["model"]).update(arguments)
        for tensor in lost:
            del content["model"][f"decoder.{tensor}.weight"]
        path = setting.folder / "contradiction.pt"
        torch.save(content, path)
        command = [setting.program, "import", "--checkpoint", path, *golden_folders.dictionaries(golden)]
        done = subprocess.run(
            [*map(str, command), "--output", str(setting.folder / "contradiction")],
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 1 and wanted in done.stderr, (wanted, done.stderr)
    print(f"{len(CONTRADICTIONS)} checkpoints that contradict themselves refused")


# Width, feed-forward width, words: the big model of the paper, and a narrow one.
LARGE, NARROW = (1024, 4096, 32768), (384, 1536, 16384)


def write_large(path, d, ffn, vocabulary):
    """A DynamicConv model in float16 with as many layers and taps as the paper's big
    one, as fairseq names them. The number of its parameters."""
    import argparse

    import torch

    heads = 16
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
    arguments = argparse.Namespace(encoder_attention_heads=heads, decoder_attention_heads=heads)
    torch.save({"args": arguments, "model": state}, path)
    words = "".join(f"w{i} 1\n" for i in range(vocabulary - 4))
    path.with_suffix(".txt").write_text(words, encoding="utf-8")
    return sum(value.numel() for name, value in state.items() if name != "decoder.embed_tokens.weight")


def check_large(setting):
    """Peak memory of importing a large file: at most 0.4 times the file and 40 MB, as
    the largest tensor decides."""
    path = setting.folder / "large.pt"
    sizes = LARGE if os.environ.get("SEQCONV_LARGE_CHECKPOINT") == "1" else NARROW
    parameters = write_large(path, *sizes)
    size = path.stat().st_size / 1e6
    output = setting.folder / "large"
    command = [setting.program, "import", "--checkpoint", path, "--output", output]
    command += ["--source-dictionary", path.with_suffix(".txt")]
    command += ["--target-dictionary", path.with_suffix(".txt")]
    start = time.monotonic()
    peak = peak_kilobytes(command) * 1024 / 1e6
    seconds = time.monotonic() - start
    information = setting.run("info", output)
    assert f"parameters: {parameters}\n" in information, information
    print(f"{size:.0f} MB imported in {seconds:.1f} s, peak memory {peak:.0f} MB")
    assert peak <= 0.4 * size + 40
    path.unlink()


def main():
    missing = missing_modules("torch", "numpy")
    if missing:
        return missing
    with tempfile.TemporaryDirectory(prefix="seqconv-import-") as name:
        setting = Setting(sys.argv[1], pathlib.Path(name))
        check_large(setting)
        check_all_translations(setting)
        check_contradictions(setting)
        for golden in golden_folders.with_files("model.pt"):
            check_export(setting, golden)
    return 0


if __name__ == "__main__":
    sys.exit(main())
