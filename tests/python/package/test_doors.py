"""Values and gradients of the doors to other packages: golden numbers, plain formulas."""

import pathlib
import re
import sys

import pytest
import torch
from torch.testing import assert_close

from seqconv_torch.causal_conv1d import (
    causal_conv1d_fn,
    causal_conv1d_update,
    causal_conv1d_varlen_states,
)
from seqconv_torch.dynamic_conv1d import (
    headwise_dynamic_convolution,
    lowrank_dynamic_convolution,
)
from seqconv_torch.fla import ShortConvolution, causal_conv1d
from seqconv_torch.jet_nemotron import DynamicShortConvolution
from seqconv_torch.ops import short_conv

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "golden"))
import short_conv_doors as golden  # noqa: E402


def ours_fn(inputs, spec):
    packed = "seq_idx" in inputs
    result = causal_conv1d_fn(
        inputs["x"], inputs["weight"], inputs["bias"], inputs.get("seq_idx"),
        inputs.get("initial"), not packed, None, "silu" if spec["silu"] else None,
    )  # fmt: skip
    return {"y": result} if packed else dict(zip(("y", "final"), result))


def ours_update(inputs, spec):
    state = inputs["state"].clone()
    y = causal_conv1d_update(
        inputs["x"], state, inputs["weight"], inputs["bias"], "silu" if spec["silu"] else None,
        inputs.get("seen"), inputs.get("rows"),
    )  # fmt: skip
    return {"y": y, "state": state}


def ours_states(inputs, spec):
    return {"states": causal_conv1d_varlen_states(*inputs.values(), spec["kept"])}


def called(module, parameters, *args, **options):
    """A module with these parameters, which gradients go to."""
    given = {name: of for name, of in parameters.items() if of is not None}
    return torch.func.functional_call(module, given, args, options)


def ours_fla(inputs, spec):
    module = ShortConvolution(
        spec["c"], spec["w"], bool(spec["bias"]), "silu" if spec["silu"] else None
    )
    parameters = {"weight": inputs["weight"].unsqueeze(1), "bias": inputs["bias"]}
    names = ("residual", "mask", "cache", "cu_seqlens")
    options = {name: inputs[name] for name in names if name in inputs}
    y, final = called(module, parameters, inputs["x"], output_final_state=True, **options)
    return {"y": y, "final": final}


def ours_fla_function(inputs, spec):
    """The function takes no mask and needs no whole number of dimensions."""
    options = {name: inputs[name] for name in ("residual", "cu_seqlens") if name in inputs}
    x = inputs["x"]
    if spec["mask"]:
        x = x * inputs["mask"].unsqueeze(-1).to(x.dtype)
    y, final = causal_conv1d(
        x.unsqueeze(2), inputs["weight"], inputs["bias"],
        initial_state=inputs.get("cache"), output_final_state=True,
        activation="swish" if spec["silu"] else None,
        **{name: of.unsqueeze(2) if name == "residual" else of for name, of in options.items()},
    )  # fmt: skip
    assert y.shape == x.unsqueeze(2).shape and y.is_contiguous()
    return {"y": y.squeeze(2), "final": final}


def ours_headwise(inputs, spec):
    return {"y": headwise_dynamic_convolution(**renamed(inputs), residual=bool(spec["residual"]))}


def ours_lowrank(inputs, spec):
    return {"y": lowrank_dynamic_convolution(**inputs, residual=bool(spec["residual"]))}


def renamed(inputs):
    return {"weight" if name == "taps" else name: of for name, of in inputs.items()}


def ours_dflash(inputs, spec):
    """Blocks of a drafter are packed sequences; as rows they give the same."""
    x, base, delta = inputs.values()
    offsets = torch.arange(0, len(x) + 1, spec["block"])
    y = short_conv(x, base.flip(0).t(), delta.flip(1).mT, cu_seqlens=offsets)
    rows = headwise_dynamic_convolution(
        x.view(-1, spec["block"], spec["c"]), delta.mT.unflatten(0, (-1, spec["block"])), base
    )
    assert torch.equal(rows.view_as(y), y)
    return {"y": y}


def ours_jet(inputs, spec):
    module = DynamicShortConvolution(
        spec["c"], spec["w"], spec["g"] or None, spec["reduction"],
        activation="silu" if spec["silu"] else None,
    )  # fmt: skip
    names = {"w1.weight": "w1", "w2.weight": "w2", "w2.bias": "w2_bias"}
    parameters = {f"kernel_generator.{ours}": inputs[name] for ours, name in names.items()}
    cache = inputs["cache"].detach().clone() if spec["cache"] else None
    y, final = called(
        module, parameters, inputs["x"], cache=cache, output_final_state=True,
        generator_input=inputs.get("g"),
    )  # fmt: skip
    assert cache is None or final is cache
    return {"y": y, "final": final}


OURS = {"fn": ours_fn, "update": ours_update, "states": ours_states, "fla": ours_fla,
        "headwise": ours_headwise, "lowrank": ours_lowrank, "dflash": ours_dflash,
        "jet": ours_jet}  # fmt: skip
#: Second ways to the same numbers.
ALSO = {"fla": ours_fla_function}


def cases(*wanted):
    """ours, op, spec."""
    return [pytest.param(ours, op, spec, id=f"{ours.__name__}-{golden.name_of(op, spec)}")
            for op, spec in golden.CASES if op in wanted
            for ours in (OURS[op], ALSO.get(op)) if ours is not None]  # fmt: skip


@pytest.fixture(scope="module")
def stored():
    return golden.stored()


def test_the_golden_numbers_are_those_of_their_formulas(capsys):
    assert golden.main(["--check"]) == 0, capsys.readouterr().out
    assert golden.FILE.stat().st_size < 300_000


@pytest.mark.parametrize("ours, op, spec", cases(*OURS))
def test_golden_numbers(ours, op, spec, stored):
    for name, values in ours(golden.inputs_of(op, spec), spec).items():
        full = f"{golden.name_of(op, spec)}.{name}"
        assert golden.largest_error(golden.kept(full, values), stored[full]) <= 1e-12


def test_the_code_of_their_page_runs():
    page = pathlib.Path(__file__).parents[3] / "docs/short_conv_doors.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, str(page), "exec"), {"torch": torch})


PARAMETERS, STATES = ("weight", "bias"), ("state", "states", "final")
#: Half a unit of the last place of bfloat16, by sums of float32.
BOUNDS = {torch.float32: 1e-5, torch.bfloat16: 4e-3}


# Jet's kernels have x's type and roundings of their own.
@pytest.mark.parametrize("ours, op, spec", cases(*(set(OURS) - {"jet"})))
@pytest.mark.parametrize("dtype", BOUNDS)
def test_narrow_types_are_as_near_as_they_can_be(ours, op, spec, dtype):
    """Inputs are exact in bfloat16; parameters stay float32, as others' tests have them."""
    inputs = golden.inputs_of(op, spec)
    narrow = {name: of.to(torch.float32 if name in PARAMETERS else dtype)
              if of is not None and of.is_floating_point() else of
              for name, of in inputs.items()}  # fmt: skip
    wanted = golden.outputs_of(op, spec, inputs)
    roundings = 2 if spec.get("residual") else 1  # a residual is added to what is rounded
    for name, values in ours(narrow, spec).items():
        assert values.dtype == dtype
        error = golden.largest_error(values.detach().double().numpy(), wanted[name].numpy())
        assert error <= (0 if name in STATES else roundings * BOUNDS[dtype]), name


@pytest.mark.parametrize("ours, op, spec", cases(*(set(OURS) - {"update", "states"})))
def test_gradients_are_those_of_the_formulas(ours, op, spec):
    results = []
    for function in (ours, lambda inputs, spec: golden.outputs_of(op, spec, inputs)):
        inputs = golden.inputs_of(op, spec)
        leaves = {name: of.requires_grad_() for name, of in inputs.items()
                  if of is not None and of.is_floating_point()}  # fmt: skip
        outputs = function(inputs, spec)
        torch.manual_seed(2)
        pulls = {name: torch.randn_like(of) for name, of in outputs.items()}
        # Gradients do not go through Jet's cache.
        loss = sum((pulls[name] * of).sum() for name, of in outputs.items()
                   if op != "jet" or name == "y")  # fmt: skip
        results.append(torch.autograd.grad(loss, list(leaves.values()), allow_unused=True))
    for name, ours, theirs in zip(leaves, *results):
        if theirs is None or (op == "jet" and name == "cache"):
            continue  # an initial state of no columns
        assert_close(ours, theirs, rtol=1e-11, atol=1e-11, msg=name)
