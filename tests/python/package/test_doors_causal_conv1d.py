"""The names and layouts of causal-conv1d."""

import inspect

import pytest
import torch
from torch.testing import assert_close

import seqconv_torch
import seqconv_torch.causal_conv1d as causal_conv1d
from seqconv_torch.causal_conv1d import (
    causal_conv1d_fn,
    causal_conv1d_update,
    causal_conv1d_varlen_states,
)

B, C, T, W = 2, 8, 11, 4


def random(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


def test_names_and_orders_of_parameters_are_theirs():
    def names(function):
        return list(inspect.signature(function).parameters)

    assert names(causal_conv1d_fn) == [
        "x", "weight", "bias", "seq_idx", "initial_states", "return_final_states",
        "final_states_out", "activation"]  # fmt: skip
    assert names(causal_conv1d_update) == [
        "x", "conv_state", "weight", "bias", "activation", "cache_seqlens",
        "conv_state_indices"]  # fmt: skip
    assert names(causal_conv1d_varlen_states) == ["x", "cu_seqlens", "state_len"]
    for name in causal_conv1d.__all__:
        assert getattr(seqconv_torch, name) is getattr(causal_conv1d, name)
    assert causal_conv1d.__version__ == "1.7.0"


layouts = pytest.mark.parametrize("channels_last", [False, True])


def laid_out(wide, channels_last):
    """A slice [B, C, T] of a wider tensor, as those of others' tests are."""
    return wide.transpose(1, 2)[:, 3 : 3 + C] if channels_last else wide[:, 3 : 3 + C]


@layouts
def test_strided_inputs_keep_their_layout(channels_last):
    wide = random(B, T, C + 5) if channels_last else random(B, C + 5, T)
    x, weight = laid_out(wide.requires_grad_(), channels_last), random(C, W)
    y, final = causal_conv1d_fn(x, weight, return_final_states=True)
    assert y.stride() == ((T * C, 1, C) if channels_last else (C * T, T, 1))
    assert y.stride() == torch.empty_like(x).stride()
    assert torch.equal(final, x[:, :, -3:]) and final.stride() == (3 * C, 1, C)
    assert torch.equal(y, causal_conv1d_fn(x.contiguous(), weight))
    (grad,) = torch.autograd.grad(y.sum() + final.square().sum(), wide)
    assert grad.shape == wide.shape and laid_out(grad, channels_last).ne(0).all()
    with torch.no_grad():
        state = laid_out(torch.zeros_like(wide), channels_last)[:, :, : W - 1]
        assert torch.equal(causal_conv1d_update(x, state, weight), y)
        assert torch.equal(state, final)


def test_final_states_are_written_where_they_are_wanted():
    x, weight = random(B, C, T).requires_grad_(), random(C, W)
    out = torch.empty(B, W - 1, C, dtype=x.dtype).transpose(1, 2)
    _, final = causal_conv1d_fn(x, weight, return_final_states=True, final_states_out=out)
    assert final is out and torch.equal(out, x[:, :, -3:])
    final.sum().backward()
    assert x.grad[:, :, -3:].eq(1).all() and x.grad[:, :, :-3].eq(0).all()


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_fewer_inputs_than_taps(steps):
    x, weight, before = random(B, C, steps), random(C, W), random(B, C, W - 1)
    y, final = causal_conv1d_fn(x, weight, None, None, before, True)
    together = torch.cat([before, x], 2)
    assert_close(y, causal_conv1d_fn(together, weight)[:, :, W - 1 :])
    assert torch.equal(final, together[:, :, steps:])
    state = before.clone()
    assert torch.equal(causal_conv1d_update(x, state, weight), y)
    assert torch.equal(state, final)
    _, final = causal_conv1d_fn(x, weight, return_final_states=True)
    assert final[:, :, : W - 1 - steps].eq(0).all()


def test_rows_without_batch_or_ring_columns():
    assert causal_conv1d_fn(random(0, C, T), random(C, W)).shape == (0, C, T)
    state = random(B, C, 0)
    seen = torch.zeros(B, dtype=torch.int32)
    x = random(B, C)
    assert_close(causal_conv1d_update(x, state, random(C, 1) * 0 + 2, cache_seqlens=seen), 2 * x)


def test_a_number_is_the_cache_length_of_all_rows():
    x, weight, state = random(B, C, T), random(C, W), random(B, C, W + 2)
    for seen in (0, 2, 9):
        rings = state.clone(), state.clone()
        y = causal_conv1d_update(x, rings[0], weight, cache_seqlens=seen)
        lengths = torch.full((B,), seen, dtype=torch.int32)
        assert torch.equal(y, causal_conv1d_update(x, rings[1], weight, cache_seqlens=lengths))
        assert torch.equal(*rings)


def test_a_row_of_padding_alone_gives_zero_and_leaves_no_trace():
    x, bias = random(B, C, T), random(C).requires_grad_()
    numbers = torch.full((B, T), -1, dtype=torch.int32)
    y = causal_conv1d_fn(x, random(C, W), bias, numbers, random(B, C, W - 1))
    assert y.eq(0).all()
    y.sum().backward()
    assert bias.grad.eq(0).all()
    state = random(3, C, W)
    before, rows = state.clone(), torch.tensor([-1, -7], dtype=torch.int32)
    assert causal_conv1d_update(x, state, random(C, W), conv_state_indices=rows).eq(0).all()
    assert torch.equal(state, before)


def test_nothing_of_a_padding_row_is_read_into_another():
    state, weight = random(3, C, W), random(C, W)
    state[0], x = float("nan"), random(B, C)
    rows = torch.tensor([-1, 2], dtype=torch.int32)
    assert causal_conv1d_update(x, state, weight, conv_state_indices=rows).isfinite().all()
    assert state[2].isfinite().all()


@pytest.mark.parametrize("options", [{}, {"cache_seqlens": torch.zeros(B, dtype=torch.int32)}])
@pytest.mark.parametrize("width", [3, 4, 9])
def test_steps_of_any_sizes_are_the_whole(options, width):
    x, weight, bias = random(B, C, T), random(C, W), random(C)
    y = causal_conv1d_fn(x, weight, bias, activation="silu")
    state = torch.zeros(B, C, width, dtype=x.dtype)
    at, steps = 0, []
    for part in x.split([1, 5, 1, 4], 2):
        counts = {name: of + at for name, of in options.items()}
        steps.append(causal_conv1d_update(part, state, weight, bias, "swish", **counts))
        at += part.shape[2]
    assert torch.equal(torch.cat(steps, 2), y)


def test_it_stands_where_models_of_transformers_call_it():
    """A state of W columns, updates [B, C, 1], the activation by position, and x a
    transposed view; prefill over the state and x together."""
    conv = torch.nn.Conv1d(C, C, W, groups=C, padding=W - 1)
    hidden = torch.randn(B, T, C)
    weight, bias = conv.weight.squeeze(1), conv.bias
    wanted = torch.nn.functional.silu(conv(hidden.mT)[:, :, :T])
    y = causal_conv1d_fn(hidden.transpose(1, 2), weight, bias, activation="silu", seq_idx=None)
    assert_close(y, wanted)
    state = torch.nn.functional.pad(hidden[:, :5].mT, (W - 5, 0)).contiguous()
    place = state.data_ptr()
    for t in range(5, 8):
        new = hidden[:, t : t + 1].transpose(1, 2)
        y = causal_conv1d_update(new, state, weight, bias, "silu")
        assert_close(y, wanted[:, :, t : t + 1])
    both = torch.cat([state, hidden[:, 8:].mT], 2)
    y = causal_conv1d_fn(both, weight, bias, activation="silu")[:, :, -3:]
    assert_close(y, wanted[:, :, 8:])
    assert state.data_ptr() == place


@pytest.mark.parametrize("x_type", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("weight_type", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bias_type", [torch.float32, torch.bfloat16])
def test_parameters_may_have_narrower_types(x_type, weight_type, bias_type):
    x, weight, bias = random(B, C, T).to(x_type), random(C, W), random(C)
    weight = weight.to(weight_type).requires_grad_()
    bias = bias.to(bias_type).requires_grad_()
    y = causal_conv1d_fn(x, weight, bias)
    y.sum().backward()
    assert y.dtype == x_type
    assert weight.grad.dtype == weight_type and bias.grad.dtype == bias_type
    exact = causal_conv1d_fn(x.double(), weight.double(), bias.double())
    assert_close(y, exact.to(x_type))


def test_it_compiles_without_a_break():
    torch._dynamo.reset()
    x, weight, before = torch.randn(B, C, T), torch.randn(C, W), torch.randn(B, C, W - 1)
    options = {"initial_states": before, "return_final_states": True, "activation": "silu"}
    compiled = torch.compile(causal_conv1d_fn, fullgraph=True, backend="aot_eager")
    for ours, plain in zip(compiled(x, weight, **options), causal_conv1d_fn(x, weight, **options)):
        assert_close(ours, plain)
    states = [torch.zeros(B, C, W) for _ in range(2)]
    step = torch.compile(causal_conv1d_update, fullgraph=True, backend="aot_eager")
    assert_close(step(x, states[0], weight), causal_conv1d_update(x, states[1], weight))
    assert torch.equal(*states)


def wrong(function, **changed):
    arguments = {"x": random(B, C, T), "weight": random(C, W), **changed}
    if function is causal_conv1d_update:
        arguments = {"conv_state": random(B, C, W), **arguments}
    return function(**arguments)


@pytest.mark.parametrize(
    "function, changed, text",
    [(causal_conv1d_fn, {"x": random(B, C)}, "x must be [B, C, T], but got [2, 8]"),
     (causal_conv1d_fn, {"weight": random(C, 1, W)},
      "weight must be [C, W] with C = 8, but got [8, 1, 4]"),
     (causal_conv1d_fn, {"bias": random(C, 1)}, "bias must be [C] with C = 8, but got [8, 1]"),
     (causal_conv1d_fn, {"x": random(B, C, T).float()},
      "weight must be of type torch.float32 or a narrower one beside x of torch.float32, but "
      "got torch.float64"),
     (causal_conv1d_fn, {"initial_states": random(B, C, W)},
      "initial_states must be torch.float64 [B, C, W-1] with B = 2, C = 8, W-1 = 3, but got "
      "torch.float64 [2, 8, 4]"),
     (causal_conv1d_fn, {"seq_idx": torch.zeros(B, T).int(), "return_final_states": True},
      "return_final_states must be False beside seq_idx, but got True"),
     (causal_conv1d_update, {"conv_state": random(B, C, 2)},
      "conv_state must be torch.float64 [B, C, S] with B = 2, C = 8 and S at least W-1 = 3, "
      "but got torch.float64 [2, 8, 2]"),
     (causal_conv1d_update, {"conv_state": random(3, C, W)},
      "conv_state must be torch.float64 [B, C, S] with B = 2, C = 8 and S at least W-1 = 3, "
      "but got torch.float64 [3, 8, 4]"),
     (causal_conv1d_update, {"cache_seqlens": torch.zeros(3).int()},
      "cache_seqlens must be [B] with B = 2, but got [3]"),
     (causal_conv1d_update, {"conv_state_indices": torch.zeros(1).int()},
      "conv_state_indices must be [B] with B = 2, but got [1]")],
)  # fmt: skip
def test_wrong_input_is_refused(function, changed, text):
    with pytest.raises(ValueError) as error:
        wrong(function, **changed)
    assert str(error.value) == f"[{function.__name__}] {text}"


@pytest.mark.parametrize("function", [causal_conv1d_fn, causal_conv1d_update])
@pytest.mark.parametrize("activation", ["none", "relu", True])
def test_other_activations_are_not_implemented(function, activation):
    with pytest.raises(NotImplementedError, match="activation must be None, 'silu' or 'swish'"):
        wrong(function, activation=activation)


@pytest.mark.parametrize(
    "arguments, text",
    [((random(1, 5, C), torch.tensor([0, 5]), 3), "x must be [N, C], but got [1, 5, 8]"),
     ((random(5, C), torch.tensor(5), 3), "cu_seqlens must be [B + 1], but got []"),
     ((random(5, C), torch.tensor([0, 5]), -1), "state_len must be at least 0, but got -1")],
)  # fmt: skip
def test_wrong_packed_states_are_refused(arguments, text):
    with pytest.raises(ValueError) as error:
        causal_conv1d_varlen_states(*arguments)
    assert str(error.value) == f"[causal_conv1d_varlen_states] {text}"


def test_packed_states_of_empty_sequences_and_their_gradient():
    x, offsets = random(5, C).requires_grad_(), torch.tensor([0, 2, 2, 5], dtype=torch.int32)
    states = causal_conv1d_varlen_states(x, offsets, 3)
    assert torch.equal(states[0, :, 1:], x[:2].mT) and states[0, :, 0].eq(0).all()
    assert states[1].eq(0).all() and torch.equal(states[2], x[2:].mT)
    states.sum().backward()
    assert x.grad.eq(1).all()
    assert causal_conv1d_varlen_states(x, offsets, 0).shape == (3, C, 0)
