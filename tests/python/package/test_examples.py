"""The language models in python/torch/examples, the pages about them, and their types."""

import os
import pathlib
import re
import runpy
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

import seqconv_torch

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = ROOT / "python/torch/examples"
PAGES = {
    "char_lm": ROOT / "docs/char_lm.md",
    "short_conv_attention": ROOT / "docs/short_conv_attention.md",
    "speculative": ROOT / "docs/speculative_decoding.md",
}


@pytest.fixture(autouse=True)
def beside_each_other(monkeypatch):
    """They import each other, as programs in one folder do."""
    monkeypatch.syspath_prepend(EXAMPLES)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small that threads only wait for each other
    yield
    torch.set_num_threads(threads)
    for name in PAGES:
        sys.modules.pop(name, None)


@pytest.fixture
def text(tmp_path):
    """A text, in two files of a folder."""
    for i in range(2):
        words = " ".join(str(n * n) for n in range(1000 * i, 1000 * i + 300))
        (tmp_path / f"{i}.txt").write_text(words, encoding="utf-8")
    return tmp_path


def example(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.parametrize(
    "name, options",
    [("char_lm", []), ("short_conv_attention", ["--taps", "static"]),
     ("short_conv_attention", []), ("speculative", ["--rows", "2"])],
)  # fmt: skip
def test_each_runs(name, options, text, monkeypatch, capsys):
    program = EXAMPLES / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(program), "--text", str(text), "--updates=2", "--length=20",
                                      *options])  # fmt: skip
    runpy.run_path(str(program), run_name="__main__")
    output = capsys.readouterr().out
    assert output.startswith("update 0: loss 5.") and len(output) > 40


def test_the_text_is_of_every_debian_or_must_be_named(text):
    names = example("char_lm")
    (text / "again.txt").symlink_to(text / "0.txt")
    whole = b"".join((text / f"{i}.txt").read_bytes() for i in range(2))
    assert bytes(names["read"](text).tolist()) == whole
    assert bytes(names["read"](text / "1.txt").tolist()) == (text / "1.txt").read_bytes()
    if names["LICENCES"].exists():
        assert len(names["read"](names["LICENCES"])) > 100_000
    for wrong in (text / "nothing", text / "empty"):
        (text / "empty").touch()
        with pytest.raises(SystemExit, match="--text must name a text of 1000 bytes and more, but"):
            names["read"](wrong)


def test_what_is_written_by_steps_is_what_the_whole_would_write():
    names = example("char_lm")
    model, written = names["CharLM"](32, (2, 5)).double(), b"abc"
    torch.manual_seed(5)
    by_steps = names["write"](model, "abc", 30)
    torch.manual_seed(5)
    with torch.no_grad():
        for _ in range(30):
            logits = model(torch.tensor([list(written)]))[:, -1]
            written += bytes([int(torch.multinomial((1.5 * logits).softmax(-1), 1))])
    assert by_steps == written.decode(errors="replace")


@pytest.mark.parametrize("taps", ["none", "static", "dynamic"])
def test_attention_writes_by_steps_what_the_whole_would_write(taps):
    names = example("short_conv_attention")
    model, token = names["AttentionLM"](64, 2, taps).double(), torch.randint(256, (3, 7))
    if taps == "dynamic":  # which begin at zero
        for attention in model.attend:
            torch.nn.init.normal_(attention.conv.predict.weight)
    written, past = token, {}
    with torch.no_grad():
        state = seqconv_torch.ModuleState(model, rows=3) if taps != "none" else None
        for _ in range(6):
            first = written.shape[1] - token.shape[1]
            assert state is None or state.position == first
            logits = (state or model)(token, first, past)
            assert_close(logits, model(written)[:, -token.shape[1] :])
            token = logits[:, -1:].argmax(-1)
            written = torch.cat([written, token], 1)


def test_dynamic_taps_begin_as_the_static_ones():
    names = example("short_conv_attention")
    torch.manual_seed(3)
    dynamic = names["Attention"](64, 2, "dynamic")
    torch.manual_seed(3)
    static = names["Attention"](64, 2, "static")
    static.load_state_dict(dynamic.state_dict(), strict=False)
    x = torch.randn(2, 9, 64)
    assert_close(dynamic(x), static(x))


@pytest.mark.parametrize("drafts", [1, 4])
@pytest.mark.parametrize("kind", ["itself", "another", "a near one"])
def test_drafts_change_nothing_but_the_number_of_steps(kind, drafts):
    names = example("speculative")
    model, other = (names["CharLM"](32, sizes).double() for sizes in ((3, 6), (4,)))
    if kind == "a near one":
        other = names["CharLM"](32, (3, 6)).double()
        with torch.no_grad():
            for theirs, ours in zip(other.parameters(), model.parameters()):
                theirs.copy_(ours + 0.01 * torch.randn_like(ours))
    drafter = model if kind == "itself" else other
    prompt = torch.randint(256, (3, 8))
    with torch.no_grad():
        wanted = names["plain"](model, prompt, 40)
        found, accepted = names["speculative"](model, drafter, prompt, 40, drafts)
    assert torch.equal(found, wanted)
    low, high = {"itself": (1, 1), "another": (0, 0.5), "a near one": (0.05, 0.98)}[kind]
    assert low * drafts <= accepted <= high * drafts


def blocks_of(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_its_page_is_its_own_and_runs(name):
    """Definitions are the example's, to the letter, and what else a page shows runs after
    them."""
    code = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    names, blocks = example(name), blocks_of(PAGES[name])
    assert len(blocks) >= 2
    own = [block for block in blocks if re.match(r"(@|class |def )", block)]
    assert own and all(block in code for block in own)
    names["text"] = torch.randint(256, (2000,))
    for block in blocks:
        exec(compile(block, str(PAGES[name]), "exec"), names)


def mypy(*arguments, cwd):
    """With a cache in the build folder: torch takes a while."""
    site = pathlib.Path(seqconv_torch.__file__).parents[1]
    cache = pathlib.Path(os.environ["SEQCONV_BINARY_DIR"]) / "mypy"
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", f"--cache-dir={cache}",
         f"--python-executable={sys.executable}", *arguments],
        cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, "MYPYPATH": str(site)},
    )  # fmt: skip


def test_the_package_and_its_examples_have_strict_types(tmp_path):
    site = pathlib.Path(seqconv_torch.__file__).parents[1]
    done = mypy("-p", "seqconv_torch", cwd=site)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    done = mypy(*sorted(EXAMPLES.glob("*.py")), cwd=EXAMPLES)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import torch, seqconv_torch\n"
        "state = seqconv_torch.ModuleState(torch.nn.ReLU(), rows='two')\n"
        "state.rollback('one')\n"
        "seqconv_torch.LightConv(4).step(torch.zeros(1), torch.zeros(1), '0')\n",
        encoding="utf-8",
    )
    done = mypy(wrong, cwd=tmp_path)
    assert re.findall(r"wrong.py:(\d): error", done.stdout) == ["2", "3", "4"], done.stdout
