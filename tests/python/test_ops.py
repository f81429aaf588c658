"""The operators as Python sees them: torch.library.opcheck and gradcheck.

The library is loaded from SEQCONV_OPS_LIBRARY, or from build/release.
"""

import os
import pathlib

import pytest

torch = pytest.importorskip("torch")

LIBRARY = os.environ.get("SEQCONV_OPS_LIBRARY") or str(
    pathlib.Path(__file__).parents[2] / "build/release/lib/libseqconv_ops.so"
)
torch.ops.load_library(LIBRARY)
seqconv = torch.ops.seqconv

B, T, C, H, K = 2, 7, 6, 2, 3
NORMALIZATIONS = [
    "none", "softmax", "sigmoid", "tanh", "square", "abs", "l1", "l2",
    "abs_l1", "abs_l2",
]  # fmt: skip
DROPS = {
    "plain": {},
    "seed": {"drop_p": 0.3, "drop_seed": torch.tensor([5])},
    "mask": {"drop_p": 0.3},
}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def random(*shape, dtype=torch.float64, grad=True):
    return torch.randn(*shape, dtype=dtype).requires_grad_(grad)


def logits_of(name, **options):
    """weight [H, K] or logits [B, T, H, K]."""
    shape = (H, K) if name == "lightconv" else (B, T, H, K)
    return random(*shape, **options)


def keywords(name, drop):
    extra = dict(DROPS[drop], padding_left=1, normalization="softmax")
    if drop == "mask":
        extra["drop_mask"] = logits_of(name, grad=False) > -0.5
    return extra


def fractional_offsets(dtype=torch.float64, grad=True):
    """Far enough from whole positions (maximum 3) for finite differences."""
    steps = torch.randint(0, 3, (B, T, H)) + 0.25 + 0.5 * torch.rand(B, T, H)
    return (steps / 3).to(dtype).requires_grad_(grad)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_conv_is_a_complete_operator(name, drop, dtype):
    args = (
        random(B, T, C, dtype=dtype),
        logits_of(name, dtype=dtype),
        random(C, dtype=dtype),
    )
    extra = dict(keywords(name, drop), lengths=torch.tensor([T, 4]))
    torch.library.opcheck(getattr(seqconv, name).default, args, extra)


MASKS = [[True, True, True], [True, True, False], [True, False, False],
         [False, True, True]]


BACKWARDS = [(drop, mask, torch.float64) for drop in DROPS for mask in MASKS]


# The gradient of a bias is float32 beside bfloat16.
@pytest.mark.parametrize("drop, mask, dtype", [*BACKWARDS, ("plain", MASKS[0], torch.bfloat16)])
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_conv_backward_is_a_complete_operator(name, drop, mask, dtype):
    args = (
        random(B, T, C, grad=False, dtype=dtype),
        random(B, T, C, grad=False, dtype=dtype),
        logits_of(name, grad=False, dtype=dtype),
    )
    extra = dict(keywords(name, drop), output_mask=mask)
    op = getattr(seqconv, name + "_backward").default
    torch.library.opcheck(op, args, extra)


@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_conv_step_is_a_complete_operator(name):
    args = (
        random(B, T, C, grad=False),
        random(B, K - 1, C, grad=False),
        torch.tensor([4]),
        logits_of(name, grad=False),
        random(C, grad=False),
    )
    torch.library.opcheck(getattr(seqconv, name + "_step").default, args)


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_conv_gradients_with_renormalized_edges(name, drop):
    extra = dict(keywords(name, drop), renormalize_edges=True)
    op = getattr(seqconv, name)

    def function(x, logits, bias):
        return op(x, logits, bias, lengths=torch.tensor([T, 4]), **extra)

    inputs = (random(B, T, C), logits_of(name), random(C))
    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_conv_gradients(name, normalization, drop):
    extra = dict(keywords(name, drop), normalization=normalization)
    op = getattr(seqconv, name)

    def function(x, logits, bias):
        return op(x, logits, bias, lengths=torch.tensor([T, 4]), **extra)

    inputs = (random(B, T, C), logits_of(name), random(C))
    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_talk_is_a_complete_operator(dtype, causal):
    right = None if causal else fractional_offsets(dtype)
    args = (random(B, T, C, dtype=dtype), fractional_offsets(dtype), right)
    extra = {"max_left": 3, "max_right": 0 if causal else 3}
    torch.library.opcheck(seqconv.talk.default, args, extra)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [True, False])
def test_talk_backward_is_a_complete_operator(causal, mask):
    right = None if causal else fractional_offsets(grad=False)
    args = (
        random(B, T, C, grad=False),
        random(B, T, C, grad=False),
        fractional_offsets(grad=False),
        right,
    )
    extra = {"max_left": 3, "max_right": 0 if causal else 3, "output_mask": mask}
    extra["lengths"] = torch.tensor([T, 4])
    torch.library.opcheck(seqconv.talk_backward.default, args, extra)


def test_talk_step_is_a_complete_operator():
    args = (
        random(B, T, C, grad=False),
        random(B, 3, C, grad=False),
        torch.tensor([4]),
        fractional_offsets(grad=False),
    )
    torch.library.opcheck(seqconv.talk_step.default, args, {"max_left": 3})


@pytest.mark.parametrize("causal", [True, False])
def test_talk_gradients(causal):
    def function(x, left, right=None):
        return seqconv.talk(
            x,
            left,
            right,
            max_left=3,
            max_right=0 if right is None else 3,
            lengths=torch.tensor([T, 4]),
        )

    inputs = [random(B, T, C), fractional_offsets()]
    if not causal:
        inputs.append(fractional_offsets())
    assert torch.autograd.gradcheck(function, inputs)


def test_steps_mark_their_state_as_changed():
    state = torch.zeros(B, K - 1, C)
    before = state._version
    seqconv.lightconv_step(
        torch.randn(B, 1, C), state, torch.tensor([0]), torch.randn(H, K)
    )
    assert state._version == before + 1
    assert state.abs().sum() > 0


def test_shapes_are_known_without_values():
    x = torch.empty(B, T, C, device="meta")
    weight = torch.empty(H, K, device="meta")
    y = seqconv.lightconv(x, weight, padding_left=1)
    assert y.shape == x.shape and y.device.type == "meta"


META = torch.device("meta")
EVERY_TENSOR = {
    "lightconv": ("weight", "bias", "lengths", "drop_seed"),
    "dynamicconv": ("weight", "bias", "lengths", "drop_mask"),
    "talk": ("offset_left", "offset_right", "lengths"),
    "cumulative_average": ("lengths",),
    "lightconv_step": ("state", "position", "weight", "bias"),
    "dynamicconv_step": ("state", "position", "logits", "bias"),
    "talk_step": ("state", "position", "offset_left"),
    "cumulative_average_step": ("state", "position"),
    "lightconv_backward": ("x", "weight", "lengths", "drop_seed"),
    "dynamicconv_backward": ("x", "logits", "lengths", "drop_mask"),
    "talk_backward": ("x", "offset_left", "offset_right", "lengths"),
    "cumulative_average_backward": ("lengths",),
}


def call_of(name):
    """Arguments by name of a right call on the CPU; those of the schema."""
    conv = name.split("_")[0]
    step = name.endswith("_step")
    logits = logits_of("lightconv" if conv == "lightconv" else "dynamicconv", grad=False)
    values = {
        "x": random(B, T, C, grad=False),
        "grad": random(B, T, C, grad=False),
        "position": torch.tensor([4]),
        "weight": logits,
        "logits": logits,
        "bias": random(C, grad=False),
        "lengths": torch.tensor([T, 4]),
        "offset_left": fractional_offsets(grad=False),
        "offset_right": fractional_offsets(grad=False),
        "state": random(B, K - 1 if "conv" in name else 3, C, grad=False),
        "output_mask": [True, True, True],
        "padding_left": 1,
        "max_left": 3,
        "max_right": 0 if step else 3,
        "drop_p": 0.5,
    }
    if conv == "lightconv":
        values["drop_seed"] = torch.tensor([3])
    else:
        values["drop_mask"] = logits > 0
    if name == "cumulative_average_step":
        values["state"] = random(B, C, grad=False)
    op = getattr(seqconv, name).default
    names = [argument.name for argument in op._schema.arguments]
    return op, {n: values[n] for n in names if n in values}


@pytest.mark.parametrize(
    "name, argument",
    [(name, a) for name, all_of in EVERY_TENSOR.items() for a in all_of],
)
def test_every_tensor_must_be_on_the_device_of_x(name, argument):
    """On the meta device, which has no values to be wrong about."""
    op, arguments = call_of(name)
    op(**arguments)
    argument = argument if argument in arguments else "logits"
    arguments[argument] = arguments[argument].to(META)
    pair = "meta.* but got .*cpu" if argument == "x" else "cpu.* but got .*meta"
    with pytest.raises(RuntimeError, match=rf"^\[{name}\] .*{pair}"):
        op(**arguments)


@pytest.mark.parametrize("name", [n for n in EVERY_TENSOR if n.endswith("_step")])
def test_a_position_on_the_host_goes_with_an_x_on_a_device(name):
    op, arguments = call_of(name)
    for key, value in arguments.items():
        if isinstance(value, torch.Tensor) and key != "position":
            arguments[key] = value.to(META)
    assert op(**arguments).shape == (B, T, C)


@pytest.mark.parametrize("name", EVERY_TENSOR)
def test_forward_mode_derivatives_are_refused(name):
    """Whichever argument has the tangent, and also where gradients are off."""
    op, arguments = call_of(name)
    forward_ad = torch.autograd.forward_ad
    for key, value in arguments.items():
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            continue
        with forward_ad.dual_level(), torch.no_grad():
            dual = forward_ad.make_dual(value, torch.ones_like(value))
            with pytest.raises(RuntimeError, match="forward-mode derivatives are not"):
                op(**{**arguments, key: dual})


@pytest.mark.parametrize(
    "name", [n for n, all_of in EVERY_TENSOR.items() if "lengths" in all_of]
)
def test_lengths_may_be_int32(name):
    op, arguments = call_of(name)
    short = {**arguments, "lengths": arguments["lengths"].int()}
    ours, theirs = op(**short), op(**arguments)
    for a, b in zip(
        *([r] if isinstance(r, torch.Tensor) else r for r in (ours, theirs))
    ):
        assert torch.equal(a, b)
    for dtype in (torch.bool, torch.int16, torch.float32):
        wrong = {**arguments, "lengths": arguments["lengths"].to(dtype)}
        with pytest.raises(RuntimeError, match="lengths must be Long or Int, but got"):
            op(**wrong)


def test_a_wrong_call_names_the_values():
    with pytest.raises(RuntimeError, match=r"\[lightconv\] channels must be"):
        seqconv.lightconv(
            torch.zeros(1, 2, 10), torch.zeros(4, 3), padding_left=1
        )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("direction", ["", "_backward"])
def test_cumulative_average_is_a_complete_operator(direction, dtype):
    op = getattr(seqconv, "cumulative_average" + direction).default
    extra = {"lengths": torch.tensor([T, 4])}
    torch.library.opcheck(op, (random(B, T, C, dtype=dtype),), extra)


def test_cumulative_average_step_is_a_complete_operator():
    state = torch.zeros(B, C, dtype=torch.float64)
    args = (random(B, T, C, grad=False), state, torch.tensor([4]))
    torch.library.opcheck(seqconv.cumulative_average_step.default, args)


def test_cumulative_average_gradients():
    def function(x):
        return seqconv.cumulative_average(x, lengths=torch.tensor([T, 4]))

    assert torch.autograd.gradcheck(function, (random(B, T, C),))
    assert torch.autograd.gradgradcheck(function, (random(B, T, C),))


@pytest.mark.parametrize(
    "name", ["lightconv", "dynamicconv", "talk", "cumulative_average"]
)
def test_the_calls_of_the_cuda_benchmark(name, monkeypatch):
    """They need a device to be timed, but none to be wrong."""
    folder = pathlib.Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    import ops_cuda_bench

    case = ops_cuda_bench.Case(seqconv, name, torch.float32, 1, 40, 16, 2, 5)
    case.check("cpu")
