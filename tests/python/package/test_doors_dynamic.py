"""The dynamic convolutions of dynamic-conv1d and of Jet-Nemotron."""

import copy
import inspect
import pickle

import pytest
import torch
from torch.testing import assert_close

import seqconv_torch
from seqconv_torch import dynamic_conv1d
from seqconv_torch.dynamic_conv1d import (
    headwise_dynamic_convolution,
    lowrank_dynamic_convolution,
)
from seqconv_torch.jet_nemotron import DynamicShortConvolution

B, T, D, H, W, R = 2, 9, 12, 4, 3, 5


def parameters_of(function):
    return list(inspect.signature(function).parameters)


def test_names_and_orders_of_parameters_are_theirs():
    assert parameters_of(headwise_dynamic_convolution) == ["x", "weight", "static_w", "residual"]
    assert parameters_of(lowrank_dynamic_convolution) == ["x", "z", "U", "static_w", "residual"]
    assert parameters_of(DynamicShortConvolution) == [
        "hidden_size", "kernel_size", "generator_input_size", "generator_reduction",
        "generator_activation", "activation", "static_conv_init", "use_fast_conv1d",
        "implementation"]  # fmt: skip
    assert parameters_of(DynamicShortConvolution(D, W).forward) == [
        "x", "mask", "cache", "output_final_state", "cu_seqlens", "generator_input",
        "kwargs"]  # fmt: skip
    for name in dynamic_conv1d.__all__:
        assert getattr(seqconv_torch, name) is getattr(dynamic_conv1d, name)


def test_the_first_tap_is_that_of_the_current_position():
    x, taps = torch.randn(B, T, D), torch.zeros(B, T, H, W)
    taps[..., 1] = 2
    y = headwise_dynamic_convolution(x, taps, residual=True)
    assert torch.equal(y[:, 1:], 2 * x[:, :-1] + x[:, 1:]) and torch.equal(y[:, 0], x[:, 0])
    static_w = torch.zeros(W, D)
    static_w[0, 3] = 5
    y = lowrank_dynamic_convolution(x, torch.zeros(B, T, R), torch.randn(R, W * D), static_w)
    assert torch.equal(y[:, :, 3], 5 * x[:, :, 3])
    assert y[:, :, :3].eq(0).all() and y[:, :, 4:].eq(0).all()


def test_a_low_rank_is_a_kernel_for_every_channel():
    x, z, U = torch.randn(B, T, D), torch.randn(B, T, R), torch.randn(R, W * D)
    taps = (z @ U).view(B, T, W, D).mT
    assert_close(lowrank_dynamic_convolution(x, z, U), headwise_dynamic_convolution(x, taps))


def test_strided_inputs_and_taps_are_read():
    x = torch.randn(B, T, 2 * D)[:, :, D:]
    taps = torch.randn(B, H, 2 * T, W)[:, :, ::2].transpose(1, 2)
    y = headwise_dynamic_convolution(x, taps)
    assert torch.equal(y, headwise_dynamic_convolution(x.contiguous(), taps.contiguous()))


@pytest.mark.parametrize("steps", [0, 1])
def test_rows_may_be_short(steps):
    x, taps = torch.randn(B, steps, D), torch.randn(B, steps, H, W)
    y = headwise_dynamic_convolution(x, taps)
    assert_close(y, x * taps[..., 0].repeat_interleave(D // H, 2))
    z, U = torch.randn(B, steps, R), torch.randn(R, W * D)
    assert_close(lowrank_dynamic_convolution(x, z, U), x * (z @ U[:, :D]))


def test_taps_may_have_narrower_types():
    x, taps, static_w = torch.randn(B, T, D), torch.randn(B, T, H, W), torch.randn(W, D)
    narrow, half = taps.bfloat16(), static_w.half()
    y = headwise_dynamic_convolution(x, narrow, half)
    assert torch.equal(y, headwise_dynamic_convolution(x, narrow.float(), half.float()))
    z, U = torch.randn(B, T, R).bfloat16(), torch.randn(R, W * D).bfloat16()
    y = lowrank_dynamic_convolution(x.bfloat16(), z, U, static_w)
    exact = lowrank_dynamic_convolution(x.bfloat16().float(), z, U, static_w)
    assert y.dtype == torch.bfloat16 and torch.equal(y, exact.bfloat16())


@pytest.mark.parametrize(
    "function, changed, text",
    [(headwise_dynamic_convolution, {"x": torch.randn(T, D)},
      "x must be [B, T, D], but got [9, 12]"),
     (headwise_dynamic_convolution, {"weight": torch.randn(B, T, 5, W)},
      "weight must be [B, T, H, W] with B = 2, T = 9 and H that divides D = 12, but got "
      "[2, 9, 5, 3]"),
     (headwise_dynamic_convolution, {"static_w": torch.randn(D, W)},
      "static_w must be [W, D] with W = 3, D = 12, but got [12, 3]"),
     (headwise_dynamic_convolution, {"weight": torch.randn(B, T, H, W).double()},
      "weight must be of type torch.float32 or a narrower one beside x of torch.float32, but "
      "got torch.float64"),
     (lowrank_dynamic_convolution, {"z": torch.randn(B, 1, R)},
      "z must be [B, T, R] with B = 2, T = 9, but got [2, 1, 5]"),
     (lowrank_dynamic_convolution, {"U": torch.randn(R, 13)},
      "U must be [R, W * D] with R = 5, D = 12, but got [5, 13]")],
)  # fmt: skip
def test_wrong_input_is_refused(function, changed, text):
    arguments = {"x": torch.randn(B, T, D), **changed}
    taps = {"weight": torch.randn(B, T, H, W)}
    if function is lowrank_dynamic_convolution:
        taps = {"z": torch.randn(B, T, R), "U": torch.randn(R, W * D)}
    with pytest.raises(ValueError) as error:
        function(**{**taps, **arguments})
    assert str(error.value) == f"[{function.__name__}] {text}"


def jet(seed=3, **options):
    module = DynamicShortConvolution(
        D, W, generator_reduction=4, static_conv_init=torch.nn.init.normal_, **options
    )
    torch.manual_seed(seed)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module


def test_jets_parameters_are_theirs():
    module = DynamicShortConvolution(
        3072, 4, 1536, 8, static_conv_init=lambda bias: torch.nn.init.normal_(bias, std=0.02)
    )
    shapes = {name: list(of.shape) for name, of in module.state_dict().items()}
    assert shapes == {
        "kernel_generator.w1.weight": [384, 1536],
        "kernel_generator.w2.weight": [12288, 384],
        "kernel_generator.w2.bias": [12288],
    }
    generator = module.kernel_generator
    assert generator.w1.weight.eq(0).all() and generator.w2.weight.eq(0).all()
    assert 0.019 < generator.w2.bias.std() < 0.021
    assert module.generator_input_size == 1536 and module.generator_hidden_size == 384


def test_jet_begins_as_a_static_convolution():
    module = DynamicShortConvolution(D, W, static_conv_init=torch.nn.init.normal_)
    x = torch.randn(B, T, D)
    weight = module.kernel_generator.w2.bias.view(D, W)
    assert_close(module(x)[0], seqconv_torch.short_conv(x, weight, activation="silu"))
    zero = DynamicShortConvolution(D, W)
    assert zero(x)[0].eq(0).all() and zero(x)[1] is None


def test_jets_pieces_and_steps_are_the_whole():
    module, x, made_of = jet(generator_input_size=7), torch.randn(B, T, D), torch.randn(B, T, 7)
    whole, final = module(x, generator_input=made_of, output_final_state=True)
    assert torch.equal(final, x[:, -W:].mT)
    cache, parts, at = torch.zeros(B, D, W), [], 0
    for size in (3, 1, 2, 1, 2):  # 2 < W: the original loses the inputs before
        piece = slice(at, at + size)
        y, same = module(
            x[:, piece], cache=cache, output_final_state=size > 1, generator_input=made_of[:, piece]
        )
        assert same is cache
        parts.append(y)
        at += size
    assert_close(torch.cat(parts, 1), whole)
    assert torch.equal(cache, final)
    module(x, cache=cache, generator_input=made_of)
    assert torch.equal(cache, final)  # a whole changes it if its state is asked for
    torch.cat(parts, 1).sum().backward()


def test_jet_keeps_packed_sequences_apart():
    module, x = jet(), torch.randn(1, T, D)
    offsets, cache = torch.tensor([0, 4, 4, T]), torch.randn(3, D, W)
    before = cache.clone()
    y, final = module(x, cache=cache, cu_seqlens=offsets, output_final_state=True)
    for row, (a, b) in enumerate(((0, 4), (4, 4), (4, T))):
        one = before[row : row + 1].clone()
        alone, _ = module(x[:, a:b], cache=one, output_final_state=True)
        assert_close(y[:, a:b], alone)
        assert torch.equal(final[row], one[0])


def test_jet_masks_a_copy():
    module, x = jet(), torch.randn(B, T, D)
    before, mask = x.clone(), torch.ones(B, T).index_fill(1, torch.arange(3), 0)
    y, _ = module(x, mask=mask)
    assert torch.equal(x, before)
    assert_close(y, module(x * mask[:, :, None])[0])


def test_jet_is_saved_copied_and_compiled():
    module, x = jet(), torch.randn(B, T, D)
    other = jet(seed=4)
    other.load_state_dict(module.state_dict())
    for again in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), other):
        assert torch.equal(again(x)[0], module(x)[0])
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    assert_close(compiled(x)[0], module(x)[0])
    with torch.autocast("cpu", torch.bfloat16):
        assert module(x)[0].dtype == torch.bfloat16


@pytest.mark.parametrize(
    "arguments, text",
    [({"x": torch.randn(B, D)}, "x must be [B, T, D] with D = 12, but got [2, 12]"),
     ({"cache": torch.randn(B, D, W - 1)},
      "cache must be torch.float32 [N, D, W] = [2, 12, 3], but got torch.float32 [2, 12, 2]"),
     ({"generator_input": torch.randn(B, 1, D)},
      "generator_input must be [B, T, 12] beside x [2, 9, 12], but gave kernels [2, 1, 12, 3]"),
     ({"mask": torch.ones(1, T), "cu_seqlens": torch.tensor([0, T])},
      "mask or cu_seqlens must be given, but got both")],
)  # fmt: skip
def test_jet_refuses_wrong_input(arguments, text):
    with pytest.raises(ValueError) as error:
        jet()(**{"x": torch.randn(B, T, D), **arguments})
    assert str(error.value) == f"[DynamicShortConvolution] {text}"


@pytest.mark.parametrize("name", ["activation", "generator_activation"])
def test_jet_refuses_other_activations(name):
    with pytest.raises(ValueError, match=f"{name} must be one of .*, but got elu"):
        jet(**{name: "elu"})
