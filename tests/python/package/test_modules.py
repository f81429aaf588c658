"""The modules: parameters, training, steps, saving."""

import copy
import inspect
import math
import pickle

import pytest
import torch
from torch.testing import assert_close

import seqconv_torch
from seqconv_torch import ops

B, T, C, H, K = 2, 9, 12, 3, 5


def make(kind, **options):
    if kind is seqconv_torch.AverageAttention:
        return kind(C, 2 * C, **options)
    size = K - 1 if kind is seqconv_torch.TaLKConv else K
    return kind(C, H, size, **options)


kinds = pytest.mark.parametrize(
    "kind", [seqconv_torch.LightConv, seqconv_torch.DynamicConv, seqconv_torch.TaLKConv]
)


all_kinds = pytest.mark.parametrize(
    "kind",
    [
        seqconv_torch.LightConv,
        seqconv_torch.DynamicConv,
        seqconv_torch.TaLKConv,
        seqconv_torch.AverageAttention,
    ],
)


def defaults(kind):
    parameters = inspect.signature(kind).parameters
    return {name: p.default for name, p in parameters.items()}


def test_names_and_defaults_are_those_of_the_cpp_layers():
    conv = {"heads": 1, "kernel_size": 3, "causal": False, "weight_dropout": 0}
    conv.update(normalization="softmax", renormalize_edges=False, bias=False)
    dynamic = {**conv, "filter_bias": False, "query_channels": 0}
    talk = {"heads": 1, "max_offset": 3, "causal": False, "offset_dropout": 0}
    assert conv.items() <= defaults(seqconv_torch.LightConv).items()
    assert dynamic.items() <= defaults(seqconv_torch.DynamicConv).items()
    assert talk.items() <= defaults(seqconv_torch.TaLKConv).items()
    average = {"hidden": 0, "activation_dropout": 0}
    assert average.items() <= defaults(seqconv_torch.AverageAttention).items()


def shapes(module):
    return {name: tuple(p.shape) for name, p in module.state_dict().items()}


def test_parameters_have_the_names_and_shapes_of_the_cpp_layers():
    assert shapes(make(seqconv_torch.LightConv)) == {"weight": (H, K)}
    assert shapes(make(seqconv_torch.DynamicConv)) == {"weight_linear": (H * K, C)}
    assert shapes(make(seqconv_torch.LightConv, bias=True)) == {
        "weight": (H, K),
        "bias": (C,),
    }
    assert shapes(make(seqconv_torch.DynamicConv, bias=True, filter_bias=True)) == {
        "weight_linear": (H * K, C),
        "weight_linear_bias": (H * K,),
        "bias": (C,),
    }
    assert shapes(make(seqconv_torch.TaLKConv)) == {
        "offsets.weight": (2 * H, C),
        "offsets.bias": (2 * H,),
    }
    assert shapes(make(seqconv_torch.TaLKConv, causal=True)) == {
        "offsets.weight": (H, C),
        "offsets.bias": (H,),
    }
    gate = {"gate.weight": (2 * C, 2 * C), "gate.bias": (2 * C,)}
    assert shapes(seqconv_torch.AverageAttention(C)) == gate
    assert shapes(seqconv_torch.AverageAttention(C, 5)) == {
        **gate,
        "ffn.fc1.weight": (5, C),
        "ffn.fc1.bias": (5,),
        "ffn.fc2.weight": (C, 5),
        "ffn.fc2.bias": (C,),
    }


@pytest.mark.parametrize(
    "module, bound",
    [
        (seqconv_torch.LightConv(512, 64, 31), math.sqrt(6 / (31 + 64 * 31))),
        (
            seqconv_torch.DynamicConv(512, 8, 31, filter_bias=True),
            1 / math.sqrt(512),
        ),
        (seqconv_torch.TaLKConv(512, 64), 1 / math.sqrt(512)),
    ],
)
def test_initial_parameters_are_uniform_within_the_bound(module, bound):
    for parameter in module.parameters():
        largest = parameter.detach().abs().max().item()
        assert 0.9 * bound < largest <= bound
        if parameter.numel() > 1000:
            deviation = parameter.std().item() / bound
            assert abs(deviation - 1 / math.sqrt(3)) < 0.05


def test_average_attention_begins_as_the_cpp_layer_does():
    module = seqconv_torch.AverageAttention(128, 512)
    fans = {"gate": 256 + 256, "ffn.fc1": 128 + 512, "ffn.fc2": 128 + 512}
    for name, both in fans.items():
        linear, bound = module.get_submodule(name), math.sqrt(6 / both)
        largest = linear.weight.detach().abs().max().item()
        assert 0.99 * bound < largest <= bound
        assert (linear.bias == 0).all()


@pytest.mark.parametrize("hidden", [0, 5])
def test_average_attention_is_the_formula_of_the_paper(hidden):
    module, x = seqconv_torch.AverageAttention(C, hidden), torch.randn(B, T, C)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    weights = module.state_dict()

    def linear(x, name):
        return x @ weights[name + ".weight"].t() + weights[name + ".bias"]

    g = x.cumsum(1) / torch.arange(1, T + 1)[:, None]
    if hidden:
        g = linear(linear(g, "ffn.fc1").clamp(min=0), "ffn.fc2")
    gates = torch.sigmoid(linear(torch.cat([x, g], -1), "gate"))
    wanted = gates[..., :C] * x + gates[..., C:] * g
    assert_close(module(x), wanted)
    x[1, 4:] = math.nan
    y = module(x, torch.tensor([T, 4]))
    assert_close(y[0], wanted[0])
    assert_close(y[1, :4], wanted[1, :4])
    assert (y[1, 4:] == 0).all()


@pytest.mark.parametrize("position", [0, torch.tensor([0])])
@pytest.mark.parametrize("sizes", [[1] * T, [4, 1, 4]])
def test_steps_of_average_attention_give_what_the_whole_gives(sizes, position):
    module, x = make(seqconv_torch.AverageAttention), torch.randn(B, T, C)
    state, position = module.initial_state(B), copy.deepcopy(position)
    assert state.shape == (B, C) and state.dtype == torch.float64
    outputs = []
    with torch.no_grad():
        for part in x.split(sizes, 1):
            outputs.append(module.step(part, state, position))
            position += part.shape[1]
        assert_close(torch.cat(outputs, 1), module(x))
    with pytest.raises(RuntimeError, match=r"without grad mode \(torch.no_grad\(\)\)"):
        module.step(x.requires_grad_(), state, position)


def test_activation_dropout_is_for_training_alone():
    options = {"activation_dropout": 0.5}
    module, x = make(seqconv_torch.AverageAttention, **options), torch.randn(B, T, C)
    assert not torch.equal(module(x), module(x))
    module.eval()
    assert torch.equal(module(x), module(x))


@pytest.mark.parametrize("causal", [True, False])
def test_modules_call_their_function(causal):
    x, lengths = torch.randn(B, T, C), torch.tensor([T, 4])
    padding_left = K - 1 if causal else K // 2
    options = {"padding_left": padding_left, "lengths": lengths}

    conv = make(seqconv_torch.LightConv, causal=causal)
    y = ops.lightconv(x, conv.weight, **options)
    assert torch.equal(conv(x, lengths), y)

    conv = make(seqconv_torch.DynamicConv, causal=causal)
    logits = (x @ conv.weight_linear.t()).view(B, T, H, K)
    assert_close(conv(x, lengths), ops.dynamicconv(x, logits, **options))

    conv = make(seqconv_torch.TaLKConv, causal=causal)
    offsets = torch.sigmoid(conv.offsets(x))
    left, right = offsets[..., :H], None if causal else offsets[..., H:]
    y = ops.talk(
        x,
        left,
        right,
        max_left=K - 1,
        max_right=0 if causal else K - 1,
        lengths=lengths,
    )
    assert_close(conv(x, lengths), y)


@pytest.mark.parametrize(
    "options",
    [{"normalization": name} for name in ops.NORMALIZATIONS]
    + [{"renormalize_edges": True}],
)
def test_modules_pass_their_options_on(options):
    x = torch.randn(B, T, C)
    passed = {"padding_left": K // 2, **options}
    options = {"bias": True, **options}

    conv = make(seqconv_torch.LightConv, **options)
    assert torch.equal(conv.bias, torch.zeros(C))
    torch.nn.init.normal_(conv.bias)
    y = ops.lightconv(x, conv.weight, bias=conv.bias, **passed)
    assert torch.equal(conv(x), y)

    conv = make(seqconv_torch.DynamicConv, filter_bias=True, **options)
    assert torch.equal(conv.bias, torch.zeros(C))
    torch.nn.init.normal_(conv.bias)
    logits = x @ conv.weight_linear.t() + conv.weight_linear_bias
    logits = logits.view(B, T, H, K)
    y = ops.dynamicconv(x, logits, bias=conv.bias, **passed)
    assert_close(conv(x), y)


def test_a_query_predicts_the_kernels_instead_of_x():
    module = make(seqconv_torch.DynamicConv, causal=True)
    x, query = torch.randn(2, B, T, C).unbind()
    logits = (query @ module.weight_linear.t()).view(B, T, H, K)
    wanted = ops.dynamicconv(x, logits, padding_left=K - 1)
    assert_close(module(x, query=query), wanted)
    assert torch.equal(module(x, query=x), module(x))
    state, position = module.initial_state(B), torch.tensor([0])
    with torch.no_grad():
        for part, its_query in zip(x.split(3, 1), query.split(3, 1)):
            y = module.step(part, state, position, its_query)
            position += 3
    assert_close(y, wanted[:, -3:])


def test_a_query_may_have_channels_of_its_own():
    Q = 7
    module = make(seqconv_torch.DynamicConv, causal=True, query_channels=Q)
    assert shapes(module) == {"weight_linear": (H * K, Q)}
    assert module.weight_linear.abs().max() <= 1 / math.sqrt(Q)
    assert "query_channels=7" in repr(module)
    x, query = torch.randn(B, T, C), torch.randn(B, T, Q)
    logits = (query @ module.weight_linear.t()).view(B, T, H, K)
    wanted = ops.dynamicconv(x, logits, padding_left=K - 1)
    assert_close(module(x, query=query), wanted)
    state, position = module.initial_state(B), torch.tensor([0])
    assert state.shape == (B, K - 1, C)
    with torch.no_grad():
        y = module.step(x, state, position, query)
    assert_close(y, wanted)
    message = r"query, or x without one, must be \[B, T, Q\] with Q = 7, but got"
    for wrong in (None, x, query[0]):
        with pytest.raises(ValueError, match=message):
            module(x, query=wrong)
        with pytest.raises(ValueError, match=message), torch.no_grad():
            module.step(x, state, position, wrong)


@pytest.mark.parametrize("kind", [seqconv_torch.LightConv, seqconv_torch.DynamicConv])
def test_x_must_have_the_channels_of_the_module(kind):
    module, x = make(kind, causal=True), torch.randn(B, T, 2 * C)
    message = r"x must be \[B, T, C\] with C = 12, but got \[2, 9, 24\]"
    query = {"query": x[..., :C]} if kind is seqconv_torch.DynamicConv else {}
    with pytest.raises(ValueError, match=message):
        module(x, **query)
    state, position = torch.zeros(B, K - 1, 2 * C), torch.tensor([0])
    with pytest.raises(ValueError, match=message), torch.no_grad():
        module.step(x, state, position, **query)


@all_kinds
def test_a_step_never_leaves_dropout_out_in_silence(kind):
    name = {
        seqconv_torch.TaLKConv: "offset_dropout",
        seqconv_torch.AverageAttention: "activation_dropout",
    }.get(kind, "weight_dropout")
    causal = {} if kind is seqconv_torch.AverageAttention else {"causal": True}
    module, x = make(kind, **{name: 0.25}, **causal), torch.randn(B, 1, C)
    state, position = module.initial_state(B), torch.tensor([0])
    message = rf"\[{kind.__name__}\] step needs a module in evaluation, after "
    message += rf"eval\(\), but got one in training with {name}=0.25"
    with torch.no_grad():
        with pytest.raises(ValueError, match=message):
            module.step(x, state, position)
        assert (state == 0).all()
        y = module.eval().step(x, state, position)
        assert_close(y, module(x))
        # Without dropout a module in training does the same.
        plain = make(kind, **causal)
        plain.load_state_dict(module.state_dict())
        assert torch.equal(plain.step(x, plain.initial_state(B), position), y)


def in_full(kind, **options):
    """A causal module with all it can have, its biases not zero."""
    if kind is not seqconv_torch.TaLKConv:
        options = {"bias": True, **options}
    module = make(kind, causal=True, **options)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


@kinds
@pytest.mark.parametrize("sizes", [[1] * T, [4, 1, 4]])
def test_steps_give_what_the_whole_gives(kind, sizes):
    check_steps(in_full(kind), sizes)


@pytest.mark.parametrize("kind", [seqconv_torch.LightConv, seqconv_torch.DynamicConv])
@pytest.mark.parametrize(
    "options", [{"normalization": "abs_l2"}, {"renormalize_edges": True}]
)
def test_steps_take_the_options_of_the_module(kind, options):
    check_steps(in_full(kind, **options), [4, 1, 4])


def check_steps(module, sizes):
    for position in (torch.tensor([0]), 0):
        check_steps_from(position, module, sizes)


def check_steps_from(position, module, sizes):
    x, state = torch.randn(B, T, C), module.initial_state(B)
    assert state.shape == (B, K - 1, C)
    outputs = []
    with torch.no_grad():
        for part in x.split(sizes, 1):
            outputs.append(module.step(part, state, position))
            position += part.shape[1]
        assert_close(torch.cat(outputs, 1), module(x))


@kinds
def test_steps_need_a_causal_module_and_no_gradient(kind):
    module, x = make(kind), torch.randn(B, 1, C)
    position = torch.tensor([0])
    with pytest.raises(ValueError, match=r"step needs causal=True"):
        module.step(x, torch.zeros(B, K - 1, C), position)
    with pytest.raises(ValueError, match=r"step needs causal=True"):
        module.initial_state(B)
    module = make(kind, causal=True)
    with pytest.raises(RuntimeError, match=r"without grad mode \(torch.no_grad\(\)\)"):
        module.step(x, module.initial_state(B), position)


@pytest.mark.parametrize("kind", [seqconv_torch.LightConv, seqconv_torch.DynamicConv])
def test_drop_connect_draws_a_seed_in_training(kind):
    module, x = make(kind, weight_dropout=0.5), torch.randn(B, T, C)
    plain = make(kind)
    plain.load_state_dict(module.state_dict())
    torch.manual_seed(3)
    first, second = module(x), module(x)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(module(x), first)
    assert torch.equal(module.eval()(x), plain(x))


def test_offset_dropout_leaves_only_the_current_token():
    # Where an offset is dropped the window shrinks to t on that side.
    module = make(seqconv_torch.TaLKConv, causal=True, offset_dropout=0.5)
    x = torch.randn(64, T, C)
    y = module(x) * K
    alone = torch.isclose(y, x, atol=1e-6).view(64, T, H, -1).all(-1)
    share = alone[:, 1:].float().mean().item()
    assert 0.4 < share < 0.6
    assert torch.equal(module.eval()(x), module(x))


@all_kinds
def test_modules_are_saved_and_copied(kind, tmp_path):
    module, x = make(kind), torch.randn(B, T, C)
    wanted = module(x)
    assert torch.equal(pickle.loads(pickle.dumps(module))(x), wanted)
    assert torch.equal(copy.deepcopy(module)(x), wanted)
    torch.save(module.state_dict(), tmp_path / "weights.pt")
    other = make(kind)
    other.load_state_dict(torch.load(tmp_path / "weights.pt"))
    assert torch.equal(other(x), wanted)


@all_kinds
def test_functional_call_uses_the_given_parameters(kind):
    module, other, x = make(kind), make(kind), torch.randn(B, T, C)
    y = torch.func.functional_call(module, other.state_dict(), (x,))
    assert torch.equal(y, other(x)) and not torch.equal(y, module(x))


@all_kinds
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_modules_are_converted_and_made_in_other_types(kind, dtype):
    for module in (make(kind).to(dtype), make(kind, dtype=dtype)):
        x = torch.randn(B, T, C, dtype=dtype)
        y = module(x)
        assert y.dtype == dtype
        if dtype == torch.bfloat16:
            exact = copy.deepcopy(module).double()(x.double())
            assert_close(y.double(), exact, rtol=0.03, atol=0.03)


@all_kinds
def test_modules_learn(kind):
    module, x = make(kind), torch.randn(B, T, C)
    target = x.roll(1, 1)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = (module(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.95 * losses[0]


@pytest.mark.parametrize(
    "make_wrong, message",
    [
        (lambda: seqconv_torch.LightConv(10, 4), "but got 10 channels, 4 heads"),
        (lambda: seqconv_torch.LightConv(0), "but got 0 channels, 1 heads"),
        (lambda: seqconv_torch.DynamicConv(8, 0), "but got 8 channels, 0 heads"),
        (
            lambda: seqconv_torch.LightConv(8, kernel_size=0),
            r"\[LightConv\] kernel_size must be at least 1, but got 0",
        ),
        (
            lambda: seqconv_torch.DynamicConv(8, weight_dropout=1.0),
            r"\[DynamicConv\] weight_dropout must be in \[0, 1\), but got 1.0",
        ),
        (
            lambda: seqconv_torch.DynamicConv(8, query_channels=-1),
            r"\[DynamicConv\] query_channels must not be negative, but got -1",
        ),
        (
            lambda: seqconv_torch.DynamicConv(8, normalization="max"),
            r"normalization must be one of none, softmax, .* but got 'max'",
        ),
        (
            lambda: seqconv_torch.LightConv(
                8, normalization="none", renormalize_edges=True
            ),
            "renormalize_edges needs normalization 'softmax', but got 'none'",
        ),
        (
            lambda: seqconv_torch.TaLKConv(8, max_offset=-1),
            r"\[TaLKConv\] max_offset must not be negative, but got -1",
        ),
        (
            lambda: seqconv_torch.TaLKConv(8, offset_dropout=-0.1),
            r"\[TaLKConv\] offset_dropout must be in \[0, 1\), but got -0.1",
        ),
        (
            lambda: seqconv_torch.AverageAttention(8, -1),
            r"\[AverageAttention\] channels must be at least 1 and hidden not "
            "negative, but got 8 and -1",
        ),
        (
            lambda: seqconv_torch.AverageAttention(8, 8, 1.0),
            r"activation_dropout must be in \[0, 1\), but got 1.0",
        ),
    ],
)
def test_impossible_sizes_are_errors(make_wrong, message):
    with pytest.raises(ValueError, match=message):
        make_wrong()


@kinds
def test_modules_print_their_options(kind):
    assert "12, heads=3" in repr(make(kind))
    assert "causal=True" in repr(make(kind, causal=True))


@all_kinds
def test_modules_know_their_shapes_without_values(kind):
    x = torch.empty(B, T, C, device="meta")
    y = make(kind, device="meta")(x)
    assert y.shape == x.shape and y.device.type == "meta"
