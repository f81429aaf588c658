"""Short convolutions: functions, states and modules from Python."""

import copy
import pickle

import pytest
import torch
from torch.testing import assert_close

import seqconv_torch
from seqconv_torch import ShortConvState, ops

B, T, C, G, H, K = 2, 11, 12, 6, 3, 4


def definition(x, weight=None, dynamic=None, bias=None, silu=False, residual=False, dilation=1):
    """x [B, T, C] in loops over single numbers, in float64."""
    x = x.double()
    y = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            for c in range(x.shape[2]):
                z = 0.0 if bias is None else bias[c].item()
                taps = (weight if dynamic is None else dynamic).shape[-1]
                for j in range(taps):
                    s = t - (taps - 1 - j) * dilation
                    if s < 0:
                        continue
                    tap = 0.0
                    if weight is not None:
                        tap += weight[c * weight.shape[0] // x.shape[2], j].item()
                    if dynamic is not None:
                        tap += dynamic[b, t, c * dynamic.shape[2] // x.shape[2], j].item()
                    z += tap * x[b, s, c].item()
                z = torch.tensor(z, dtype=torch.float64)
                y[b, t, c] = (z * z.sigmoid() if silu else z) + (x[b, t, c] if residual else 0)
    return y


def assert_equal(ours, theirs):
    assert torch.equal(ours, theirs)


def random(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


@pytest.mark.parametrize("taps", ["static", "dynamic", "both", "low_rank"])
@pytest.mark.parametrize("silu, residual, dilation", [(0, 0, 1), (1, 0, 2), (0, 1, 1), (1, 1, 3)])
def test_it_does_what_the_definition_says(taps, silu, residual, dilation):
    x, bias = random(B, T, C), random(C)
    weight = random(G, K) if taps in ("static", "both") else None
    dynamic = random(B, T, H, K) if taps in ("dynamic", "both") else None
    low_rank = (random(B, T, 2), random(2, H, K)) if taps == "low_rank" else None
    y = ops.short_conv(
        x, weight, dynamic, low_rank=low_rank, bias=bias, activation="silu" if silu else None,
        residual=bool(residual), dilation=dilation,
    )  # fmt: skip
    if low_rank is not None:
        dynamic = torch.einsum("btp,phk->bthk", *low_rank)
    assert_close(y, definition(x, weight, dynamic, bias, silu, residual, dilation))


def test_lightconv_and_dynamicconv_are_it_with_a_softmax():
    x, weight, logits = random(B, T, C), random(H, K), random(B, T, H, K)
    for normalization in ("softmax", "tanh"):
        options = {"normalization": normalization, "padding_left": 1}
        assert torch.equal(
            ops.short_conv(x, weight, **options), ops.lightconv(x, weight, **options)
        )
        assert torch.equal(
            ops.short_conv(x, dynamic=logits, **options), ops.dynamicconv(x, logits, **options)
        )


def test_packed_numbered_and_padded_rows_are_the_same_sequences():
    lengths = [5, 0, 11]
    rows = [random(n, C) for n in lengths]
    weight = random(C, K)
    padded = torch.zeros(3, T, C, dtype=torch.float64)
    for b, row in enumerate(rows):
        padded[b, : len(row)] = row
    offsets = torch.tensor([0, 5, 5, 16], dtype=torch.int32)
    packed = ops.short_conv(torch.cat(rows), weight, cu_seqlens=offsets, activation="silu")
    whole = ops.short_conv(padded, weight, lengths=torch.tensor(lengths), activation="silu")
    numbers = torch.tensor([[0] * 5 + [-1] * 6, [-1] * T, [7] * T], dtype=torch.int32)
    numbered = ops.short_conv(padded, weight, seq_idx=numbers, activation="silu")
    assert torch.equal(whole, numbered)
    assert torch.equal(packed, torch.cat([whole[b, :n] for b, n in enumerate(lengths)]))


def test_a_state_goes_from_the_whole_to_steps_and_back():
    x, weight = random(B, T, C), random(C, K)
    y = ops.short_conv(x, weight)
    state = ShortConvState.of(ops.short_conv_final_state(x[:, :6], K), K, rollback=2)
    assert torch.equal(ops.short_conv_step(x[:, 6:9], state, weight), y[:, 6:9])
    state.rollback(2)
    other = state.clone()
    assert torch.equal(ops.short_conv_step(x[:, 7:], state, weight), y[:, 7:])
    assert torch.equal(state.last_inputs(), x[:, -3:])
    assert torch.equal(state.rolled(), x[:, -3:].transpose(1, 2))
    assert torch.equal(state.rolled(5), x[:, -5:].transpose(1, 2))
    assert torch.equal(state.rolled(6)[:, :, 1:], state.rolled(5))
    other.rollback(torch.tensor([0, 0]))
    assert torch.equal(other.last_inputs(), x[:, 4:7])
    swapped = other.select(torch.tensor([1, 0]))
    assert torch.equal(ops.short_conv_step(x.flip(0)[:, 7:], swapped, weight), y.flip(0)[:, 7:])
    rolled = ShortConvState.of_rolled(x[:, 3:7].transpose(1, 2), K)
    assert torch.equal(ops.short_conv_step(x[:, 7:], rolled, weight), y[:, 7:])


def test_streams_of_a_step_are_chosen():
    x, weight = random(3, 2, C), random(C, K)
    state = ShortConvState.zeros(4, K, C, dtype=torch.float64)
    before = state.ring.clone()
    rows, lengths = torch.tensor([2, -1, 0]), torch.tensor([2, 2, 1])
    y = ops.short_conv_step(x, state, weight, state_indices=rows, lengths=lengths)
    whole = ops.short_conv(x, weight)
    assert torch.equal(y[0], whole[0]) and torch.equal(y[2, :1], whole[2, :1])
    assert y[1].eq(0).all() and y[2, 1].eq(0).all()
    assert state.positions[:, 0].tolist() == [1, 0, 2, 0]
    assert torch.equal(state.ring[[1, 3]], before[[1, 3]])


def test_wrong_states_are_refused():
    with pytest.raises(ValueError, match=r"\[ShortConvState\] rows, kernel_size"):
        ShortConvState.zeros(1, 0, C)
    with pytest.raises(ValueError, match="must be .M, .K-1. . dilation, C. with"):
        ShortConvState.of(random(1, 2, C), K)
    with pytest.raises(ValueError, match=r"rolled must be \[B, C, W\] with W at least 3"):
        ShortConvState.of_rolled(random(1, C, 2), K)
    state = ShortConvState.zeros(1, K, C, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=r"\[short_conv_rollback\] counts must be in 0 .. 0"):
        state.rollback(1)
    with pytest.raises(ValueError, match="dynamic or low_rank must be given, but got both"):
        ops.short_conv(
            random(B, T, C), dynamic=random(B, T, H, K), low_rank=(random(B, T, 1), random(1, H, K))
        )
    x = random(1, 1, C).requires_grad_()
    with pytest.raises(RuntimeError, match=r"without grad mode \(torch.no_grad\(\)\)"):
        ops.short_conv_step(x, state, random(C, K))


forms = pytest.mark.parametrize(
    "options",
    [{}, {"bias": True, "activation": "silu"}, {"groups": 0, "heads": H}, {"heads": H, "rank": 2},
     {"groups": 1, "heads": C, "residual": True, "dilation": 2}],
)  # fmt: skip


@forms
def test_the_module_trains_and_steps(options):
    module = seqconv_torch.ShortConv(C, K, **options)
    x, lengths = torch.randn(B, T, C), torch.tensor([T, 4])
    y = module(x, lengths)
    mask = torch.arange(T) >= lengths[:, None]
    assert torch.equal(module(x, key_padding_mask=mask), y)
    y.square().sum().backward()
    for parameter in module.parameters():
        assert parameter.grad is not None and parameter.grad.ne(0).any()
    y = module(x)
    # Linear maps of fewer rows are rounded otherwise.
    check = assert_equal if module.predict is None else assert_close
    state = module.initial_state(B, rollback=3)
    with torch.no_grad():
        module.step(x[:, :3], state)
        module.step(torch.randn(B, 3, C), state)
        state.rollback(3)
        check(module.step(x[:, 3:], state), y[:, 3:])
    half = module(x[:, 5:], initial_state=module.final_state(x[:, :5]))
    check(half, y[:, 5:])


def test_a_query_predicts_the_kernels_instead_of_x():
    Q = 5
    module = seqconv_torch.ShortConv(C, K, heads=H, residual=True, query_channels=Q).double()
    assert module.predict.weight.shape == (H * K, Q)
    x, query = random(B, T, C), random(B, T, Q)
    dynamic = (query @ module.predict.weight.t()).view(B, T, H, K)
    y = module(x, query=query)
    assert_close(y, definition(x, module.weight, dynamic, residual=True))
    with torch.no_grad():
        state = module.initial_state(B)
        parts = zip(x.split(4, 1), query.split(4, 1))
        assert_close(torch.cat([module.step(p, state, query=q) for p, q in parts], 1), y)
        state = seqconv_torch.ModuleState(module, B)
        parts = zip(x.split(4, 1), query.split(4, 1))
        assert_close(torch.cat([state(p, query=q) for p, q in parts], 1), y)
    assert "query_channels=5" in module.extra_repr()
    for wrong in (None, random(B, T, Q + 1), random(B, 1, Q)):
        with pytest.raises(ValueError, match=r"query, or x without one, must be \[B, T, Q\] with"):
            module(x, query=wrong)
    with pytest.raises(ValueError, match="query needs heads above 0, but got one without"):
        seqconv_torch.ShortConv(C, K)(x.float(), query=query)


@forms
def test_the_module_is_saved_and_copied(options):
    module = seqconv_torch.ShortConv(C, K, **options)
    x = torch.randn(B, T, C)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(other(x), module(x))
    other = seqconv_torch.ShortConv(C, K, **options)
    other.load_state_dict(module.state_dict())
    assert torch.equal(other(x), module(x))


def test_the_module_says_what_it_is():
    module = seqconv_torch.ShortConv(C, K, heads=H, rank=2, activation="silu", dilation=3)
    assert module.extra_repr() == (
        "12, kernel_size=4, groups=12, heads=3, rank=2, activation='silu', dilation=3"
    )
    assert [name for name, _ in module.named_parameters()] == [
        "weight", "predict.0.weight", "predict.1.weight"]  # fmt: skip


@pytest.mark.parametrize(
    "options, text",
    [({"kernel_size": 0}, "kernel_size must be at least 1, but got 0"),
     ({"groups": 5}, "groups must divide channels = 12, or be 0, but got 5"),
     ({"heads": 7}, "heads must divide channels = 12, or be 0, but got 7"),
     ({"groups": 0}, "groups or heads must be above 0, but got neither"),
     ({"rank": 2}, "rank must be 0, or above it beside heads, but got 2"),
     ({"query_channels": 5}, "query_channels must be 0, or above it beside heads, but got 5"),
     ({"dilation": 0}, "dilation must be at least 1, but got 0"),
     ({"activation": "relu"}, "activation must be None, 'silu' or 'swish', but got 'relu'")],
)  # fmt: skip
def test_wrong_options_are_refused(options, text):
    with pytest.raises(ValueError, match=r"\[ShortConv\] ") as error:
        seqconv_torch.ShortConv(C, **options)
    assert text in str(error.value)


@forms
def test_it_compiles_without_a_break(options):
    torch._dynamo.reset()
    module = seqconv_torch.ShortConv(C, K, **options)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager", dynamic=True)
    for steps in (T, 5):
        x = torch.randn(B, steps, C)
        assert_close(compiled(x), module(x))


def test_its_operators_are_citizens_of_the_dispatcher():
    check = torch.library.opcheck
    x, weight, dynamic = random(B, T, C), random(G, K), random(B, T, H, K)
    for tensor in (x, weight, dynamic):
        tensor.requires_grad_()
    state = random(B, K - 1, C).requires_grad_()
    check(torch.ops.seqconv.short_conv, (x, weight, dynamic, random(C), state),
          {"activation": "silu", "residual": True})  # fmt: skip
    check(torch.ops.seqconv.short_conv_final_state, (x, K), {"initial_state": state})
    ring, positions = random(B, K, C), torch.zeros(B, 2, dtype=torch.int64)
    check(torch.ops.seqconv.short_conv_step,
          (x.detach(), ring, positions, weight.detach()))  # fmt: skip


def test_autocast_and_vmap():
    x, weight = torch.randn(B, T, C), torch.randn(C, K)
    with torch.autocast("cpu", torch.bfloat16):
        y = ops.short_conv(x, weight, initial_state=torch.randn(B, K - 1, C))
    assert y.dtype == torch.bfloat16
    state = ShortConvState.zeros(2 * B, K, C)
    rings, positions = state.ring.view(2, B, K - 1, C), state.positions.view(2, B, 2)
    steps = torch.vmap(
        lambda x, ring, at: torch.ops.seqconv.short_conv_step(x, ring, at, weight)
    )(x.expand(2, B, T, C), rings, positions)
    assert torch.equal(steps, ops.short_conv(x, weight).expand(2, B, T, C))
    assert positions[..., 0].eq(T).all()
