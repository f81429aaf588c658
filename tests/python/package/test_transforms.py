"""Second derivatives, torch.func, torch.vmap and forward mode: by the definitions."""

import pytest
import torch
from torch.testing import assert_close

import seqconv_torch
from seqconv_torch import ops

B, T, C, G, H, K = 2, 5, 4, 2, 4, 3


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def short_conv(**options):
    def function(x, weight, dynamic, bias, state):
        return ops.short_conv(
            x, weight, dynamic, bias=bias, initial_state=state, activation="silu", residual=True,
            **options,
        )  # fmt: skip

    return function, (random(B, T, C), random(G, K), random(B, T, H, K), random(C),
                      random(B, (K - 1) * options.get("dilation", 1), C))  # fmt: skip


CALLS = {
    "short_conv": short_conv(),
    "dilated": short_conv(dilation=2),
    "packed": (
        lambda x, weight: ops.short_conv(x, weight, cu_seqlens=torch.tensor([0, 2, 2, T])),
        (random(T, C), random(C, K)),
    ),
    "numbered": (
        lambda x, weight: ops.short_conv(x, weight, seq_idx=torch.tensor([[0, 0, 1, 1, -1]] * B)),
        (random(B, T, C), random(C, K)),
    ),
    "low_rank": (
        lambda x, z, u: ops.short_conv(x, low_rank=(z, u)),
        (random(B, T, C), random(B, T, 2), random(2, H, K)),
    ),
    "lightconv": (
        lambda x, weight, bias: ops.lightconv(x, weight, bias=bias, padding_left=1),
        (random(B, T, C), random(G, K), random(C)),
    ),
    "dynamicconv": (
        lambda x, logits: ops.dynamicconv(x, logits, lengths=torch.tensor([T, 2])),
        (random(B, T, C), random(B, T, G, K)),
    ),
    "cumulative_average": (
        lambda x: ops.cumulative_average(x, lengths=torch.tensor([T, 2])), (random(B, T, C),)
    ),
    "talk": (
        lambda x, left, right: ops.talk(x, left, right, max_left=3, max_right=2),
        # No edge at a whole position, where there is no derivative.
        (random(B, T, C), torch.rand(B, T, H).double() / 5 + 0.1,
         torch.rand(B, T, H).double() / 5 + 0.1),
    ),
}  # fmt: skip
calls = pytest.mark.parametrize("name", CALLS)
mappable = pytest.mark.parametrize("name", [n for n in CALLS if n not in ("packed", "numbered")])


def leaves(inputs):
    return [x.detach().clone().requires_grad_() for x in inputs]


@calls
def test_gradients_have_gradients(name):
    function, inputs = CALLS[name]
    assert torch.autograd.gradgradcheck(function, leaves(inputs))


@calls
def test_func_grad_is_that_of_autograd(name):
    function, inputs = CALLS[name]
    ours = torch.func.grad(
        lambda *inputs: function(*inputs).square().sum(), argnums=tuple(range(len(inputs)))
    )(*inputs)
    own = leaves(inputs)
    theirs = torch.autograd.grad(function(*own).square().sum(), own)
    for a, b in zip(ours, theirs):
        assert_close(a, b)


@mappable
def test_forward_mode_is_the_transpose_of_the_gradient(name):
    function, inputs = CALLS[name]
    tangents = tuple(map(torch.randn_like, inputs))
    y, tangent = torch.func.jvp(function, inputs, tangents)
    assert_close(y, function(*inputs))
    direction = torch.randn_like(y)
    own = leaves(inputs)
    grads = torch.autograd.grad(function(*own), own, direction)
    forward = (tangent * direction).sum()
    assert_close(forward, sum((g * t).sum() for g, t in zip(grads, tangents)))
    with torch.autograd.forward_ad.dual_level():
        dual = [torch.autograd.forward_ad.make_dual(x, t) for x, t in zip(inputs, tangents)]
        assert_close(torch.autograd.forward_ad.unpack_dual(function(*dual)).tangent, tangent)


@mappable
def test_gradients_of_each_sample(name):
    function, inputs = CALLS[name]
    samples = [torch.stack([x, torch.randn_like(x) if name != "talk" else x]) for x in inputs]

    def loss(*inputs):
        return function(*inputs).square().sum()

    every = tuple(range(len(inputs)))
    mapped = torch.vmap(torch.func.grad(loss, argnums=every))(*samples)
    for i in range(2):
        own = leaves([x[i] for x in samples])
        for ours, theirs in zip(mapped, torch.autograd.grad(loss(*own), own)):
            assert_close(ours[i], theirs)


def test_modules_are_transformed():
    module = seqconv_torch.ShortConv(C, K, heads=G, activation="silu").double()
    parameters = dict(module.named_parameters())
    x = random(3, T, C)

    def loss(parameters, x):
        return torch.func.functional_call(module, parameters, (x[None],)).square().sum()

    each = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    for i in range(3):
        own = torch.autograd.grad(loss(parameters, x[i]), parameters.values())
        for name, gradient in zip(parameters, own):
            assert_close(each[name][i], gradient)
