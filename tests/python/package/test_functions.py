"""The functions: every argument arrives, steps agree, errors name values."""

import inspect
import math

import pytest
import references
import torch
from torch.testing import assert_close

import seqconv_torch
from seqconv_torch import ops

B, T, C, H, K = 2, 7, 6, 2, 3


def random(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


def logits_of(name):
    return random(H, K) if name == "lightconv" else random(B, T, H, K)


convolutions = pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])


def test_lightconv_gives_the_numbers_worked_out_by_hand():
    # Softmax makes these [1/6, 1/3, 1/2] and [1/4, 1/4, 1/2].
    two, three = math.log(2), math.log(3)
    weight = torch.tensor([[0, two, three], [0, 0, two]])
    x = torch.arange(1.0, 13.0).view(1, 3, 4)
    centred = torch.tensor(
        [[17 / 6, 22 / 6, 4.25, 5], [38 / 6, 44 / 6, 8, 9],
         [23 / 6, 26 / 6, 4.5, 5]]
    )  # fmt: skip
    assert_close(ops.lightconv(x, weight, padding_left=1)[0], centred)
    causal = ops.lightconv(x, weight, padding_left=2)[0]
    assert_close(causal[0], torch.tensor([0.5, 1, 1.5, 2]))
    assert_close(causal[1:], centred[:2])


def test_talk_gives_the_numbers_worked_out_by_hand():
    x = torch.arange(1.0, 6.0).view(1, 5, 1)
    half, quarter = torch.full_like(x, 0.5), torch.full_like(x, 0.25)
    y = ops.talk(x, half, quarter, max_left=2, max_right=1)
    assert_close(y.flatten(), torch.tensor([0.375, 0.9375, 1.5, 2.0625, 2.25]))
    y = ops.talk(x, 3 * quarter, max_left=2)
    assert_close(y.flatten(), torch.tensor([1, 3, 5.5, 8, 10.5]) / 3)


@convolutions
@pytest.mark.parametrize("padding_left", [0, 1, 2])
def test_convolutions_do_what_the_definition_says(name, padding_left):
    x, logits = random(B, T, C), logits_of(name)
    y = getattr(ops, name)(x, logits, padding_left=padding_left)
    wanted = references.lightconv(x, logits.softmax(-1), padding_left)
    assert_close(y, wanted)


@convolutions
@pytest.mark.parametrize("padding_left", [0, 1, 2])
def test_edges_are_renormalized_when_asked_for(name, padding_left):
    op, x, logits = getattr(ops, name), random(B, T, C), logits_of(name)
    options = {"padding_left": padding_left, "renormalize_edges": True}
    taps = references.renormalized(logits, T, padding_left)
    wanted = references.lightconv(x, taps, padding_left)
    assert_close(op(x, logits, **options), wanted)
    assert not torch.allclose(
        op(x, logits, padding_left=padding_left), wanted
    )
    # The end of a row is an edge as well.
    y = op(x, logits, lengths=torch.tensor([T, 4]), **options)
    short = logits if name == "lightconv" else logits[1:, :4]
    assert_close(y[1:, :4], op(x[1:, :4], short, **options))


def test_talk_does_what_the_definition_says():
    x, left, right = random(B, T, C), torch.rand(B, T, H), torch.rand(B, T, H)
    y = ops.talk(x, left.double(), right.double(), max_left=4, max_right=2)
    assert_close(y, references.talk(x, left, right, 4, 2))


@convolutions
def test_every_keyword_reaches_the_operator(name):
    op, x, logits = getattr(ops, name), random(B, T, C), logits_of(name)
    bias, mask = random(C), logits > 0
    y = op(x, logits, normalization="none", bias=bias, padding_left=2)
    assert_close(y, references.lightconv(x, logits, 2) + bias)

    y = op(x, logits, normalization="none", drop_p=0.25, drop_mask=mask)
    kept = logits * mask / 0.75
    assert_close(y, references.lightconv(x, kept, 0))

    seed = torch.tensor(7)
    once, again = [op(x, logits, drop_p=0.5, drop_seed=seed) for _ in "ab"]
    assert torch.equal(once, again)
    other = op(x, logits, drop_p=0.5, drop_seed=seed + 1)
    assert not torch.equal(once, other)

    y = op(x, logits, lengths=torch.tensor([T, 4]))
    assert torch.equal(y[0], op(x, logits)[0]) and (y[1, 4:] == 0).all()
    short = logits if name == "lightconv" else logits[1:, :4]
    assert_close(y[1:, :4], op(x[1:, :4], short))


def test_talk_takes_lengths():
    x, left = random(B, T, C), torch.rand(B, T, H).double()
    y = ops.talk(x, left, max_left=3, lengths=torch.tensor([T, 4]))
    assert torch.equal(y[0], ops.talk(x, left, max_left=3)[0])
    assert (y[1, 4:] == 0).all() and (y[1, :4] != 0).any()


def test_cumulative_average_does_what_the_definition_says():
    x = random(B, T, C)
    y = ops.cumulative_average(x)
    assert_close(y, references.cumulative_average(x))
    short = ops.cumulative_average(x, lengths=torch.tensor([T, 4]))
    assert torch.equal(short[0], y[0]) and torch.equal(short[1, :4], y[1, :4])
    assert (short[1, 4:] == 0).all()


def in_steps(step, state, sizes):
    """Outputs of step(first, last, state, position) over chunks of sizes."""
    position, outputs = torch.zeros(1, dtype=torch.int64), []
    for size in sizes:
        first = int(position)
        outputs.append(step(first, first + size, state, position))
        position += size
    return torch.cat(outputs, 1)


@convolutions
@pytest.mark.parametrize("sizes", [[1] * T, [3, 1, 3]])
@pytest.mark.parametrize(
    "options", [{"normalization": "tanh"}, {"renormalize_edges": True}]
)
def test_convolution_steps_give_what_the_whole_gives(name, sizes, options):
    x, logits = random(B, T, C), logits_of(name)
    options = {"bias": random(C), **options}
    whole = getattr(ops, name)(x, logits, padding_left=K - 1, **options)

    def step(first, last, state, position):
        part = logits
        if name == "dynamicconv":
            part = logits[:, first:last]
        return getattr(ops, name + "_step")(
            x[:, first:last], state, position, part, **options
        )

    state = ops.conv_initial_state(B, K, C, dtype=x.dtype)
    assert state.shape == (B, K - 1, C)
    assert_close(in_steps(step, state, sizes), whole)


@pytest.mark.parametrize("max_offset", [1.0, 1.5])
def test_talk_steps_give_what_the_whole_gives(max_offset):
    x, left = random(B, T, C), max_offset * torch.rand(B, T, H).double()
    whole = ops.talk(x, left, max_left=3)

    def step(first, last, state, position):
        part = slice(first, last)
        return ops.talk_step(
            x[:, part], state, position, left[:, part], max_left=3
        )

    state = ops.talk_initial_state(B, 3, C, max_offset, dtype=x.dtype)
    assert state.shape == (B, math.ceil(3 * max_offset), C)
    assert_close(in_steps(step, state, [1, 4, 2]), whole)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_average_steps_give_the_bits_of_the_whole(dtype):
    x = random(B, T, C, dtype=dtype)

    def step(first, last, state, position):
        part = x[:, first:last]
        return ops.cumulative_average_step(part, state, position)

    state = ops.average_initial_state(B, C)
    assert state.shape == (B, C) and state.dtype == torch.float64
    y = in_steps(step, state, [1, 4, 2])
    assert torch.equal(y, ops.cumulative_average(x))


def test_gradients_are_right():
    x, weight, bias = random(B, T, C), random(H, K), random(C)
    logits = random(B, T, H, K)
    for tensor in (x, weight, bias, logits):
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x, w, b: ops.lightconv(x, w, bias=b, padding_left=1),
        (x, weight, bias),
    )
    assert torch.autograd.gradcheck(
        lambda x, l, b: ops.dynamicconv(x, l, bias=b, padding_left=1),
        (x, logits, bias),
    )
    # A quarter and more from every whole position.
    steps = torch.randint(0, 3, (2, B, T, H)) + 0.25
    steps = steps.double() + torch.rand(2, B, T, H) / 2
    left, right = (steps / 3).unbind()
    assert torch.autograd.gradcheck(
        lambda x, l, r: ops.talk(x, l, r, max_left=3, max_right=3),
        (x, left.requires_grad_(), right.requires_grad_()),
    )
    lengths = torch.tensor([T, 4])
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(
            lambda x: ops.cumulative_average(x, lengths=lengths), (x,)
        )


def test_the_names_of_normalizations_are_all_there_are():
    x, weight = random(B, T, C), random(H, K)
    for name in ops.NORMALIZATIONS:
        assert ops.lightconv(x, weight, normalization=name).isfinite().all()
    with pytest.raises(RuntimeError) as error:
        ops.lightconv(x, weight, normalization="max")
    *most, last = [repr(name) for name in ops.NORMALIZATIONS]
    assert f"must be {', '.join(most)} or {last}, but got" in str(error.value)


SEQ, WEIGHT = torch.zeros(2, 5, 6), torch.zeros(2, 3)
POSITION = torch.tensor([0])
WRONG_CALLS = {
    "[lightconv] channels must be divisible by heads, but got C = 6, H = 4":
        lambda: ops.lightconv(SEQ, torch.zeros(4, 3)),
    "[lightconv] x must be [B, T, C], but got [5, 6]":
        lambda: ops.lightconv(SEQ[0], WEIGHT),
    "[lightconv] padding_left must be in 0 .. K-1 = 2, but got 3":
        lambda: ops.lightconv(SEQ, WEIGHT, padding_left=3),
    "[lightconv] x must be Double, Float or BFloat16, but got Half":
        lambda: ops.lightconv(SEQ.half(), WEIGHT),
    "[lightconv] lengths must be in 0 .. T = 5, but got 6 in row 1":
        lambda: ops.lightconv(SEQ, WEIGHT, lengths=torch.tensor([5, 6])),
    "[lightconv] renormalize_edges needs normalization 'softmax', but got":
        lambda: ops.lightconv(
            SEQ, WEIGHT, normalization="l1", renormalize_edges=True),
    "[dynamicconv] logits must be [B, T, H, K] with B = 2, T = 5, but got":
        lambda: ops.dynamicconv(SEQ, torch.zeros(2, 4, 2, 3)),
    "[dynamicconv_step] state must hold K-1 = 2 inputs, but got 3":
        lambda: ops.dynamicconv_step(
            SEQ, torch.zeros(2, 3, 6), POSITION, torch.zeros(2, 5, 2, 3)),
    "[talk] max_right must be 0 without offset_right, but got 1":
        lambda: ops.talk(SEQ, SEQ[..., :2], max_left=1, max_right=1),
    "[talk_step] offset_left must not exceed max_offset = 1":
        lambda: ops.talk_step(
            SEQ, torch.zeros(2, 3, 6), POSITION, 2 + SEQ[..., :2], max_left=3),
    "[cumulative_average] lengths must be in 0 .. T = 5, but got 6 in row 0":
        lambda: ops.cumulative_average(SEQ, lengths=torch.tensor([6, 5])),
    "[cumulative_average_step] state must be Double [N, C] with N = 2, C = 6":
        lambda: ops.cumulative_average_step(
            SEQ, torch.zeros(2, 6), POSITION),
    "[conv_initial_state] kernel_size must be at least 1, but got 0":
        lambda: ops.conv_initial_state(1, 0, 6),
    "[talk_initial_state] max_left and max_offset must be finite and not "
    "negative, but got 3 and -1": lambda: ops.talk_initial_state(1, 3, 6, -1),
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG_CALLS)
def test_a_wrong_call_says_what_was_wanted_and_what_came(message):
    with pytest.raises((RuntimeError, ValueError)) as error:
        WRONG_CALLS[message]()
    assert message in str(error.value)


def test_there_is_no_derivative_of_steps():
    x = random(B, T, C).requires_grad_()
    state = ops.conv_initial_state(B, K, C, dtype=x.dtype)
    with pytest.raises(RuntimeError, match=r"without grad mode \(torch.no_grad\(\)\)"):
        ops.lightconv_step(x, state, POSITION, random(H, K))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_number_is_the_position_of_all_rows(compiled):
    x, weight, offsets = random(B, T, C), random(H, K), random(B, T, H).sigmoid()
    filled = random(B, K - 1, C)
    calls = {
        "lightconv": lambda at, s: ops.lightconv_step(x, s, at, weight),
        "dynamicconv": lambda at, s: ops.dynamicconv_step(x, s, at, random(B, T, H, K) * 0 + 1),
        "talk": lambda at, s: ops.talk_step(x, s, at, offsets, max_left=K - 1),
        "cumulative_average": lambda at, s: ops.cumulative_average_step(x, s, at),
    }
    for name, call in calls.items():
        torch._dynamo.reset()
        function = torch.compile(call, backend="eager", fullgraph=True) if compiled else call
        for at in (0, 3, 50, 51):
            own, other = (filled[:, 0].clone() if "average" in name else filled.clone()
                          for _ in range(2))  # fmt: skip
            assert torch.equal(function(at, own), call(torch.tensor([at]), other)), (name, at)
            assert torch.equal(own, other)
    with pytest.raises(RuntimeError, match="position must not be negative, but got -1"):
        ops.lightconv_step(x, filled.clone(), -1, weight)
    for name, call in calls.items():
        for at in (1.5, True, None, "1"):
            text = rf"\[{name}_step\] position must be a whole number or one int64 element, but got "
            with pytest.raises(ValueError, match=text + repr(at).replace(".", r"\.")):
                call(at, filled[:, 0].clone() if "average" in name else filled.clone())


def test_vmap_gives_what_a_loop_gives():
    xs = random(3, B, T, C)
    weight = random(H, K).requires_grad_()

    def function(x):
        return ops.lightconv(x, weight, padding_left=1)

    mapped = torch.vmap(function)(xs)
    looped = torch.stack([function(x) for x in xs])
    assert_close(mapped, looped)
    grads = [
        torch.autograd.grad(y.square().sum(), weight)[0]
        for y in (mapped, looped)
    ]
    assert_close(grads[0], grads[1])


STEPS = {
    "lightconv_step": (random(H, K), random(3, H, K), K - 1),
    "dynamicconv_step": (random(B, 1, H, K), random(3, B, 1, H, K), K - 1),
    "talk_step": (
        torch.rand(B, 1, H).double(), torch.rand(3, B, 1, H).double(), 3,
    ),
    "cumulative_average_step": (None, None, None),
}  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("beside", ["for all", "for each"])
@pytest.mark.parametrize("name", STEPS)
def test_vmap_of_a_step_gives_what_a_loop_gives(name, beside, axis):
    one, each, slots = STEPS[name]
    options = {"max_left": 3} if name == "talk_step" else {}

    def step(x, state, position, *others):
        return getattr(ops, name)(x, state, position, *others, **options)

    shape = (3, B, C) if slots is None else (3, B, slots, C)
    x, states = random(3, B, 1, C), random(*shape)
    mapped_states = states.clone().movedim(0, axis).contiguous()
    position = torch.tensor([[2], [3], [9]])
    others, axes = (), ()
    if one is not None:
        others = (one,) if beside == "for all" else (each,)
        axes = (None,) if beside == "for all" else (0,)
    if beside == "for all":
        position, position_axis = position[0], None
    else:
        position_axis = 0
    y = torch.vmap(step, in_dims=(0, axis, position_axis, *axes))(
        x, mapped_states, position, *others
    )
    for i in range(3):
        state = states[i]
        mine = [o if beside == "for all" else o[i] for o in others]
        where = position if beside == "for all" else position[i]
        assert torch.equal(y[i], step(x[i], state, where, *mine))
        assert torch.equal(mapped_states.movedim(axis, 0)[i], state)


@pytest.mark.parametrize("name", STEPS)
def test_vmap_needs_a_state_for_each(name):
    one, _, slots = STEPS[name]
    options = {"max_left": 3} if name == "talk_step" else {}
    others = () if one is None else (one,)
    state = random(B, C) if slots is None else random(B, slots, C)
    with pytest.raises(RuntimeError, match=rf"\[{name}\] state must be mapped"):
        torch.vmap(
            lambda x: getattr(ops, name)(x, state, POSITION, *others, **options)
        )(random(3, B, 1, C))


def public_callables():
    for module in (ops, seqconv_torch.nn, seqconv_torch.convert):
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing):
                continue
            yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                steps = ("forward", "step", "initial_state")
                states = ("zeros", "of", "of_rolled", "last_inputs", "rolled", "select")
                for method in steps if issubclass(thing, torch.nn.Module) else states:
                    yield f"{name}.{method}", getattr(thing, method)


@pytest.mark.parametrize("name, thing", public_callables())
def test_all_that_is_public_says_its_shapes_and_types(name, thing):
    assert "[" in inspect.getdoc(thing), "no shape in the docstring"
    signature = inspect.signature(thing, eval_str=True)
    parameters = signature.parameters.values()
    for parameter in parameters:
        if parameter.name != "self":
            assert parameter.annotation is not parameter.empty, parameter.name
    if not inspect.isclass(thing):
        assert signature.return_annotation in (torch.Tensor, seqconv_torch.ShortConvState)
