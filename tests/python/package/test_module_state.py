"""ModuleState: steps of a whole model against its forward, and what it refuses."""

import asyncio
import copy
import pickle
import random
import threading

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import seqconv_torch
from seqconv_torch import ModuleState
from seqconv_torch.fla import ShortConvolution
from seqconv_torch.jet_nemotron import DynamicShortConvolution

N, T, C, H, K = 3, 37, 12, 3, 5


class Block(nn.Module):
    """x + conv(x), also for modules that return a cache beside it."""

    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x, lengths=None):
        y = self.conv(x) if lengths is None else self.conv(x, lengths)
        return x + (y[0] if isinstance(y, tuple) else y)


class Stack(nn.Module):
    def __init__(self, *convs):
        super().__init__()
        self.blocks = nn.ModuleList(Block(conv) for conv in convs)

    def forward(self, x, lengths=None):
        for block in self.blocks:
            x = block(x, lengths)
        return x


class RowTaps(nn.Module):
    """Taps [.., H * K] from x [.., C] in a product of numbers, which rounds each position
    alike whatever stands beside it: a linear map does not."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(H * K))

    def forward(self, x):
        return x.repeat(1, 1, 2)[..., : H * K] * self.scale


def dynamic_short_conv(**options):
    conv = seqconv_torch.ShortConv(C, K, heads=H, **options)
    conv.predict = RowTaps()
    return conv


#: Convolutions whose steps have the bits of the whole.
EXACT = {
    "lightconv": lambda: seqconv_torch.LightConv(C, H, K, causal=True, bias=True),
    "wide": lambda: seqconv_torch.LightConv(C, H, 31, causal=True, renormalize_edges=True),
    "one tap": lambda: seqconv_torch.LightConv(C, H, 1, causal=True),
    "shortconv": lambda: seqconv_torch.ShortConv(C, 4, activation="silu", bias=True),
    "dilated": lambda: seqconv_torch.ShortConv(C, 3, groups=1, dilation=3, residual=True),
    "dynamic": lambda: dynamic_short_conv(residual=True),
    "fla": lambda: ShortConvolution(C, 4, bias=True),
}  # fmt: skip
#: Modules with a linear map of their own, or sums.
CLOSE = {
    "dynamicconv": lambda: seqconv_torch.DynamicConv(C, H, K, causal=True, filter_bias=True),
    "predicted": lambda: seqconv_torch.ShortConv(C, K, heads=H, rank=2),
    "talk": lambda: seqconv_torch.TaLKConv(C, H, 4, causal=True),
    "jet": lambda: DynamicShortConvolution(C, 4, static_conv_init=nn.init.normal_),
    "average": lambda: seqconv_torch.AverageAttention(C, C),
}


def convs(*names):
    return [(EXACT | CLOSE)[name]() for name in names]


def pieces(generator, total):
    """Sizes of 1 and more that sum up to total."""
    sizes = []
    while total > 0:
        sizes.append(min(total, generator.choice([1, 1, 2, 3, 5, 8, 20])))
        total -= sizes[-1]
    return sizes


def walked(model, x, generator, dtype=None):
    state = ModuleState(model, len(x), dtype=dtype)
    y = torch.cat([state(part) for part in x.split(pieces(generator, x.shape[1]), 1)], 1)
    assert state.position == x.shape[1]
    return y


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_steps_of_any_sizes_have_the_bits_of_the_whole(dtype):
    model = Stack(*convs(*EXACT)).to(dtype)
    generator = random.Random(1)
    with torch.no_grad():
        for _ in range(6):
            x = torch.randn(N, T, C, dtype=dtype)
            assert torch.equal(walked(model, x, generator), model(x))


@pytest.mark.parametrize("name", CLOSE)
def test_steps_of_modules_with_linear_maps_are_as_near_as_rounding(name):
    model, generator = Stack(*convs(name, name)).double().eval(), random.Random(2)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(N, T, C, dtype=torch.float64)
            assert_close(walked(model, x, generator), model(x), rtol=1e-12, atol=1e-12)


def test_a_dynamic_convolution_of_numbers_that_sum_exactly_has_the_bits_of_the_whole():
    conv = seqconv_torch.DynamicConv(C, H, K, causal=True)
    with torch.no_grad():
        conv.weight_linear.copy_(torch.randint(-8, 9, conv.weight_linear.shape) / 16)
        x = torch.randint(-4, 5, (N, T, C)).float()
        assert torch.equal(walked(conv, x, random.Random(3)), conv(x))


class History:
    """The streams of a state as whole sequences: an independent account of what they saw."""

    def __init__(self, rows):
        self.rows = [torch.empty(0, C, dtype=torch.float64)] * rows

    def step(self, model, x, counts):
        """Outputs of the counts[n] new inputs of each row."""
        self.rows = [torch.cat([row, new[:n]]) for row, new, n in zip(self.rows, x, counts)]
        return [model(row[None])[0, len(row) - n :] if n else row[:0]
                for row, n in zip(self.rows, counts)]  # fmt: skip


@pytest.mark.parametrize("names", [tuple(EXACT), ("shortconv", "talk"), ("dynamicconv", "fla")])
@pytest.mark.parametrize("seed", range(3))
def test_reordered_and_taken_back_streams_go_on_as_if_they_had_seen_nothing_else(names, seed):
    """Random steps, with and without lengths, rollbacks, reorderings and clones."""
    if "fla" in names:
        names = [name for name in names if name != "fla"]  # it takes no lengths
    model, generator = Stack(*convs(*names)).double(), random.Random(seed)
    limit, exact = 6, set(names) <= set(EXACT)
    state, history, most = ModuleState(model, N, rollback=limit), History(N), [0] * N
    with torch.no_grad():
        for _ in range(40):
            rows = len(history.rows)
            seen = [len(row) for row in history.rows]
            what = generator.choice(["step", "step", "lengths", "rollback", "reorder", "clone"])
            if what in ("step", "lengths"):
                size = generator.choice([1, 1, 3, 9])
                counts = [generator.randint(0, size) if what == "lengths" else size
                          for _ in range(rows)]  # fmt: skip
                x = torch.randn(rows, size, C, dtype=torch.float64)
                y = state(x, torch.tensor(counts) if what == "lengths" else None)
                for row, ours, theirs in zip(counts, y, history.step(model, x, counts)):
                    if exact:
                        assert torch.equal(ours[:row], theirs)
                    else:
                        assert_close(ours[:row], theirs)
            elif what == "rollback":
                counts = [generator.randint(0, max(0, min(n, n - top + limit)))
                          for n, top in zip(seen, most)]  # fmt: skip
                state.rollback(torch.tensor(counts))
                history.rows = [row[: len(row) - n] for row, n in zip(history.rows, counts)]
            elif what == "reorder":
                parents = [generator.randrange(rows) for _ in range(generator.choice([2, N, 4]))]
                state.reorder(torch.tensor(parents))
                history.rows = [history.rows[n] for n in parents]
                most = [most[n] for n in parents]
            else:
                other, state = state, state.clone()
                other(torch.randn(rows, 2, C, dtype=torch.float64))
            seen = [len(row) for row in history.rows]
            most = [max(pair) for pair in zip(seen, most)]
            assert state.positions.tolist() == seen and state.rows == len(seen)


def test_a_state_without_extra_slots_takes_nothing_back_and_one_with_some_no_more():
    model, x = Stack(*convs("shortconv", "talk")), torch.randn(N, 8, C)
    with torch.no_grad():
        state = ModuleState(model, N, rollback=3)
        state(x)
        state.rollback(2)
        state.rollback(torch.tensor([1, 0, 1], dtype=torch.int32))
        before = state.state_dict()
        with pytest.raises(ValueError) as error:
            state.rollback(1)
        assert str(error.value) == (
            "[ModuleState] counts must be in 0 .. [0, 1, 0], what each stream can take back, but "
            "got [1, 1, 1]"
        )
        assert all(torch.equal(of, before[name]) for name, of in state.state_dict().items())
        with pytest.raises(ValueError, match="counts must be in"):
            state.rollback(-1)
        with pytest.raises(ValueError, match=r"or int64 or int32 \[N\] with N = 3, but got"):
            state.rollback(torch.tensor([1, 1]))
        # A slot that was written over is lost, also after inputs were taken back.
        state(x[:, :1])
        with pytest.raises(ValueError, match=r"counts must be in 0 .. \[1, 2, 1\], what"):
            state.rollback(2)
        short = ModuleState(model, N, rollback=3)
        short(x[:, :2])
        with pytest.raises(ValueError, match=r"in 0 .. \[2, 2, 2\]"):
            short.rollback(3)


def test_positions_are_numbers_or_a_tensor():
    state = ModuleState(Stack(*convs("shortconv")), N)
    with torch.no_grad():
        assert state.position == 0
        state(torch.randn(N, 5, C))
        assert state.position == 5 and state.positions.tolist() == [5, 5, 5]
        with state:
            assert state.position == 5
            state.model(torch.randn(N, 2, C), torch.tensor([2, 0, 1]))
            assert state.position == 5
    assert state.positions.tolist() == [7, 5, 6]
    with pytest.raises(ValueError, match=r"streams that are as far, but got \[5, 6, 7\]"):
        state.position  # noqa: B018
    assert repr(state) == "ModuleState(Stack, rows=3, rollback=0, positions=[7, 5, 6])"


def test_two_states_of_one_model_and_one_within_the_other():
    outer, inner = Stack(*convs("lightconv")), Stack(*convs("shortconv", "talk"))
    x, theirs = torch.randn(N, T, C), torch.randn(1, T, C)

    class Both(nn.Module):
        def forward(self, x, drafts):
            return outer(x) + draft_state(drafts)

    both = Both()
    both.outer = outer
    with torch.no_grad():
        wanted = outer(x) + inner(theirs)
        other = ModuleState(outer, N)
        state, draft_state = ModuleState(both, N), ModuleState(inner, 1)
        ys = []
        for part, draft in zip(x.split(5, 1), theirs.split(5, 1)):
            ys.append(state(part, draft))
            other(part + 1)
        assert_close(torch.cat(ys, 1), wanted)
        assert state.position == other.position == draft_state.position == T
        # A model that is called outside of steps knows nothing of them.
        assert torch.equal(outer(x) + inner(theirs), wanted)
        # The inner of two steps of one model is the one that is meant.
        before = other.clone()
        with pytest.raises(ValueError, match="no call of"), other:
            before(x[:, :2])
        assert (before.position, other.position) == (T + 2, T)


def test_a_torn_state_is_refused_and_one_that_has_not_moved_is_as_before():
    class Failing(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = convs("shortconv", "lightconv")
            self.fails = None

        def forward(self, x):
            if self.fails == "before":
                raise KeyError("before")
            x = self.first(x)
            if self.fails == "between":
                raise KeyError("between")
            return self.second(x)

    model, x = Failing(), torch.randn(N, T, C)
    with torch.no_grad():
        state = ModuleState(model, N)
        wanted = model(x)
        assert torch.equal(state(x[:, :5]), wanted[:, :5])
        model.fails = "before"
        with pytest.raises(KeyError):
            state(x[:, 5:])
        model.fails = None
        assert torch.equal(state(x[:, 5:9]), wanted[:, 5:9])
        kept, saved = state.clone(), state.state_dict()
        model.fails = "between"
        with pytest.raises(KeyError):
            state(x[:, 9:])
        model.fails = None
        text = "must be whole, but got one whose last step ended in an error"
        for use in (lambda: state(x[:, 9:]), state.clone, state.state_dict,
                    lambda: state.rollback(0), lambda: state.reorder(torch.arange(N)),
                    lambda: copy.deepcopy(state), lambda: pickle.dumps(state)):  # fmt: skip
            with pytest.raises(ValueError, match=text):
                use()
        assert torch.equal(kept(x[:, 9:]), wanted[:, 9:])
        state.load_state_dict(saved)
        assert torch.equal(state(x[:, 9:]), wanted[:, 9:])


def test_a_step_calls_each_module_once_and_all_of_them():
    shared = convs("shortconv")[0]
    x = torch.randn(N, 2, C)
    with torch.no_grad():
        twice = Stack(shared, shared)
        with pytest.raises(ValueError) as error:
            ModuleState(twice, N)(x)
        assert str(error.value) == (
            "[ModuleState] each module must be called once in a step, but got a second call of "
            "'blocks.0.conv'"
        )
        model = Stack(*convs("shortconv", "lightconv", "talk", "fla", "wide"))
        state = ModuleState(model, N)
        with pytest.raises(ValueError, match="but got a second call of 'blocks.0.conv'"), state:
            model(x)
            model(x)
        state = ModuleState(model, N)
        with pytest.raises(ValueError) as error, state:
            model.blocks[1](x)
        assert str(error.value) == (
            "[ModuleState] every module must be called in a step, but got no call of "
            "['blocks.0.conv', 'blocks.2.conv', 'blocks.3.conv'] and 1 more"
        )
        with pytest.raises(ValueError, match="must be whole"):
            state(x)
        state = ModuleState(model, N)
        with pytest.raises(ValueError, match=r"no call of \['blocks.0.conv'"), state:
            pass
        state(x)  # nothing had moved


def test_modules_of_a_step_must_have_equal_inputs():
    model, x = Stack(*convs("shortconv", "lightconv")), torch.randn(N, 4, C)
    first, second = (block.conv for block in model.blocks)
    lengths = torch.tensor([4, 1, 2])
    for inputs, text in [
        ((x[:, :3],), "got 3 for 'blocks.1.conv' after 4 for 'blocks.0.conv'"),
        ((x, lengths), r"got 4 with lengths \[4, 1, 2\] for 'blocks.1.conv' after 4 for"),
    ]:
        with pytest.raises(ValueError, match=text), torch.no_grad(), ModuleState(model, N):
            first(x)
            second(*inputs)
    with torch.no_grad(), ModuleState(model, N) as state:
        first(x, lengths)
        second(x, lengths.clone())
    assert state.positions.tolist() == lengths.tolist()


@pytest.mark.parametrize("name", ["shortconv", "talk", "average"])
@pytest.mark.parametrize(
    "lengths", [[1, 5, 0], [1, -1, 0], [1, 1], [2.9, 3.0, 1.0], [True, False, True]]
)
def test_lengths_must_be_those_of_the_inputs(name, lengths):
    state = ModuleState(convs(name)[0], N)
    lengths = torch.tensor(lengths)
    with torch.no_grad():
        with pytest.raises(ValueError) as error:
            state(torch.randn(N, 4, C), lengths)
        assert str(error.value) == (
            "[ModuleState] lengths of '' must be [N], int64 or int32, in 0 .. T' with N, T' = "
            f"[3, 4], but got {lengths.dtype} {lengths.tolist()}"
        )
        state(torch.randn(N, 4, C), torch.tensor([4, 0, 1]))
    assert state.positions.tolist() == [4, 0, 1]


@pytest.mark.parametrize("name", ["shortconv", "lightconv", "talk", "fla"])
def test_a_first_module_that_refuses_its_inputs_leaves_the_state(name):
    model = Stack(*convs(name, "shortconv"))
    state = ModuleState(model, N)
    x = torch.randn(N, 2, C)
    with torch.no_grad():
        state(x)
        with pytest.raises((ValueError, RuntimeError)):
            state(x.double())
        assert state.position == 2
        assert_close(state(x), model(torch.cat([x, x], 1))[:, 2:])


@pytest.mark.parametrize("shape", [(N - 1, 2, C), (N, 0, C)])
def test_other_shapes_are_refused_and_change_nothing(shape):
    state = ModuleState(Stack(*convs("shortconv")), N)
    with torch.no_grad():
        state(torch.randn(N, 2, C))
        with pytest.raises(ValueError) as error:
            state(torch.randn(shape))
        assert str(error.value) == (
            "[ModuleState] x of 'blocks.0.conv' must be [N, T', C] with N = 3 and T' at least 1, "
            f"but got {list(shape)}"
        )
        state(torch.randn(N, 1, C))
    assert state.position == 3


def test_grad_mode_is_refused_with_the_cure():
    state = ModuleState(Stack(*convs("shortconv")), N)
    with pytest.raises(RuntimeError, match=r"must be made under torch.no_grad\(\), but got"):
        state(torch.randn(N, 2, C))
    with torch.no_grad():
        state(torch.randn(N, 2, C))
    with torch.inference_mode():
        untouched = ModuleState(state.model, N)
        made_there = ModuleState(state.model, N, rollback=1)
        for each in (state, made_there):
            each(torch.randn(N, 2, C))
            each.reorder(torch.tensor([1, 1, 0]))
    with torch.no_grad():
        made_there(torch.randn(N, 1, C))
        untouched(torch.randn(N, 1, C))
        state.clone()(torch.randn(N, 1, C))
    assert state.position == 4


def test_a_state_is_in_one_step_at_a_time():
    model = Stack(*convs("shortconv"))
    state = ModuleState(model, N)
    with torch.no_grad(), state:
        for use in (state.__enter__, state.clone, lambda: state.rollback(0),
                    lambda: pickle.dumps(state),
                    lambda: state.load_state_dict({})):  # fmt: skip
            with pytest.raises(ValueError, match="must be in no step, but got one in a step"):
                use()
        model(torch.randn(N, 1, C))
    assert state.position == 1


def loaded(**tensors):
    """A state of two rows that may take two inputs back, loaded with some tensors of others."""
    state = ModuleState(seqconv_torch.ShortConv(C, 4), 2, rollback=2)
    state.load_state_dict(state.state_dict() | tensors)


@pytest.mark.parametrize(
    "make, text",
    [(lambda: ModuleState(nn.Linear(2, 2), 1),
      "model must have a module of seqconv_torch, but got none in Linear"),
     (lambda: ModuleState(Stack(*convs("shortconv"), seqconv_torch.LightConv(C)), 1),
      "every module must take steps, but got 'blocks.1.conv': [LightConv] step needs causal=True"),
     (lambda: ModuleState(Stack(seqconv_torch.TaLKConv(C)), 1),
      "every module must take steps, but got 'blocks.0.conv': [TaLKConv] step needs causal=True"),
     (lambda: ModuleState(Stack(*convs("average")), 1, rollback=2),
      "every module must take steps, but got 'blocks.0.conv': [AverageAttention] rollback must be "
      "0, as sums forget, but got 2"),
     (lambda: ModuleState(seqconv_torch.LightConv(C, causal=True, device="meta"), 1, rollback=1),
      "every module must take steps, but got '': [LightConv] rollback must be 0 on meta, but got "
      "1"),
     (lambda: ModuleState(Stack(*convs("shortconv")), -1),
      "rows and rollback must not be negative, but got -1 and 0"),
     (lambda: ModuleState(Stack(*convs("shortconv")), 2).reorder(torch.tensor([0, 2])),
      "parents must be in 0 .. 1, but got [0, 2]"),
     (lambda: ModuleState(Stack(*convs("shortconv")), 2).reorder(torch.tensor([0.0])),
      "parents must be [N'], int64 or int32, but got torch.float32 [1]"),
     (lambda: ModuleState(Stack(*convs("shortconv")), 2).load_state_dict({}),
      "names must be ['form', 'positions', 'state.blocks.0.conv'], but got []"),
     (lambda: ModuleState(Stack(*convs("shortconv")), 2).load_state_dict(
         ModuleState(Stack(*convs("fla")), 2, rollback=1).state_dict()),
      "rollback, kernel sizes and dilations must be [0, 4, 1], but got [1, 4, 1]"),
     (lambda: ModuleState(seqconv_torch.ShortConv(C, 4), 2).load_state_dict(
         ModuleState(seqconv_torch.ShortConv(C, 2, dilation=3), 2).state_dict()),
      "rollback, kernel sizes and dilations must be [0, 4, 1], but got [0, 2, 3]"),
     (lambda: loaded(positions=torch.tensor([[-5, 3], [1, 1]])),
      "positions must be inputs seen, at least 0, and the most so far, at most 2 more, but got "
      "[[-5, 3], [1, 1]]"),
     (lambda: loaded(positions=torch.tensor([[5, 5], [2, 5]])),
      "positions must be inputs seen, at least 0, and the most so far, at most 2 more, but got "
      "[[5, 5], [2, 5]]"),
     (lambda: loaded(positions=torch.tensor([[5, 0], [5, 0]])),
      "positions must be inputs seen, at least 0, and the most so far, at most 2 more, but got "
      "[[5, 0], [5, 0]]"),
     (lambda: loaded(positions=torch.tensor(3)),
      "'positions' must be torch.int64 [0, 2], but got torch.int64 []"),
     (lambda: ModuleState(Stack(*convs("shortconv")), 2).rollback(1.0),
      "counts must be a number or a tensor, but got 1.0"),
     (lambda: ModuleState(Stack(*convs("shortconv")), 2).reorder([0, 0]),
      "parents must be a tensor, but got [0, 0]")],
)  # fmt: skip
def test_wrong_use_is_refused(make, text):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == f"[ModuleState] {text}"


def test_what_a_state_says_is_not_said_twice():
    x = torch.randn(N, 2, C)
    for name, options in [
        ("shortconv", {"initial_state": torch.zeros(N, 3, C)}),
        ("shortconv", {"seq_idx": torch.zeros(N, 2, dtype=torch.int32)}),
        ("fla", {"cache": torch.zeros(N, C, 4)}),
        ("fla", {"output_final_state": True}),
        ("jet", {"cu_seqlens": torch.tensor([0, 2])}),
    ]:
        (conv,) = convs(name)
        (said,) = options
        x = x[:1] if said == "cu_seqlens" else x
        text = rf"\[{type(conv).__name__}\] {said} must be left out in a step of a ModuleState"
        with torch.no_grad(), pytest.raises(ValueError, match=text):
            ModuleState(conv, len(x))(x, **options)


def test_modules_of_other_packages_keep_their_arguments():
    x, other, mask = torch.randn(N, 2 * T, C).split(T, 1) + (torch.rand(N, T).gt(0.3).float(),)
    fla, (jet,) = ShortConvolution(C, 4), convs("jet")
    jet_state, generator = ModuleState(jet, N), torch.randn(N, T, C)
    with torch.no_grad():
        for residual in (None, x, other):
            state, ys = ModuleState(fla, N), []
            for t in range(0, T, 5):
                part, its = x[:, t : t + 5], None if residual is None else residual[:, t : t + 5]
                its = part if residual is x else its
                y, none = state(part, residual=its, mask=mask[:, t : t + 5])
                assert none is None
                ys.append(y)
            assert torch.equal(torch.cat(ys, 1), fla(x, residual=residual, mask=mask)[0])
        ys = [jet_state(x[:, t : t + 5], generator_input=generator[:, t : t + 5])[0]
              for t in range(0, T, 5)]  # fmt: skip
        assert_close(torch.cat(ys, 1), jet(x, generator_input=generator)[0])


def test_a_module_that_came_later_is_no_silent_beginning():
    model = Stack(*convs("shortconv"))
    state = ModuleState(model, N)
    model.blocks.append(Block(convs("fla")[0]))
    with torch.no_grad(), pytest.raises(ValueError, match="but got another ShortConvolution"):
        state(torch.randn(N, 2, C))


def test_a_query_steps_with_its_inputs():
    conv = seqconv_torch.DynamicConv(C, H, K, causal=True, query_channels=4).double()
    x, query = torch.randn(N, T, C).double(), torch.randn(N, T, 4).double()
    state = ModuleState(conv, N)
    with torch.no_grad():
        ys = [state(part, query=its) for part, its in zip(x.split(7, 1), query.split(7, 1))]
        assert_close(torch.cat(ys, 1), conv(x, query=query))


def test_other_devices_keep_a_plain_state(monkeypatch):
    """As on a CUDA device, where there is no short_conv."""
    model = Stack(*convs("lightconv", "dynamicconv")).double()
    for block in model.blocks:
        conv = block.conv
        monkeypatch.setattr(conv, "_stream", lambda rows, rollback, dtype, conv=conv:
                            conv.initial_state(rows, dtype))  # fmt: skip
    history = History(N)
    state = ModuleState(model, N)
    with torch.no_grad():
        for counts in ([4, 4, 4], [2, 0, 3], [1, 1, 1], [0, 3, 3]):
            x = torch.randn(N, max(counts), C, dtype=torch.float64)
            for ours, theirs in zip(state(x, torch.tensor(counts)), history.step(model, x, counts)):
                assert_close(ours[: len(theirs)], theirs)
    meta = ModuleState(seqconv_torch.LightConv(C, H, K, causal=True, device="meta"), N)
    with torch.no_grad():
        assert meta(torch.empty(N, 4, C, device="meta")).shape == (N, 4, C)
    assert meta.positions.device.type == "meta"


def test_dropout_in_training_is_refused():
    conv = seqconv_torch.LightConv(C, H, K, causal=True, weight_dropout=0.1)
    with torch.no_grad(), pytest.raises(ValueError, match="step needs a module in evaluation"):
        ModuleState(conv, N)(torch.randn(N, 2, C))


def test_the_type_of_a_state_can_be_chosen():
    model, x = Stack(*convs("shortconv", "lightconv")), torch.randn(N, T, C)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        convolved = [block.conv(x) for block in model.blocks]
        for block, whole in zip(model.blocks, convolved):
            y = walked(block.conv, x, random.Random(4), torch.bfloat16)
            assert y.dtype == torch.bfloat16 and torch.equal(y, whole)


@pytest.mark.parametrize("how", ["clone", "deepcopy", "pickle", "state_dict"])
def test_copies_go_on_by_themselves(how):
    model = Stack(*convs("shortconv", "talk", "average", "lightconv"))
    x = torch.randn(N, T, C)
    with torch.no_grad():
        wanted = model(x)
        state = ModuleState(model, N)
        state(x[:, :9])
        if how == "clone":
            other = state.clone()
        elif how == "state_dict":
            other = ModuleState(copy.deepcopy(model), 1)
            other.load_state_dict(pickle.loads(pickle.dumps(state.state_dict())))
        else:
            other = copy.deepcopy(state) if how == "deepcopy" else pickle.loads(pickle.dumps(state))
        assert (other.model is model) == (how == "clone")
        state(torch.randn(N, 3, C))
        assert_close(other(x[:, 9:]), wanted[:, 9:])
        assert (state.position, other.position) == (12, T)


def test_steps_belong_to_their_thread_and_their_task():
    model = Stack(*convs("shortconv", "lightconv"))
    xs = torch.randn(4, N, T, C)
    with torch.no_grad():
        wanted = [model(x) for x in xs]
    results = [None] * 4
    barrier = threading.Barrier(4)

    def work(i):
        with torch.no_grad():
            if i == 0:  # this one knows no state
                barrier.wait()
                results[i] = torch.stack([model(xs[i]) for _ in range(30)])[-1]
                return
            state = ModuleState(model, N)
            barrier.wait()
            results[i] = torch.cat([state(xs[i][:, t : t + 1]) for t in range(T)], 1)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(results, wanted))

    async def decode(i):
        state, ys = ModuleState(model, N), []
        for part in xs[i].split(5, 1):
            with state:
                x = model.blocks[0](part)
                await asyncio.sleep(0)
                ys.append(model.blocks[1](x))
        return torch.cat(ys, 1)

    async def all_of_them():
        return await asyncio.gather(*map(decode, range(4)))

    with torch.no_grad():  # of the thread: tasks would end each other's
        results = asyncio.run(all_of_them())
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(results, wanted))

    async def parent():
        """Its child has a copy of its context, in one step and in the next."""

        async def child():
            first = model(xs[1])
            await asyncio.sleep(0.01)
            return first, model(xs[1])

        state = ModuleState(model, N)
        with state:
            task = asyncio.create_task(child())
            await asyncio.sleep(0)
            ys = [model(xs[0][:, :5])]
        with state:
            await asyncio.sleep(0.05)
            thread = await asyncio.to_thread(model, xs[2])
            ys.append(model(xs[0][:, 5:]))
        return [torch.cat(ys, 1), *await task, thread]

    with torch.no_grad():
        results = asyncio.run(parent())
    for ours, i in zip(results, (0, 1, 1, 2)):
        assert torch.equal(ours, wanted[i])


def test_a_compiled_model_is_made_again_for_steps():
    torch._dynamo.reset()
    model, x = Stack(*convs("shortconv", "talk")), torch.randn(N, 8, C)
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        wanted = compiled(x)  # a graph without steps
        state, other = ModuleState(compiled, N), ModuleState(compiled, N)
        ys = []
        for part in x.split([5, 1, 2], 1):
            ys.append(state(part))
            other(part + 1)
        assert_close(torch.cat(ys, 1), wanted)
        assert_close(compiled(x), wanted)
    torch._dynamo.reset()
    whole = torch.compile(model, backend="eager", fullgraph=True)
    with torch.no_grad(), pytest.raises(torch._dynamo.exc.Unsupported):
        ModuleState(whole, N)(x)
    torch._dynamo.reset()
