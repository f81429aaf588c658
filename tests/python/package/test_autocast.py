"""Types under torch.autocast: of outputs, of gradients, of states."""

import pytest
import torch
from torch.testing import assert_close

import seqconv_torch
from seqconv_torch import ops

B, T, C, H, K = 2, 9, 12, 3, 5


def bfloat16():
    return torch.autocast("cpu", dtype=torch.bfloat16)


def cases():
    """name -> (function, its tensors), all float32."""
    x = torch.randn(B, T, C)
    offsets = torch.rand(2, B, T, H)
    return {
        "lightconv": (
            lambda x, w, b: ops.lightconv(x, w, bias=b, padding_left=2),
            [x, torch.randn(H, K), torch.randn(C)],
        ),
        "dynamicconv": (
            lambda x, l, b: ops.dynamicconv(
                x, l, bias=b, padding_left=2, renormalize_edges=True
            ),
            [x, torch.randn(B, T, H, K), torch.randn(C)],
        ),
        "talk": (
            lambda x, l, r: ops.talk(x, l, r, max_left=3, max_right=3),
            [x, *offsets.unbind()],
        ),
        "cumulative_average": (ops.cumulative_average, [x]),
    }


every_case = pytest.mark.parametrize("name", cases())


@every_case
def test_only_x_becomes_bfloat16(name):
    function, tensors = cases()[name]
    x, *others = tensors
    for tensor in tensors:
        tensor.requires_grad_()
    with bfloat16():
        y = function(*tensors)
    assert y.dtype == torch.bfloat16
    # Equal bits: what is beside x keeps all of its own.
    assert torch.equal(y, function(x.bfloat16(), *others))
    y.float().square().sum().backward()
    for tensor in tensors:
        assert tensor.grad.dtype == torch.float32
        assert tensor.grad.abs().sum() > 0


@every_case
def test_what_is_bfloat16_already_stays(name):
    function, tensors = cases()[name]
    short = [tensor.bfloat16() for tensor in tensors]
    with bfloat16():
        y = function(*short)
    assert torch.equal(y, function(*short))


@every_case
def test_backward_may_run_inside(name):
    function, tensors = cases()[name]
    grads = []
    for inside in (True, False):
        with bfloat16():
            leaves = [t.clone().requires_grad_() for t in tensors]
            loss = function(*leaves).float().square().sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        grads.append([leaf.grad for leaf in leaves])
    for inside, outside in zip(*grads):
        assert torch.equal(inside, outside)


@every_case
def test_float16_on_the_cpu_is_computed_in_float32(name):
    function, tensors = cases()[name]
    halves = [tensor.half() for tensor in tensors]
    with torch.autocast("cpu", dtype=torch.float16):
        y, of_halves = function(*tensors), function(*halves)
    assert y.dtype == of_halves.dtype == torch.float32
    assert torch.equal(y, function(*tensors))
    assert_close(of_halves, y, rtol=0.02, atol=0.02)


@every_case
def test_float64_stays_as_everywhere_in_autocast(name):
    function, tensors = cases()[name]
    wide = [tensor.double() for tensor in tensors]
    with bfloat16():
        assert torch.equal(function(*wide), function(*wide))
        assert function(*wide).dtype == torch.float64


@every_case
def test_autocast_that_is_off_changes_nothing(name):
    function, tensors = cases()[name]
    with bfloat16(), torch.autocast("cpu", enabled=False):
        assert torch.equal(function(*tensors), function(*tensors))
        assert function(*tensors).dtype == torch.float32


def why_not_cuda(name):
    """Why an operator cannot run on CUDA here; empty when it can."""
    if not torch.cuda.is_available():
        return "no CUDA device"
    known = torch._C._dispatch_has_kernel_for_dispatch_key
    return "" if known("seqconv::" + name, "CUDA") else "built without CUDA"


@every_case
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_on_cuda_both_short_types_are_computed_in(name, dtype):
    if why_not_cuda(name):
        pytest.skip(why_not_cuda(name))
    function, tensors = cases()[name]
    there = [tensor.cuda().requires_grad_() for tensor in tensors]
    with torch.autocast("cuda", dtype=dtype):
        y = function(*there)
    assert y.dtype == dtype
    assert_close(y.cpu().float(), function(*tensors), rtol=0.03, atol=0.03)
    y.float().sum().backward()
    assert all(tensor.grad.dtype == torch.float32 for tensor in there)


def make_causal():
    return [
        seqconv_torch.LightConv(C, H, K, causal=True),
        seqconv_torch.DynamicConv(C, H, K, causal=True),
        seqconv_torch.TaLKConv(C, H, K - 1, causal=True),
    ]


@pytest.mark.parametrize("module", make_causal())
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_steps_are_made_in_the_type_of_their_state(module, dtype):
    x, position = torch.randn(B, T, C), torch.tensor([0])
    with torch.no_grad(), bfloat16():
        state = module.initial_state(B, dtype=dtype)
        y = module.step(x, state, position)
        whole = module(x)
    assert y.dtype == dtype
    assert_close(y.float(), whole.float(), rtol=0.03, atol=0.03)


def test_averages_sum_in_float64_whatever_their_steps_are_made_in():
    module = seqconv_torch.AverageAttention(C, 2 * C)
    x, position = torch.randn(B, T, C), torch.tensor([0])
    state = module.initial_state(B)
    with torch.no_grad(), bfloat16():
        average = ops.cumulative_average_step(x, state.clone(), position)
        y = module.step(x, state, position)
        whole = module(x)
    assert average.dtype == y.dtype == whole.dtype == torch.bfloat16
    assert torch.equal(y, whole)
    assert state.dtype == torch.float64
    assert_close(state, x.bfloat16().double().sum(1))


def test_the_offsets_of_talk_keep_their_precision():
    # Positions up to 60 to the left: bfloat16 would round them to halves.
    module, x = seqconv_torch.TaLKConv(C, H, 60), torch.randn(B, 200, C).bfloat16()
    with bfloat16():
        y = module(x)
    exact = module.double()(x.double())
    assert_close(y.double(), exact, rtol=2**-8, atol=1e-4)


def test_a_mixed_module_trains():
    module = torch.nn.Sequential(
        torch.nn.Linear(C, C),
        seqconv_torch.LightConv(C, H, K, weight_dropout=0.1),
        seqconv_torch.DynamicConv(C, H, K, weight_dropout=0.1),
        seqconv_torch.TaLKConv(C, H, offset_dropout=0.1),
        seqconv_torch.AverageAttention(C, 2 * C, activation_dropout=0.1),
        torch.nn.Linear(C, 1),
    )
    with bfloat16():
        loss = module(torch.randn(B, T, C)).square().mean()
    loss.backward()
    for parameter in module.parameters():
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all()
