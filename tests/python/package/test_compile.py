"""torch.compile without graph breaks, and torch.export."""

import os
import sysconfig

import pytest
import torch
from torch.testing import assert_close

import seqconv_torch
from seqconv_torch import ops

B, T, C, H, K = 2, 9, 12, 3, 5


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def modules(causal=False, p=0.0):
    return {
        "lightconv": seqconv_torch.LightConv(C, H, K, causal, p),
        "dynamicconv": seqconv_torch.DynamicConv(C, H, K, causal, p),
        "talk": seqconv_torch.TaLKConv(C, H, K - 1, causal, p),
        "cumulative_average": seqconv_torch.AverageAttention(C, 2 * C, p),
    }


every_module = pytest.mark.parametrize("name", modules())


def compiled(function, backend="aot_eager"):
    return torch.compile(function, fullgraph=True, backend=backend)


def results(function, module, x, lengths):
    """Output and gradients of one call."""
    x = x.detach().clone().requires_grad_()
    y = function(x, lengths)
    wanted = [x, *module.parameters()]
    return y, *torch.autograd.grad(y.float().square().sum(), wanted)


def check_lengths_of_time(function, module, autocast):
    """Compares compiled with eager for several T."""
    # Eager shares the cast of x, a leaf, between the operator and the linear
    # map, and so adds its two gradients in bfloat16: one rounding more.
    close = {"rtol": 2**-7, "atol": 2**-7} if autocast else {}
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        for steps in (T, 5, 23):
            x, lengths = torch.randn(B, steps, C), torch.tensor([steps, 4])
            got = results(function, module, x, lengths)
            wanted = results(module, module, x, lengths)
            for ours, theirs in zip(got, wanted):
                assert ours.dtype == theirs.dtype
                assert_close(ours, theirs, **close)


class CountingBackend:
    """aot_eager that counts how often it is asked to compile."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, graph, inputs):
        self.graphs += 1
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)


@every_module
@pytest.mark.parametrize("autocast", [False, True])
def test_modules_compile_to_one_graph_for_all_lengths(name, autocast):
    module, backend = modules()[name], CountingBackend()

    def dynamic(x, lengths):
        torch._dynamo.mark_dynamic(x, 1)
        return function(x, lengths)

    function = compiled(module, backend)
    check_lengths_of_time(dynamic, module, autocast)
    assert backend.graphs == 1


@pytest.mark.skipif(
    not os.path.exists(sysconfig.get_path("include") + "/Python.h"),
    reason="inductor compiles C++ that needs Python.h",
)
def test_inductor_compiles_all_in_a_row():
    module = torch.nn.Sequential(*modules().values())

    def mixed(x, lengths):
        return module(torch.tanh(x)) * 2

    function = compiled(mixed, "inductor")
    x = torch.randn(B, T, C)
    got = results(function, module, x, None)
    for ours, theirs in zip(got, results(mixed, module, x, None)):
        assert_close(ours, theirs)


@every_module
def test_autocast_inside_of_the_graph(name):
    module = modules()[name]

    def function(x):
        with torch.autocast("cpu", torch.bfloat16):
            return module(x)

    x = torch.randn(B, T, C)
    y = compiled(function)(x)
    assert y.dtype == torch.bfloat16 and torch.equal(y, function(x))


@every_module
def test_dropout_draws_anew_in_every_call(name):
    module = modules(p=0.5)[name]
    function, x = compiled(module), torch.randn(B, T, C)
    assert not torch.equal(function(x), function(x))
    module.eval()
    assert torch.equal(function(x), module(x))


def test_functions_compile_with_all_their_arguments():
    def function(x, weight, bias, lengths, seed):
        return ops.lightconv(
            x,
            weight,
            padding_left=weight.shape[1] - 1,
            normalization="sigmoid",
            bias=bias,
            lengths=lengths,
            drop_p=0.3,
            drop_seed=seed,
        )

    arguments = (
        torch.randn(B, T, C),
        torch.randn(H, K),
        torch.randn(C),
        torch.tensor([T, 3]),
        torch.tensor([5]),
    )
    function_compiled = torch.compile(
        function, fullgraph=True, dynamic=True, backend="aot_eager"
    )
    assert torch.equal(function_compiled(*arguments), function(*arguments))


@every_module
def test_steps_compile_and_change_their_state(name):
    module = modules(causal=True)[name]
    x = torch.randn(B, T, C)

    @compiled
    def step(x, state, position):
        y = module.step(x, state, position)
        position += x.shape[1]
        return y

    state, position = module.initial_state(B), torch.tensor([0])
    with torch.no_grad():
        outputs = [step(part, state, position) for part in x.split(3, 1)]
        assert_close(torch.cat(outputs, 1), module(x))
    assert position.item() == T


@every_module
def test_modules_are_exported_with_any_length(name):
    module = modules()[name].eval()
    x = torch.randn(B, T, C)
    shapes = {"x": {1: torch.export.Dim("T", max=512)}}
    program = torch.export.export(module, (x,), dynamic_shapes=shapes)
    assert f"seqconv.{name}.default" in str(program.graph)
    longer = torch.randn(B, 40, C)
    assert torch.equal(program.module()(longer), module(longer))
