"""The short convolution of flash-linear-attention."""

import copy
import inspect
import pickle

import pytest
import torch
from torch.testing import assert_close

import seqconv_torch
from seqconv_torch.fla import ShortConvolution, causal_conv1d

B, D, T, W = 2, 6, 11, 4


def module(**options):
    return ShortConvolution(D, W, **options)


def test_names_and_orders_of_parameters_are_theirs():
    assert seqconv_torch.ShortConvolution is ShortConvolution
    assert list(inspect.signature(ShortConvolution).parameters) == [
        "hidden_size", "kernel_size", "bias", "activation", "backend", "device", "dtype",
        "kwargs"]  # fmt: skip
    assert list(inspect.signature(module().forward).parameters) == [
        "x", "residual", "mask", "cache", "output_final_state", "cu_seqlens", "chunk_indices",
        "kwargs"]  # fmt: skip
    assert list(inspect.signature(module().step).parameters) == [
        "x", "residual", "cache", "output_final_state", "cu_seqlens"]  # fmt: skip


def test_the_function_has_their_parameters_and_defaults():
    parameters = inspect.signature(causal_conv1d).parameters
    assert list(parameters) == [
        "x", "weight", "bias", "residual", "initial_state", "output_final_state", "activation",
        "backend", "cu_seqlens", "cu_seqlens_cpu", "chunk_indices", "cp_context", "seq_idx",
        "kwargs"]  # fmt: skip
    given = {name: of.default for name, of in parameters.items() if of.default not in (
        None, inspect.Parameter.empty)}  # fmt: skip
    assert given == {"output_final_state": False, "backend": "triton"}


def test_attributes_and_parameters_are_theirs():
    conv = module(bias=True, use_fast_conv1d=True, dtype=torch.float64)
    assert isinstance(conv, torch.nn.Conv1d)
    shapes = {name: list(of.shape) for name, of in conv.state_dict().items()}
    assert shapes == {"weight": [D, 1, W], "bias": [D]} and conv.weight.dtype == torch.float64
    assert (conv.hidden_size, conv.activation, conv.backend) == (D, "silu", "triton")
    assert conv.kernel_size == (W,) and conv.padding == (W - 1,) and conv.groups == D
    assert conv.state_size == D * W
    assert list(module().state_dict()) == ["weight"]
    assert conv.extra_repr() == (
        "6, 6, kernel_size=(4,), stride=(1,), padding=(3,), groups=6, activation=silu, "
        "backend=triton"
    )
    assert module(activation=None).extra_repr().endswith("groups=6, bias=False, backend=triton")
    large = ShortConvolution(4096, W)
    assert 0.28 < large.weight.std() < 0.3 and large.weight.abs().max() <= 0.5


@pytest.mark.parametrize("bias, activation", [(False, None), (True, "swish")])
def test_it_is_the_convolution_that_it_inherits(bias, activation):
    conv = module(bias=bias, activation=activation)
    x = torch.randn(B, T, D)
    plain = torch.nn.Conv1d.forward(conv, x.mT)[:, :, :T].mT
    y, state = conv(x)
    assert_close(y, torch.nn.functional.silu(plain) if activation else plain)
    assert state is None and y.is_contiguous()


def packed_rows(lengths):
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32)


@pytest.mark.parametrize("packed", [False, True])
def test_steps_without_autograd_change_the_cache_in_place(packed):
    conv = module(bias=True)
    x, residual = torch.randn(B, T, D), torch.randn(B, T, D)
    whole, final = conv(x, residual, output_final_state=True)
    with torch.no_grad():
        y, cache = conv(x[:, :5], residual[:, :5], output_final_state=True)
        assert torch.equal(y, whole[:, :5])
        offsets = packed_rows([1] * B) if packed else None
        for t in range(5, T):
            row, add = (of[:, t : t + 1].transpose(0, 1 if packed else 0) for of in (x, residual))
            y, same = conv(row, add, cache=cache, output_final_state=True, cu_seqlens=offsets)
            assert same is cache and y.shape == row.shape
            assert_close(y.view(B, D), whole[:, t])
        assert torch.equal(cache, final)
        y, none = conv(row, add, cache=cache, cu_seqlens=offsets)
        assert none is None and torch.equal(cache[:, :, -1], row.view(B, D))
        assert torch.equal(cache[:, :, :-1], final[:, :, 1:])


def test_a_step_without_a_cache_begins_one():
    conv, x = module(), torch.randn(B, 1, D)
    with torch.no_grad():
        y, cache = conv(x, output_final_state=True)
    assert torch.equal(cache[:, :, -1:].mT, x) and cache[:, :, :-1].eq(0).all()
    assert_close(y, conv(x)[0])


def test_with_autograd_a_cache_stays_and_its_gradient_is_right():
    conv, x = module(bias=True), torch.randn(B, 1, D, requires_grad=True)
    cache = torch.randn(B, D, W, requires_grad=True)
    before = cache.detach().clone()
    y, after = conv(x, cache=cache, output_final_state=True)
    assert torch.equal(cache, before) and after is not cache
    assert torch.equal(after, torch.cat([cache[:, :, 1:], x.mT], 2))
    y.sum().backward()
    assert cache.grad[:, :, 0].eq(0).all() and cache.grad[:, :, 1:].ne(0).all()


def test_a_cache_may_change_before_the_gradient_is_asked_for():
    for width in (2, W):
        conv, cache = ShortConvolution(D, width), torch.randn(B, D, width)
        y, _ = conv(torch.randn(B, T, D), cache=cache)
        cache.zero_()
        y.sum().backward()


def test_pieces_with_a_cache_are_the_whole():
    conv, x = module(bias=True), torch.randn(B, T, D)
    whole, cache, parts = conv(x)[0], None, []
    for part in x.split([3, 2, 1, 5], 1):
        y, cache = conv(part, cache=cache, output_final_state=True)
        parts.append(y)
    assert torch.equal(torch.cat(parts, 1), whole)
    assert torch.equal(cache, x[:, -W:].mT)


def test_empty_sequences_keep_their_cache():
    conv, x = module(), torch.randn(1, 2, D)
    cache, offsets = torch.randn(2, D, W), packed_rows([2, 0])
    with torch.no_grad():  # as many positions as sequences, and yet no step
        _, after = conv(x, cache=cache, cu_seqlens=offsets, output_final_state=True)
    assert after is not cache and torch.equal(after[1], cache[1])
    assert torch.equal(after[0], torch.cat([cache[0, :, 2:], x[0].mT], 1))


def test_the_residual_may_be_the_input_and_is_masked_with_it():
    conv, x = module(), torch.randn(B, T, D)
    mask = torch.ones(B, T, dtype=torch.bool)
    mask[0, :4] = False
    before = x.clone()
    y, _ = conv(x, residual=x, mask=mask)
    assert torch.equal(x, before)
    masked = x * mask[:, :, None]
    assert_close(y, conv(masked)[0] + masked)
    with torch.no_grad():
        one, _ = conv(x[:, :1], mask=mask[:, :1])
    assert_close(one, conv(masked[:, :1])[0])


def test_strided_inputs_are_read():
    qkv = torch.randn(B, T, 3 * D)
    conv = module(activation=None)
    for part in qkv.split(D, 2):
        y, _ = conv(part, residual=part)
        assert_close(y, conv(part.contiguous())[0] + part)
        (grad,) = torch.autograd.grad(
            conv(part.detach().requires_grad_())[0], conv.weight, torch.ones(1).expand(B, T, D)
        )
        assert grad.isfinite().all()


def test_it_is_saved_copied_and_compiled():
    conv, x = module(bias=True), torch.randn(B, T, D)
    other = module(bias=True)
    other.load_state_dict(torch.nn.Conv1d(D, D, W, groups=D).state_dict())
    other.load_state_dict(conv.state_dict())
    for again in (copy.deepcopy(conv), pickle.loads(pickle.dumps(conv)), other):
        assert torch.equal(again(x)[0], conv(x)[0])
    torch._dynamo.reset()
    compiled = torch.compile(causal_conv1d, fullgraph=True, backend="aot_eager")
    weight = conv.weight.squeeze(1)
    for ours, plain in zip(compiled(x, weight, output_final_state=True),
                           causal_conv1d(x, weight, output_final_state=True)):  # fmt: skip
        assert_close(ours, plain)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    for ours, plain in zip(compiled(x, output_final_state=True), conv(x, output_final_state=True)):
        assert_close(ours, plain)
    assert conv.bfloat16()(x.bfloat16())[0].dtype == torch.bfloat16


def function(x, weight, bias, **options):
    return causal_conv1d(x, weight, bias, **options)


def test_the_function_is_the_module_without_its_steps():
    conv, x = module(bias=True), torch.randn(B, T, D)
    weight, cache = conv.weight.squeeze(1), torch.randn(B, D, W)
    before = cache.clone()
    options = {"initial_state": cache, "output_final_state": True, "activation": "silu"}
    with torch.no_grad():  # one position is no step here
        for part in (x, x[:, :1]):
            y, final = function(part, weight, conv.bias, residual=part, **options)
            assert torch.equal(cache, before) and final is not cache
            ours, cached = conv(part, residual=part, cache=cache.clone(), output_final_state=True)
            assert_close(y, ours)
            assert torch.equal(final, cached)
    assert function(x, weight, conv.bias)[1] is None
    heads = x.view(B, T, 2, D // 2)
    assert torch.equal(function(heads, weight, conv.bias)[0].view(x.shape),
                       function(x, weight, conv.bias)[0])  # fmt: skip


def test_sequences_of_the_function_are_packed_or_numbered():
    x, weight = torch.randn(1, T, D), torch.randn(D, W)
    offsets = packed_rows([4, T - 4])
    numbers = torch.tensor([[7] * 4 + [2] * (T - 4)], dtype=torch.int32)
    whole = torch.cat([function(part, weight, None)[0] for part in x.split([4, T - 4], 1)], 1)
    for options in ({"cu_seqlens": offsets, "cu_seqlens_cpu": offsets},
                    {"seq_idx": numbers, "backend": "mix"},
                    {"cu_seqlens": offsets, "seq_idx": numbers, "backend": "cuda"}):  # fmt: skip
        assert_close(function(x, weight, None, **options)[0], whole)


@pytest.mark.parametrize(
    "arguments, text",
    [({"weight": None}, "weight must be [D, W], but got None"),
     ({"weight": torch.randn(D, 1, W)}, "weight must be [D, W], but got [6, 1, 4]"),
     ({"x": torch.randn(B, T, 2, D)}, "x must be [B, T, D] with D = 6, but got [2, 11, 2, 6]"),
     ({"activation": "relu"}, "activation must be one of None, silu, swish, but got 'relu'"),
     ({"backend": "gluon"}, "backend must be one of triton, cuda, mix, but got 'gluon'"),
     ({"bias": torch.randn(1)}, "bias must be [6], but got [1]"),
     ({"residual": torch.randn(B, 1, D)}, "residual must be [2, 11, 6], but got [2, 1, 6]"),
     ({"initial_state": torch.randn(B, D, W - 1)},
      "initial_state must be torch.float32 [N, D, W] = [2, 6, 4], but got torch.float32 [2, 6, 3]"),
     ({"cu_seqlens_cpu": torch.tensor([0, T])},
      "cu_seqlens must be given beside cu_seqlens_cpu, but got None"),
     ({"seq_idx": torch.zeros(B, T).int(), "output_final_state": True},
      "output_final_state must be False beside seq_idx, but got True"),
     ({"cp_context": 3}, "cp_context must be None, but got 3")],
)  # fmt: skip
def test_wrong_input_of_the_function_is_refused(arguments, text):
    given = {"x": torch.randn(B, T, D), "weight": torch.randn(D, W), "bias": None, **arguments}
    with pytest.raises((ValueError, NotImplementedError)) as error:
        function(**given)
    assert str(error.value) == f"[causal_conv1d] {text}"


@pytest.mark.parametrize(
    "arguments, text",
    [({"x": torch.randn(B, D)}, "x must be [B, T, D] with D = 6, but got [2, 6]"),
     ({"cache": torch.randn(B, D, W - 1)},
      "cache must be torch.float32 [N, D, W] = [2, 6, 4], but got torch.float32 [2, 6, 3]"),
     ({"mask": torch.ones(1, T), "cu_seqlens": torch.tensor([0, T])},
      "mask or cu_seqlens must be given, but got both")],
)  # fmt: skip
def test_wrong_input_is_refused(arguments, text):
    with pytest.raises(ValueError) as error:
        module()(**{"x": torch.randn(B, T, D), **arguments})
    assert str(error.value) == f"[ShortConvolution] {text}"


def test_other_activations_are_refused():
    text = "activation must be None, 'silu' or 'swish', but got 'relu'"
    with pytest.raises(ValueError, match=text):
        module(activation="relu")
