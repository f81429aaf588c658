"""Bad configurations and training data of translation models."""

import json
import os
import tomllib

import support
from hostile.case import GARBAGE, LONG, Case, written
from support import run


def configuration_files():
    nested = "x = " + "[" * 5000 + "]" * 5000
    tables = "[" + ".".join("a" * 3000) + "]\n"
    itself = support.scratch() / "itself.toml"
    for name, content, code, wanted in (
        ("empty", "", 2, "train_source"),
        ("garbage", GARBAGE, 2, "garbage"),
        ("no TOML", "[data\n", 2, ":1"),
        ("unknown section", "[dta]\n", 2, "data"),
        ("unknown key", "[model]\ndimm = 3\n", 2, "model.dim"),
        ("a table for a number", "[model]\ndim = {a = 1}\n", 2, "model.dim"),
        ("a number for a table", "model = 3\n", 2, "model"),
        ("twice", "[model]\ndim = 1\ndim = 2\n", 2, ":3"),
        ("a date", "[model]\ndim = 2020-01-01\n", 2, "date"),
        ("deep lists", nested, 2, "deep lists"),
        ("deep tables", tables, 2, ""),
        ("include of nothing", 'include = "nowhere.toml"\n', 1, "nowhere.toml"),
        ("include of itself", f'include = "{itself}"\n', 2, "include"),
        ("include of a number", "include = 3\n", 2, "include"),
        ("invalid UTF-8", b'[data]\ntrain_source = "\xff"\n', 2, ""),
        ("NUL", b"[data]\n\0\n", 2, ""),
        ("a long line", "# " + "x" * LONG + "\n[model]\ndim = []\n", 2, "dim"),
    ):
        path = written(f"config {name}.toml", content)
        if "itself" in name:
            path = written("itself.toml", content)
        yield Case(f"configuration: {name}", ["train", path, "--dry-run"], code,
                   wanted)
    yield Case("configuration missing", ["train", "nowhere.toml"], 1,
               "nowhere.toml")
    yield Case("configuration is a folder", ["train", support.scratch()], 1)
    for assignment in ("", "=", "model.dim", "=3", "model..dim=3", ".=1",
                       "model.dim.x=3", "nonsense=1", "model.dmi=3"):
        yield Case(f"--set {assignment!r}",
                   ["train", support.config(), "--set", assignment,
                    "--dry-run"], 2)


def leaves(table, path=""):
    for key, value in table.items():
        where = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from leaves(value, where)
        else:
            yield where, value


def configuration_values():
    """Every key with values of the wrong type or size."""
    keys = tomllib.loads(run("train", "--help-config").out.decode())
    output = support.scratch() / "never"
    base = ["train", support.config(), "--dry-run", "--output", output, "--set"]
    for key, value in leaves(keys):
        wrong = '"x"' if isinstance(value, (bool, int, float)) else "7"
        if key.endswith(("kernel_sizes", "max_offsets")):
            wrong = '"x"'
        yield Case(f"{key} of the wrong type", [*base, f"{key}={wrong}"],
                   2, key)
        if isinstance(value, bool) or isinstance(value, (str, list)):
            continue
        for number in ("-5", str(2**62), "nan"):
            # Some of these are values that a key may have.
            yield Case(f"{key} = {number}", [*base, f"{key}={number}"],
                       (0, 1, 2))


def contradictions():
    base = ["train", support.config(), "--dry-run", "--set"]
    for assignments, *wanted in (
        (["model.encoder.kernel_sizes=[3,3,3]"], "kernel_sizes"),
        (["model.encoder.kernel_sizes=[]"], "kernel_sizes", "must have 1 or", "the list is empty ([])"),
        (["model.encoder.block=[\"talk\"]", "model.encoder.kernel_sizes=[]"],
         "max_offsets", "the list is empty ([])"),
        (["model.encoder.kernel_sizes=[3,-3]"], "kernel_sizes"),
        (["model.encoder.kernel_sizes=0"], "kernel_sizes"),
        (["model.decoder.max_offsets=[0,0]"], "max_offsets"),
        (["model.decoder.max_offsets=[0,-3]"], "max_offsets"),
        (["model.decoder.max_offsets=[1,2,3]"], "max_offsets"),
        (["model.encoder.heads=3"], "heads"),
        (["model.encoder.heads=0"], "heads"),
        (["model.decoder.conv_heads=5"], "heads"),
        (["model.encoder.block=[\"talk\"]"], "max_offsets"),
        (["model.encoder.block=[\"talk\",\"talk\",\"talk\"]"], "block"),
        (["model.encoder.block=\"transformer\""], "self_attention"),
        (["model.encoder.block=self_attention"], "glu"),
        (["model.encoder.block=[\"cnn\",\"lightconv\"]"], "glu"),
        (["model.encoder.block=average_attention"], "kernel_sizes"),
        (["model.encoder.glu=[true,true,true]"], "glu"),
        (["model.decoder.normalization=[\"softmax\",\"l2\"]"], "talk"),
        (["model.encoder.normalization=softmin"], "normalization"),
        (["model.encoder.normalization=[\"\"]"], "normalization"),
        (["model.encoder.layers=1", "model.encoder.block=cnn",
          "model.encoder.glu="], "model.encoder.glu = true"),
        (["model.encoder.layers=1", "model.encoder.block=lightconv",
          "model.encoder.conv_dim=[0,0]"], "conv_dim must have 1 entry, but got 2"),
        (["model.encoder.normalization=tanh",
          "model.encoder.renormalize_edges=true"], "renormalize_edges"),
        (["model.encoder.conv_heads=[2,5]"], "conv_heads"),
        (["model.encoder.conv_dim=15"], "model.encoder.conv_dim"),
        (["model.encoder.conv_dim=[16,16,16]"], "conv_dim"),
        (["model.decoder.conv_dim=-16"], "conv_dim"),
        (["model.encoder.ffn_dim=-1"], "model.encoder.ffn_dim"),
        (["model.encoder.norm=both"], "model.encoder.norm", "'auto'"),
        (["model.positions=rotary"], "model.positions", "'none'"),
        (["model.encoder.positions=both"], "model.encoder.positions", "'auto'"),
        (["model.encoder.max_positions=1"], "model.encoder.max_positions"),
        (["model.decoder.max_positions=-2"], "model.decoder.max_positions"),
        (["model.input_dim=8"], "model.input_dim", "tie"),
        (["model.output_dim=8"], "model.output_dim", "tie"),
        (["model.input_dim=8", "model.output_dim=8"], "input_dim", "tie"),
        (["model.input_dim=-1"], "model.input_dim"),
        (["model.encoder.average_ffn=false"], "average_ffn"),
        (["model.encoder.query=[\"conv_input\",\"block_input\"]"], "query"),
        (["model.encoder.short_conv.place=qkv"], "short_conv.place", "self_attention"),
        (["model.encoder.short_conv.place=[\"block\"]",
          "model.encoder.short_conv.kernel_size=0"], "short_conv.kernel_size"),
        (["model.decoder.short_conv.place=block",
          "model.decoder.short_conv.taps=dynamic"], "short_conv.head_channels"),
        (["model.encoder.short_conv.rank=3"], "short_conv.rank"),
        (["model.encoder.layers=4", "model.encoder.short_conv.place=block",
          "model.encoder.short_conv.kernel_size=[3,3]"],
         "short_conv.kernel_size must have 1 or 4 entries"),
        (["model.encoder.short_conv=3"], "short_conv"),
        (["model.encoder.short_conv.width=3"], "short_conv"),
        (["model.encoder.layers=0"], "layers"),
        (["model.dim=15"], ""),
        (["model.dim=2"], "dim"),
        (["text.joined=false"], "tie"),
        (["model.dropout=1.5"], "model.dropout"),
        (["model.dropout=-0.1"], "model.dropout"),
        (["schedule.warmup_updates=0"], "warmup_updates"),
        (["training.max_updates=0"], "max_updates"),
        (["training.label_smoothing=1"], "label_smoothing"),
        (["training.accumulate=0"], "accumulate"),
        (["training.ema_decay=1"], "ema_decay must be >= 0 and < 1"),
        (["training.ema_decay=1.5"], "ema_decay"),
        (["training.ema_decay=-0.1"], "ema_decay"),
        (["training.ema_decay=nan"], "ema_decay"),
        (["training.ema_decay=inf"], "ema_decay"),
        (["training.ema_decay=\"0.9\""], "ema_decay"),
        (["training.ema_decay=true"], "ema_decay"),
        (["training.ema_decay=[0.9]"], "ema_decay"),
        (["training.emadecay=0.9"], "training.ema_decay"),
        (["decoding.stepwise_length_penalty=1"], "stepwise_length_penalty"),
        (["batching.max_tokens=0"], "max_tokens"),
        (["decoding.beam=0"], "beam"),
        (["decoding.n_best=9"], "n_best"),
        (["decoding.length_penalty=nan"], "length_penalty"),
        (["optimizer.beta1=1"], "beta1"),
        (["optimizer.kind=\"sgd\""], "adam"),
        (["text.subword=wordpiece"], "sentencepiece"),
        (["text.subword=bpe", "text.subword_size=0"], "subword_size"),
        (["text.tokenizer=mosse"], "moses"),
        (["text.tokenizer=moses"], "text.source_language"),
        (["text.tokenizer=moses", "text.source_language=de"],
         "text.target_language"),
        (["text.tokenizer=moses", "text.source_language=german",
          "text.target_language=en"], "text.source_language", "'german'"),
        (["text.tokenizer=moses", "text.source_language=de",
          "text.target_language=en", "text.subword=characters"], "characters"),
        (["text.source_language=de"], "text.tokenizer"),
        (["text.moses_escape=true"], "text.tokenizer"),
        (['text.protect=["names"]'], "placeholders"),
        (['text.protect=["urls", "urls"]'], "text.protect", "twice"),
    ):
        arguments = list(base)
        for assignment in assignments:
            arguments += [assignment, "--set"]
        yield Case(f"contradiction {assignments}", arguments[:-1], 2, *wanted)


def training_data():
    source = support.data() / "train.src"
    lines = source.read_bytes().splitlines(keepends=True)
    output = support.scratch() / "data-output"

    def case(name, code, *wanted, key="train_source", value=None,
             content=None, more=()):
        if content is not None:
            value = written(f"corpus-{name}", content)
        assignments = [f"data.{key}={json.dumps(os.fspath(value))}", *more]
        arguments = ["train", support.config(), "--output",
                     f"{output}-{name.replace(' ', '-')}"]
        for assignment in assignments:
            arguments += ["--set", assignment]
        return Case(f"training data: {name}", arguments, code, *wanted)

    yield case("missing", 1, "nowhere", value="nowhere")
    yield case("missing target", 1, "nowhere", key="train_target",
               value="nowhere")
    yield case("missing validation", 1, "nowhere", key="valid_source",
               value="nowhere")
    yield case("a folder", 1, value=support.scratch())
    yield case("one line short", 1, "199", "200", content=b"".join(lines[1:]))
    yield case("one line long", 1, "201", "200",
               content=b"".join(lines + lines[:1]))
    yield case("empty file", 1, content=b"")
    yield case("blank lines", 1, content=b"\n" * 200)
    yield case("invalid UTF-8", 1, ":3",
               content=b"".join(lines[:2] + [b"1 \xff\n"] + lines[3:]))
    yield case("NUL", 1, ":2",
               content=b"".join(lines[:1] + [b"1 \0 2\n"] + lines[2:]))
    yield case("garbage", 1, "garbage", content=GARBAGE)
    yield case("UTF-16", 1, ":1",
               content=b"".join(lines).decode().encode("utf-16"))
    yield case("CRLF", 0, content=b"".join(l[:-1] + b"\r\n" for l in lines))
    yield case("byte-order mark", 0,
               content=b"\xef\xbb\xbf" + b"".join(lines))
    yield case("no final newline", 0, content=b"".join(lines)[:-1])
    yield case("a long word", 0,
               content=b"".join([b"x" * LONG + b"\n"] + lines[1:]))
    yield case("a long line", 0,
               content=b"".join([b"1 " * LONG + b"\n"] + lines[1:]))
    yield case("everything too long", 1, content=b"1 2 3\n" * 200,
               more=["model.max_positions=2"])
    # As many pieces as the text gives, and a warning.
    yield case("SentencePiece too large", 0,
               value=source,
               more=["text.subword=sentencepiece", "text.subword_size=30000"])
    yield case("codes missing", 1, "nowhere", value=source,
               more=["text.subword=bpe", "text.bpe_codes=nowhere"])
    yield case("garbage SentencePiece", 1, "garbage.spm", value=source,
               more=["text.subword=sentencepiece",
                     f"text.sentencepiece_model={written('garbage.spm', GARBAGE)}"])
    yield case("garbage dictionary", 1, "garbage.dict", value=source,
               more=[f"text.source_dictionary={written('garbage.dict', GARBAGE)}"])
    yield case("dictionary without counts", 1, ":1", value=source,
               more=[f"text.source_dictionary={written('nocount.dict', 'a')}"])
    yield case("dictionary with twins", 1, ":2", value=source,
               more=["text.source_dictionary="
                     f"{written('twins.dict', 'a 1' + chr(10) + 'a 1')}"])


def output_folders():
    a_file = written("a-file", "here")
    for output in (a_file, a_file / "below", "/proc/seqconv", "/dev/null/x"):
        yield Case(f"train into {output}",
                   ["train", support.config(), "--output", output], 1,
                   os.fspath(output).split("/")[-1])
        yield Case(f"average into {output}",
                   ["average", "--output", output, support.model()], 1)
    yield Case("train over a model",
               ["train", support.config(), "--output", support.model()],
               (1, 2), "--resume")
    yield Case("resume nothing",
               ["train", support.config(), "--resume", "--output",
                support.scratch() / "not-there"], (1, 2), "resume")
    yield Case("start from nothing",
               ["train", support.config(), "--init-from", "nowhere", "--output",
                support.scratch() / "from-nothing"], 1, "nowhere")
    for key, value in (("lowercase", "true"), ("subword", "characters"),
                       ("source_dictionary", written("foreign.dict", "a 1"))):
        yield Case(f"start from a model with another {key}",
                   ["train", support.config(), "--init-from", support.model(),
                    "--set", f"text.{key}={value}", "--output",
                    support.scratch() / f"from-another-{key}"], 2, f"text.{key}")
    yield Case("average a training state",
               ["average", "--output", support.scratch() / "of-state",
                support.model() / "training/state.safetensors"], 1,
               "state.safetensors")
    yield Case("average a file by another name",
               ["average", "--output", support.scratch() / "of-name",
                support.model() / "dict.txt"], 1, "*.safetensors")
    for decay in ("0", "-0.5", "1.01", "nan", "inf", "1e999", "0.9x", ""):
        yield Case(f"average with the decay {decay!r}",
                   ["average", "--output", support.scratch() / "of-decay",
                    "--ema-decay", decay, support.model(), support.model()], 2,
                   "--ema-decay")
    for key, value in (("ema_decay", "0.9"), ("best_by", "chrf")):
        yield Case(f"resume with another {key}",
                   ["train", support.config(), "--resume", "--output",
                    support.copy_model(f"another-{key}"), "--set",
                    f"training.{key}={value}"], 2,
                   f"cannot resume: training.{key} was")
    yield Case("average into itself",
               ["average", "--output", support.model(), support.model()], 1,
               "--output")


FAMILIES = [
    configuration_files,
    configuration_values,
    contradictions,
    training_data,
    output_folders,
]
