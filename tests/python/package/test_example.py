"""The example in python/torch/examples and the code of docs/python_torch.md."""

import inspect
import pathlib
import re
import runpy

import pytest
import torch

import seqconv_torch

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLE = ROOT / "python/torch/examples/encoder_layer.py"
PAGE = ROOT / "docs/python_torch.md"
FACTORY = ("device", "dtype")
SAME = {"dynamicconv": "lightconv", "DynamicConv": "LightConv"}


def layer_class():
    return runpy.run_path(str(EXAMPLE))["ConvEncoderLayer"]


def test_the_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.startswith("(2, 100, 512) ")


def make(**options):
    return layer_class()(12, 3, 5, dim_feedforward=24, **options)


def test_its_layer_has_no_attention():
    names = {name.split(".")[0] for name, _ in make().named_parameters()}
    assert names == {"self_attn", "linear1", "linear2", "norm1", "norm2"}
    assert set(make().self_attn.state_dict()) == {"weight_linear"}


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_padding_changes_nothing_in_a_stack_of_them(norm_first, training):
    encoder = torch.nn.TransformerEncoder(
        make(norm_first=norm_first, dropout=0.0), 2, enable_nested_tensor=False
    )
    encoder.train(training)
    x = torch.randn(2, 9, 12)
    pads = torch.arange(9) >= torch.tensor([[9], [4]])
    padded = encoder(x, src_key_padding_mask=pads)
    torch.testing.assert_close(padded[:1], encoder(x[:1]))
    torch.testing.assert_close(padded[1:, :4], encoder(x[1:, :4]))


def test_its_layer_refuses_a_mask():
    with pytest.raises(AssertionError, match="sees its kernel, not a mask"):
        make()(torch.randn(2, 9, 12), src_mask=torch.zeros(9, 9))


def test_its_layer_learns():
    layer, x = make(dropout=0.0), torch.randn(8, 9, 12)
    target = torch.nn.functional.layer_norm(x.roll(1, 1), (12,))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (layer(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_the_documentation_shows_it():
    code = EXAMPLE.read_text(encoding="utf-8")
    found = re.search(r"class ConvEncoderLayer.*?\n\n\n", code, re.S)
    shown = found[0].strip()
    assert len(shown.splitlines()) <= 11
    assert shown in PAGE.read_text(encoding="utf-8")


def test_the_code_of_the_documentation_runs():
    """One block after the other, with the layers that a reader would have."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 6
    names = {
        "theirs": torch.randn(8, 1, 31),
        "before": torch.nn.Linear(512, 512),
        "after": torch.nn.Linear(512, 512),
    }
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["ours"].shape == (512, 31)


def test_the_tables_of_the_documentation_name_what_there_is():
    text = PAGE.read_text(encoding="utf-8")
    functions = [name for name in seqconv_torch.ops.__all__ if name.islower()]
    for name in functions + seqconv_torch.nn.__all__:
        (row,) = re.findall(rf"^\| `{name}` \|(.*?)\|", text, re.M)
        if "the same" in row:
            (same,) = re.findall(rf"^\| `{SAME[name]}` \|(.*?)\|", text, re.M)
            row += same
        parameters = inspect.signature(getattr(seqconv_torch, name)).parameters
        for parameter in parameters.values():
            if name in seqconv_torch.nn.__all__ and parameter.name in FACTORY:
                continue
            default = ""
            if parameter.default is not parameter.empty:
                default = f"={parameter.default!r}".replace("'", '"')
            assert f"`{parameter.name}{default}`" in row, (name, row)
