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


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("drop", DROPS)
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_conv_backward_is_a_complete_operator(name, drop, mask):
    args = (
        random(B, T, C, grad=False),
        random(B, T, C, grad=False),
        logits_of(name, grad=False),
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
