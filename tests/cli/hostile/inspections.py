"""Bad input of inspecting a model."""

import shutil

import support
from hostile.case import GARBAGE, LONG, Case, written

RECORD = '{"kind":"train","epoch":1,"update":1,"nll_base2":2.0}\n'


def arguments():
    good = ["inspect", "--model", support.model()]
    out = support.scratch() / "page.html"
    folder = support.scratch()
    beside = [*good, "--output", out]
    table = [
        (["inspect"], 2, "--model"),
        (good, 2, "--output"),
        ([*good, "--output", ""], 2, "--output"),
        (["inspect", "--model", folder / "nowhere", "-o", out], 1, "nowhere"),
        (["inspect", "--model", "", "-o", out], 2, "--model"),
        ([*beside, "--format", "pdf"], 2, "pdf", "svg"),
        ([*beside, "--text", ""], 2, "--text"),
        ([*beside, "--text", " \t\u3000"], 2, "--text"),
        ([*beside, "--text", "1 " * 201], 2, "201", "200"),
        ([*beside, "--text", "x" * LONG], (0, 1)),
        ([*beside, "--text", b"\xff\xfe"], (0, 1, 2)),
        ([*beside, "--text", "1", "--format", "svg"], 2, "--text"),
        ([*beside, "--text", "1", "2"], 2, "unexpected"),
        ([*beside, "--run"], 2, "--run"),
        ([*beside, "--run", folder / "nowhere"], 1, "nowhere", "metrics.jsonl"),
        ([*beside, "--run", folder], 1, "metrics.jsonl"),
        ([*beside, *["--run", support.model()] * 8], 2, "at most 8", "9"),
        ([*good, "--output", folder / "no" / "page.html"], 1, "page.html"),
        ([*good, "--output", folder], 1, str(folder)),
        ([*good, "--output", "/dev/full"], 1, "/dev/full"),
        ([*good, "--output", support.model() / "config.json"], 1, "config.json"),
        ([*good, "--output", support.model() / "model.safetensors"], 1,
         "model.safetensors"),
        ([*good, "--format", "svg", "--output", support.model()], 1, "--output"),
        ([*good, "--format", "svg", "--output", support.config()], 1,
         support.config().name),
    ]
    for number, (command, code, *wanted) in enumerate(table):
        yield Case(f"inspect {number} {command[3:]}"[:200], command, code, *wanted)


def damaged_runs():
    page = support.scratch() / "damaged.html"
    table = [
        ("empty", b"", 1, "no record"),
        ("garbage", GARBAGE, 1, "no record"),
        ("arrays", b"[1]\n" * 3, 1, "no record"),
        ("deep", b'{"kind":' + b"[" * LONG + b"\n", 1, "no record"),
        ("start alone", b'{"kind":"start","update":0}\n', 1, "no record"),
        ("no update", b'{"kind":"train"}\n', 1, "'update'"),
        ("negative", b'{"kind":"train","update":-1}\n', 1, "'update'"),
        ("endless", b'{"kind":"train","update":1e999}\n', 1, "'update'"),
        ("half a line", (RECORD + RECORD[:20]).encode(), 0),
        ("long line", (RECORD + "x" * LONG).encode(), 0),
        ("a huge number alone", RECORD.replace("2.0", "1e308").encode(), 1,
         "no record"),
        ("odd kind", (RECORD + RECORD.replace("train", "\\u0000")).encode(), 0),
    ]
    for name, content, code, *wanted in table:
        run = written(f"damaged {name}.jsonl", content)
        yield Case(
            f"inspect a run: {name}",
            ["inspect", "--model", support.model(), "--run", run, "-o", page],
            code, *wanted)


def damaged_models():
    page = support.scratch() / "spoilt.html"
    unread = support.copy_model("inspected-without-parameters")
    (unread / "model.safetensors").unlink()
    spoilt = support.copy_model("inspected-garbage")
    (spoilt / "model.safetensors").write_bytes(GARBAGE)
    silent = support.copy_model("inspected-without-run")
    shutil.rmtree(silent / "training")
    for name, model, code, *wanted in [
        ("no parameters", unread, 1, "model.safetensors"),
        ("garbage", spoilt, 1, "model.safetensors"),
        ("no run", silent, 0),
    ]:
        yield Case(f"inspect a model: {name}",
                   ["inspect", "--model", model, "-o", page], code, *wanted)
    yield Case("inspect no curves",
               ["inspect", "--model", silent, "--format", "svg", "-o",
                support.scratch() / "curves"], 1, "no curves")
    language = support.language_model()
    yield Case("inspect a language model: unknown symbols",
               ["inspect", "--model", language, "--text", "\u4e00", "-o", page],
               1, "--text")
    yield Case("inspect a language model: blank",
               ["inspect", "--model", language, "--text", "  ", "-o", page],
               2, "--text")


FAMILIES = [arguments, damaged_runs, damaged_models]
