"""Bad input of `seqconv import` and `seqconv export`."""

import shutil

from hostile.case import Case, written
from support import ROOT, run, scratch

DATA = ROOT / "tests" / "model" / "data"
DICTIONARY = DATA / "dict.txt"
BOTH = ("--source-dictionary", DICTIONARY, "--target-dictionary", DICTIONARY)


def import_case(name, code, *wanted, checkpoint="published.pt", flags=BOTH, output=None):
    output = output or scratch() / "import" / name.replace(" ", "_")
    path = DATA / checkpoint if isinstance(checkpoint, str) else checkpoint
    arguments = ["import", "--checkpoint", path, "--output", output, *flags]
    return Case(f"import: {name}", arguments, code, *wanted)


def checkpoints_to_import():
    whole = (DATA / "published.pt").read_bytes()
    legacy = (DATA / "published_2019.pt").read_bytes()
    yield import_case("no file", 1, "nowhere.pt", checkpoint="nowhere.pt")
    yield import_case("a folder", 1, "data", checkpoint=DATA)
    for name, content in {
        "empty": b"",
        "text": b"this is no checkpoint\n" * 99,
        "a zip archive": b"PK\x03\x04" + bytes(100),
        "half a download": whole[: len(whole) // 2],
        "half of an old one": legacy[: len(legacy) // 2],
        "an old head alone": legacy[:200],
    }.items():
        path = written(name.replace(" ", "_") + ".pt", content)
        yield import_case(name, 1, path.name, checkpoint=path)
    damaged = bytearray(whole)
    damaged[whole.index(b"encoder.layers")] ^= 1
    path = written("damaged.pt", bytes(damaged))
    yield import_case("damaged", 1, "the archive is damaged", checkpoint=path)
    yield import_case("no arguments", 1, "--preset", checkpoint="bare.pt")
    yield import_case("no average", 1, "no moving average", flags=(*BOTH, "--ema"))


def import_flags():
    yield import_case("no dictionary", 2, "needs --source-dictionary", flags=())
    yield import_case(
        *("one dictionary", 2, "needs --target-dictionary"), flags=BOTH[:2]
    )
    yield import_case(
        "dictionary of a language model",
        *(2, "--dictionary is for language models"),
        flags=("--dictionary", DICTIONARY),
    )
    short = written("short.txt", b"one 1\n")
    yield import_case(
        "wrong dictionary",
        *(1, "short.txt: wrong dictionary for this checkpoint", "12 rows"),
        flags=("--source-dictionary", short, "--target-dictionary", DICTIONARY),
    )
    yield import_case("no codes", 1, "nothing.codes", flags=(*BOTH, "--bpe-codes", "nothing.codes"))
    yield import_case(
        "two kinds of subwords",
        *(2, "contradict"),
        flags=(*BOTH, "--bpe-codes", DICTIONARY, "--sentencepiece", DICTIONARY),
    )
    yield import_case("moses without languages", 2, "--source-language", flags=(*BOTH, "--tokenizer", "moses"))
    yield import_case("languages without moses", 2, "language", flags=(*BOTH, "--source-language", "de"))
    yield import_case("another tokenizer", 2, "moses", flags=(*BOTH, "--tokenizer", "mose"))
    yield import_case("no preset", 2, "lightconv_wmt_en_de_big", flags=(*BOTH, "--preset", "lightconv_big"))
    yield import_case("preset that does not fit", 1, "heads", checkpoint="bare.pt", flags=(*BOTH, "--preset", "lightconv_wmt_zh_en_big"))
    file = written("a_file", b"")
    yield import_case("output is a file", 1, "a_file", output=file)
    yield Case("import: nothing", ["import"], 2, "--checkpoint")


def exports():
    model = scratch() / "export_model"
    done = run("import", "--checkpoint", DATA / "published.pt", *BOTH, "-o", model)
    assert done.code == 0, done.message
    out = scratch() / "out.pt"
    command = ["export", "--format", "fairseq"]
    yield Case("export: fine", [*command, model, out], 0)
    yield Case("export: no model", [*command, DATA, out], 1, "is not a model folder")
    yield Case("export: no format", ["export", model, out], 2, "--format")
    yield Case("export: another format", ["export", "--format", "onnx", model, out], 2, "fairseq")
    copy = scratch() / "other-model"
    shutil.copytree(model, copy)
    (copy / "training").mkdir()
    for place, wanted in (
        (model / "model.safetensors", "would be lost"),
        (model / "config.json", "would replace a file"),
        (copy / "model.safetensors", "would replace a file"),
        (copy / "new.safetensors", "the name of a part"),
        (copy / "training" / "x.pt", "files of a training"),
    ):
        yield Case(f"export to {place.name}", [*command, model, place], 1, wanted)
    yield Case("export: nowhere", [*command, model, "/nowhere/out.pt"], 1, "/nowhere/out.pt")


FAMILIES = [
    checkpoints_to_import,
    import_flags,
    exports,
]
