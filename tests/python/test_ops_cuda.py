"""The operators on a CUDA device, as Python sees them.

The libraries are loaded from SEQCONV_OPS_LIBRARY and
SEQCONV_OPS_CUDA_LIBRARY, or from build/cuda. Skipped, with a reason, where
there is no device; an error where SEQCONV_CUDA_REQUIRED=1. Tests that capture
a CUDA graph have "in_a_graph" in their names, and tools/gpu_check.sh uses that.
"""

import os
import pathlib

import pytest

torch = pytest.importorskip("torch")

LIBRARIES = pathlib.Path(__file__).parents[2] / "build/cuda/lib"
CUDA_LIBRARY = os.environ.get("SEQCONV_OPS_CUDA_LIBRARY") or str(
    LIBRARIES / "libseqconv_ops_cuda.so"
)
MISSING = (
    "there is no CUDA device"
    if not torch.cuda.is_available()
    else f"{CUDA_LIBRARY} was not built"
    if not os.path.exists(CUDA_LIBRARY)
    else None
)
if MISSING is not None and os.environ.get("SEQCONV_CUDA_REQUIRED") == "1":
    raise RuntimeError(MISSING)
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
if MISSING is None:
    torch.ops.load_library(
        os.environ.get("SEQCONV_OPS_LIBRARY")
        or str(pathlib.Path(CUDA_LIBRARY).parent / "libseqconv_ops.so")
    )
    torch.ops.load_library(CUDA_LIBRARY)
seqconv = torch.ops.seqconv

NORMALIZATIONS = [
    "none", "softmax", "sigmoid", "tanh", "square", "abs", "l1", "l2",
    "abs_l1", "abs_l2",
]  # fmt: skip
BOUNDS = {
    torch.float32: 1e-5,
    torch.bfloat16: 4e-3,
    torch.float16: 1e-3,
}
HALVES = [torch.bfloat16, torch.float16]
OPERATORS = ["lightconv", "dynamicconv", "talk", "cumulative_average"]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def exact(*shape):
    """Numbers that all types hold exactly, in float64 on the CPU."""
    return (torch.randn(*shape) * 16).round().to(torch.float64) / 16


def on_device(inputs, dtype):
    return [
        None
        if i is None
        else i.to("cuda", dtype if i.is_floating_point() else i.dtype)
        for i in inputs
    ]


def error(got, want):
    want = want.double()
    scale = want.abs().max().clamp(min=1e-300)
    return ((got.double().cpu() - want).abs().max() / scale).item()


def differentiate(function, inputs, grad):
    leaves = [i.detach().requires_grad_() for i in inputs]
    y = function(*leaves)
    return [y.detach(), *torch.autograd.grad(y, leaves, grad)]


def expect_cpu(function_of, inputs, dtype):
    """function_of(device) on inputs of a type against the CPU in float64."""
    grad = inputs[0].flip(2)
    want = differentiate(function_of("cpu"), inputs, grad)
    got = differentiate(
        function_of("cuda"), on_device(inputs, dtype), grad.to("cuda", dtype)
    )
    for i, (g, w) in enumerate(zip(got, want)):
        assert error(g, w) <= BOUNDS[dtype], f"output {i} of y, gradients"


def conv_inputs(name, B, T, H, R, K):
    size = (H, K) if name == "lightconv" else (B, T, H, K)
    return [exact(B, T, H * R), exact(*size), exact(H * R)]


def conv_function(name, device, lengths=None, **extra):
    moved = None if lengths is None else torch.tensor(lengths, device=device)
    if "drop_seed" in extra:
        extra["drop_seed"] = torch.tensor([extra["drop_seed"]], device=device)
    return lambda x, logits, bias: getattr(seqconv, name)(
        x, logits, bias, lengths=moved, **extra
    )


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("K", [1, 2, 3, 7, 15, 31, 63, 127, 255])
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_conv_equals_the_cpu(name, K, dtype):
    for (H, R), T in zip(
        [(5, 1), (2, 3), (3, 4), (2, 8), (1, 60), (2, 64), (2, 128), (1, 72)],
        [1, 31, 64, 65, 129, 151, 300, 2],
    ):
        inputs = conv_inputs(name, 2, T, H, R, K)
        expect_cpu(
            lambda device: conv_function(
                name,
                device,
                lengths=[T, (T + 1) // 2],
                padding_left=K // 2 if R % 2 else K - 1,
            ),
            inputs,
            dtype,
        )


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_normalisations_and_drop_connect(name, normalization, dtype):
    for K in (3, 17):
        inputs = conv_inputs(name, 2, 70, 2, 16, K)
        expect_cpu(
            lambda device: conv_function(
                name,
                device,
                padding_left=K - 1,
                normalization=normalization,
                drop_p=0.3,
                drop_seed=-7,
            ),
            inputs,
            dtype,
        )


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_renormalized_edges(name, dtype):
    for K in (3, 31, 90):
        inputs = conv_inputs(name, 2, 70, 2, 16, K)
        expect_cpu(
            lambda device: conv_function(
                name,
                device,
                lengths=[70, 5],
                padding_left=K // 2,
                renormalize_edges=True,
            ),
            inputs,
            dtype,
        )


def talk_inputs(B, T, H, R, causal):
    def offsets():
        return (torch.randint(0, 128, (B, T, H)) * 2 + 1).double() / 256

    return [exact(B, T, H * R), offsets()] + ([] if causal else [offsets()])


def inputs_and_settings(name, B, T, H, R, K):
    """Of any operator: tensors to differentiate by, and its other arguments."""
    if name == "cumulative_average":
        return [exact(B, T, H * R)], {}
    if name == "talk":
        inputs = talk_inputs(B, T, H, R, causal=False)
        return inputs, {"max_left": K // 2, "max_right": K // 2}
    return conv_inputs(name, B, T, H, R, K), {"padding_left": K // 2}


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("left,right", [(0, 0), (1, 3), (31, 15), (100, 90)])
def test_talk_equals_the_cpu(left, right, causal, dtype):
    for (H, R), T in zip(
        [(5, 1), (2, 3), (2, 8), (1, 60), (2, 64), (2, 128), (70, 1)],
        [1, 31, 64, 129, 151, 300, 200],
    ):
        def function_of(device):
            lengths = torch.tensor([T, (T + 1) // 2], device=device)
            return lambda x, offset_left, offset_right=None: seqconv.talk(
                x,
                offset_left,
                offset_right,
                max_left=left,
                max_right=0 if causal else right,
                lengths=lengths,
            )

        expect_cpu(function_of, talk_inputs(2, T, H, R, causal), dtype)


@pytest.mark.parametrize("name", [*OPERATORS, "short_conv"])
def test_float64_is_refused(name):
    x = torch.zeros(2, 3, 4, dtype=torch.float64, device="cuda")
    rest, options = {
        "lightconv": ([x[0, :2, :3]], {"padding_left": 2}),
        "dynamicconv": ([x[..., None, :3]], {"padding_left": 2}),
        "talk": ([x[..., :2]], {"max_left": 1}),
        "cumulative_average": ([], {}),
        "short_conv": ([x[0, :2, :3]], {}),
    }[name]
    with pytest.raises(
        RuntimeError,
        match=rf"\[{name}\] x must be Float, BFloat16 or Half on a CUDA "
        "device, but got Double",
    ):
        getattr(seqconv, name)(x, *rest, **options)


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv"])
def test_conv_is_a_complete_operator(name, dtype):
    inputs = on_device(conv_inputs(name, 2, 7, 2, 8, 15), dtype)
    for tensor in inputs:
        tensor.requires_grad_()
    extra = {
        "padding_left": 1,
        "drop_p": 0.3,
        "drop_seed": torch.tensor([5], device="cuda"),
        "lengths": torch.tensor([7, 4], device="cuda"),
    }
    torch.library.opcheck(getattr(seqconv, name).default, inputs, extra)


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_talk_is_a_complete_operator(dtype):
    inputs = on_device(talk_inputs(2, 7, 2, 3, causal=False), dtype)
    for tensor in inputs:
        tensor.requires_grad_()
    extra = {"max_left": 3, "max_right": 3}
    torch.library.opcheck(seqconv.talk.default, inputs, extra)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["lightconv", "dynamicconv", "talk"])
def test_two_runs_give_the_same_bits(name, dtype):
    B, T, H, R, K = 16, 700, 4, 64, 31
    if name == "talk":
        inputs = talk_inputs(B, T, H, R, causal=False)
        function = lambda x, a, b: seqconv.talk(
            x, a, b, max_left=15, max_right=15
        )
    else:
        inputs = conv_inputs(name, B, T, H, R, K)
        function = conv_function(
            name, "cuda", padding_left=15, drop_p=0.1, drop_seed=3
        )
    inputs = on_device(inputs, dtype)
    first, second = (
        differentiate(function, inputs, inputs[0].flip(2)) for _ in range(2)
    )
    for a, b in zip(first, second):
        assert torch.equal(a, b)


def average_function(device, lengths=None):
    moved = None if lengths is None else torch.tensor(lengths, device=device)
    return lambda x: seqconv.cumulative_average(x, lengths=moved)


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_cumulative_average_equals_the_cpu(dtype):
    for B, T, C in (
        (2, 1, 5), (2, 31, 64), (1, 129, 132), (3, 2000, 512), (40, 300, 1024),
    ):  # fmt: skip
        lengths = [T, *[(T + 1) // 2] * (B - 1)]
        expect_cpu(
            lambda device: average_function(device, lengths),
            [exact(B, T, C)],
            dtype,
        )


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_cumulative_average_is_a_complete_operator(dtype):
    x = exact(2, 7, 8).to("cuda", dtype).requires_grad_()
    extra = {"lengths": torch.tensor([7, 4], device="cuda")}
    torch.library.opcheck(seqconv.cumulative_average.default, [x], extra)


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_cumulative_averages_are_the_same_bits_alone_and_in_a_batch(dtype):
    x = exact(80, 700, 512).to("cuda", dtype)  # whole; alone it is split
    for run in (
        seqconv.cumulative_average, seqconv.cumulative_average_backward,
    ):  # fmt: skip
        y = run(x)
        assert torch.equal(y, run(x))
        for b in (0, 79):
            assert torch.equal(run(x[b : b + 1]), y[b : b + 1])


def test_cumulative_average_of_unaligned_inputs():
    x = exact(2, 300, 64).to("cuda", torch.bfloat16)
    room = torch.zeros(x.numel() + 1, dtype=x.dtype, device="cuda")
    unaligned = room[1:].view_as(x)
    unaligned.copy_(x)
    assert torch.equal(
        seqconv.cumulative_average(unaligned), seqconv.cumulative_average(x)
    )


def test_float_logits_beside_halves():
    for dtype in HALVES:
        for K in (3, 31):
            x, logits, _ = conv_inputs("dynamicconv", 2, 70, 2, 16, K)
            got = seqconv.dynamicconv(
                x.to("cuda", dtype), logits.float().cuda(), padding_left=K - 1
            )
            want = seqconv.dynamicconv(x, logits, padding_left=K - 1)
            assert error(got, want) <= BOUNDS[dtype]


def test_strided_and_unaligned_inputs():
    x, logits, bias = on_device(
        conv_inputs("dynamicconv", 2, 70, 2, 16, 31), torch.bfloat16
    )
    want = seqconv.dynamicconv(x, logits, bias, padding_left=30)
    strided = [torch.stack([t, t], -1)[..., 1] for t in (x, logits, bias)]
    got = seqconv.dynamicconv(*strided, padding_left=30)
    assert torch.equal(got, want)
    room = torch.zeros(x.numel() + 1, dtype=x.dtype, device="cuda")
    unaligned = room[1:].view_as(x)
    unaligned.copy_(x)
    got = seqconv.dynamicconv(unaligned, logits, bias, padding_left=30)
    assert error(got, want.cpu()) <= BOUNDS[torch.bfloat16]


def test_the_current_stream_is_used():
    x, weight, _ = on_device(conv_inputs("lightconv", 8, 512, 2, 64, 7), torch.float32)
    want = seqconv.lightconv(x, weight, padding_left=3)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        doubled = x * 2
        got = seqconv.lightconv(doubled, weight, padding_left=3)
    torch.cuda.current_stream().wait_stream(stream)
    assert torch.allclose(got, 2 * want, rtol=1e-5, atol=1e-5)


def graph_of(function):
    """A graph that runs the function, and the results that it fills."""
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        function()
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = function()
    return graph, results


def steps_of(name, x, logits, state, position, y):
    """One step in place, all arguments on the device."""
    if name == "cumulative_average":
        y.copy_(seqconv.cumulative_average_step(x, state, position))
    elif name == "talk":
        y.copy_(seqconv.talk_step(x, state, position, logits, max_left=7))
    else:
        step = getattr(seqconv, name + "_step")
        y.copy_(step(x, state, position, logits))
    position.add_(1)


@pytest.mark.parametrize("graphed", [True, False], ids=["in_a_graph", "called"])
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_steps_equal_the_full_form(name, dtype, graphed):
    B, T, H, R, K = 3, 20, 2, 16, 7
    if name == "talk":
        x, logits = talk_inputs(B, T, H, R, causal=True)
        want = seqconv.talk(x, logits, max_left=7)
        slots = 7
    elif name == "cumulative_average":
        x, logits = exact(B, T, H * R), None
        want = seqconv.cumulative_average(x)
    else:
        x, logits, _ = conv_inputs(name, B, T, H, R, K)
        want = getattr(seqconv, name)(x, logits, padding_left=K - 1)
        slots = K - 1
    x, logits = on_device([x, logits], dtype)
    each = name in ("dynamicconv", "talk")  # logits or offsets
    now_x = x[:, :1].clone()
    now_logits = logits[:, :1].clone() if each else logits
    if name == "cumulative_average":
        state = torch.zeros(B, H * R, dtype=torch.float64, device="cuda")
    else:
        state = torch.zeros(B, slots, H * R, dtype=dtype, device="cuda")
    position = torch.zeros(1, dtype=torch.int64, device="cuda")
    y = torch.empty_like(now_x)

    def run():
        steps_of(name, now_x, now_logits, state, position, y)

    if graphed:
        run = graph_of(run)[0].replay
    state.zero_()
    position.zero_()
    for t in range(T):
        now_x.copy_(x[:, t : t + 1])
        if each:
            now_logits.copy_(logits[:, t : t + 1])
        run()
        assert error(y, want[:, t : t + 1]) <= 4 * BOUNDS[dtype], t


@pytest.mark.parametrize("name", OPERATORS)
def test_forward_and_backward_in_a_graph(name):
    inputs, settings = inputs_and_settings(name, 2, 70, 2, 64, 31)
    inputs = on_device(inputs, torch.bfloat16)
    lengths = torch.tensor([70, 9], device="cuda")
    seed = torch.tensor([3], device="cuda")
    if name in ("lightconv", "dynamicconv"):
        settings |= {"drop_p": 0.2, "drop_seed": seed}

    def both():
        return differentiate(
            lambda *leaves: getattr(seqconv, name)(
                *leaves, lengths=lengths, **settings
            ),
            inputs,
            inputs[0],
        )

    graph, captured = graph_of(both)
    seed.fill_(11)  # values are read when the graph runs, not when it is made
    lengths.copy_(torch.tensor([33, 70]))
    graph.replay()
    torch.cuda.synchronize()
    for got, want in zip(captured, both()):
        assert torch.equal(got, want)


def test_a_pinned_position_may_change_after_the_call():
    x = exact(2, 1, 8).to("cuda", torch.float32)
    state = torch.zeros(2, 8, dtype=torch.float64, device="cuda")
    position = torch.zeros(1, dtype=torch.int64).pin_memory()
    torch.cuda._sleep(50_000_000)  # so that a queued copy would come later
    y = seqconv.cumulative_average_step(x, state, position)
    position.fill_(9)
    assert torch.equal(y, x)


def test_lengths_out_of_range_are_clamped():
    x, weight, _ = on_device(conv_inputs("lightconv", 2, 9, 2, 4, 3), torch.float32)
    def run(lengths):
        return seqconv.lightconv(
            x, weight, padding_left=1, lengths=torch.tensor(lengths).cuda()
        )
    assert torch.equal(run([1000, -5]), run([9, 0]))


def test_a_kernel_that_cannot_fit_says_so():
    x, weight = torch.zeros(1, 8, 64).cuda(), torch.zeros(1, 100000).cuda()
    with pytest.raises(RuntimeError, match="must fit into the shared memory of a block"):
        seqconv.lightconv(x, weight, padding_left=0)


@pytest.mark.parametrize("B,T", [(0, 5), (2, 0), (0, 0)])
@pytest.mark.parametrize("name", OPERATORS)
def test_empty_batches_and_sequences(name, B, T):
    inputs, settings = inputs_and_settings(name, B, T, 2, 4, 3)
    inputs = on_device(inputs, torch.float32)
    got = differentiate(
        lambda *leaves: getattr(seqconv, name)(*leaves, **settings),
        inputs,
        inputs[0],
    )
    assert [g.shape for g in got] == [i.shape for i in [inputs[0], *inputs]]
    for gradient in got:  # of the weight and the bias: the rest is empty
        assert gradient.eq(0).all()


# Rows of short_conv: all real, with padding, packed, or with numbers.
ROWS = ["all", "lengths", "cu_seqlens", "seq_idx"]


def short_conv_inputs(B, T, C, G, H, K, dilation=1, states=None):
    """x, bias, initial state, and the taps that there are by name."""
    inputs = {"x": exact(B, T, C), "bias": exact(C)}
    inputs["initial_state"] = exact(B if states is None else states, (K - 1) * dilation, C)
    if G > 0:
        inputs["weight"] = exact(G, K)
    if H > 0:
        inputs["dynamic"] = exact(B, T, H, K)
    return inputs


def short_conv_rows(rows, B, T):
    """Arguments of B rows of T positions for `rows`; packed ones have B = 1."""
    if rows == "lengths":
        return {"lengths": torch.tensor([T, *[(T + 1) // 2] * (B - 1)])}
    if rows == "cu_seqlens":
        return {"cu_seqlens": torch.tensor([0, T // 3, T // 3, T], dtype=torch.int32)}
    if rows == "seq_idx":
        numbers = torch.arange(T).expand(B, T) // 7
        return {"seq_idx": torch.where(numbers % 3 == 1, -1, numbers).contiguous()}
    return {}


def short_conv_function(names, settings):
    def function_of(device):
        moved = {
            k: v.to(device) if isinstance(v, torch.Tensor) else v
            for k, v in settings.items()
        }
        return lambda *tensors: seqconv.short_conv(**dict(zip(names, tensors)), **moved)

    return function_of


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("K", [1, 3, 4, 31, 128])
def test_short_conv_equals_the_cpu(K, rows, dtype):
    for C, G, H in [(1, 1, 0), (6, 6, 0), (64, 1, 4), (70, 0, 70), (256, 256, 1), (96, 3, 2)]:
        for T in (5, 130):
            for dilation in (1, 3):
                B = 1 if rows == "cu_seqlens" else 2
                settings = short_conv_rows(rows, B, T) | {
                    "dilation": dilation,
                    "activation": "silu" if T == 5 else "none",
                    "residual": C > 6,
                }
                states = 3 if rows == "cu_seqlens" else B
                inputs = short_conv_inputs(B, T, C, G, H, K, dilation, states)
                if K == 1:
                    del inputs["initial_state"]
                expect_cpu(
                    short_conv_function(list(inputs), settings), list(inputs.values()), dtype
                )


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("H", [0, 4])
def test_short_conv_normalisations_and_drop_connect(H, normalization, dtype):
    inputs = short_conv_inputs(2, 70, 32, 0 if H else 32, H, 4)
    settings = {
        "normalization": normalization, "drop_p": 0.3, "drop_seed": torch.tensor([-7]),
    }  # fmt: skip
    expect_cpu(short_conv_function(list(inputs), settings), list(inputs.values()), dtype)


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("rows", ROWS)
def test_short_conv_is_a_complete_operator(rows, dtype):
    B = 1 if rows == "cu_seqlens" else 2
    inputs = short_conv_inputs(B, 9, 6, 3, 2, 4, states=3 if B == 1 else B)
    inputs = {k: v.to("cuda", dtype).requires_grad_() for k, v in inputs.items()}
    settings = {k: v.cuda() for k, v in short_conv_rows(rows, B, 9).items()}
    torch.library.opcheck(
        seqconv.short_conv.default,
        (inputs.pop("x"),),
        inputs | settings | {"activation": "silu", "residual": True},
    )


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_two_runs_of_short_conv_give_the_same_bits(dtype):
    inputs = short_conv_inputs(16, 700, 256, 256, 4, 4)
    names, tensors = list(inputs), on_device(inputs.values(), dtype)
    function = short_conv_function(names, {"activation": "silu"})("cuda")
    first, second = (differentiate(function, tensors, tensors[0].flip(2)) for _ in range(2))
    for a, b in zip(first, second):
        assert torch.equal(a, b)


def test_short_conv_under_autocast():
    inputs = short_conv_inputs(2, 40, 64, 64, 4, 4)
    names, tensors = list(inputs), on_device(inputs.values(), torch.float32)
    function = short_conv_function(names, {})("cuda")
    with torch.autocast("cuda", torch.bfloat16):
        y = function(*tensors)
    assert y.dtype == torch.bfloat16
    want = short_conv_function(names, {})("cpu")(*inputs.values())
    assert error(y, want) <= 2 * BOUNDS[torch.bfloat16]


@pytest.mark.parametrize("graphed", [True, False], ids=["in_a_graph", "called"])
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_short_conv_steps_equal_the_full_form(dtype, graphed):
    """Streams of other rows of the state, beside one of padding."""
    N, T, C, G, H, K = 3, 20, 32, 32, 4, 4
    inputs = short_conv_inputs(N, T, C, G, H, K)
    inputs["initial_state"].zero_()
    names, tensors = list(inputs), on_device(inputs.values(), dtype)
    want = short_conv_function(names, {"activation": "silu"})("cuda")(*tensors)
    moved = dict(zip(names, tensors))
    now_x = torch.zeros(N + 1, 1, C, dtype=dtype, device="cuda")
    now_dynamic = torch.zeros(N + 1, 1, H, K, dtype=dtype, device="cuda")
    ring = torch.zeros(5, K, C, dtype=dtype, device="cuda")
    positions = torch.zeros(5, 2, dtype=torch.int64, device="cuda")
    rows = torch.tensor([4, 0, 2, -1], device="cuda")
    y = torch.empty_like(now_x)

    def run():
        y.copy_(
            seqconv.short_conv_step(
                now_x, ring, positions, moved["weight"], now_dynamic, moved["bias"],
                activation="silu", state_indices=rows,
            )  # fmt: skip
        )

    if graphed:
        run = graph_of(run)[0].replay
    ring.zero_()
    positions.zero_()
    for t in range(T):
        now_x[:N].copy_(moved["x"][:, t : t + 1])
        now_dynamic[:N].copy_(moved["dynamic"][:, t : t + 1])
        run()
        assert error(y[:N], want[:, t : t + 1].cpu()) <= BOUNDS[dtype], t
        assert y[N].eq(0).all()
    assert positions[:, 0].tolist() == [T, 0, T, 0, T]
    last = seqconv.short_conv_last_inputs(ring, positions, K - 1)[rows[:N]]
    assert torch.equal(last, seqconv.short_conv_final_state(moved["x"], K))


def test_short_conv_takes_back_as_many_inputs_as_it_can():
    positions = torch.tensor([[9, 9], [1, 1], [7, 8]], device="cuda")
    counts = torch.tensor([100, 1, 1], device="cuda")
    seqconv.short_conv_rollback(positions, counts, 2)
    assert positions[:, 0].tolist() == [7, 0, 6]


@pytest.mark.parametrize("rows", ROWS)
def test_short_conv_forward_and_backward_in_a_graph(rows):
    B, T = (1, 70) if rows == "cu_seqlens" else (2, 70)
    inputs = short_conv_inputs(B, T, 64, 64, 4, 4, states=3 if B == 1 else B)
    names, tensors = list(inputs), on_device(inputs.values(), torch.bfloat16)
    settings = {k: v.cuda() for k, v in short_conv_rows(rows, B, T).items()}
    function = short_conv_function(names, settings | {"activation": "silu"})("cuda")

    def both():
        return differentiate(function, tensors, tensors[0])

    graph, captured = graph_of(both)
    tensors[0].mul_(2)
    graph.replay()
    torch.cuda.synchronize()
    for got, want in zip(captured, both()):
        assert torch.equal(got, want)


def test_short_conv_says_what_it_does_not_have():
    x, weight = torch.zeros(1, 8, 6).cuda(), torch.zeros(6, 4).cuda()
    with pytest.raises(
        RuntimeError,
        match=r"\[short_conv\] renormalize_edges must be false on a CUDA device",
    ):
        seqconv.short_conv(x, weight, normalization="softmax", renormalize_edges=True)


@pytest.mark.parametrize("B,T", [(0, 5), (2, 0), (0, 0)])
def test_short_conv_of_empty_batches_and_sequences(B, T):
    inputs = short_conv_inputs(B, T, 8, 8, 2, 4)
    names, tensors = list(inputs), on_device(inputs.values(), torch.float32)
    function = short_conv_function(names, {"activation": "silu"})("cuda")
    got = differentiate(function, tensors, tensors[0])
    assert [g.shape for g in got] == [i.shape for i in [tensors[0], *tensors]]
    for gradient in got:
        assert gradient.eq(0).all()


def test_short_conv_of_strided_and_unaligned_inputs_with_taps_in_float32():
    for dtype in HALVES:
        inputs = short_conv_inputs(2, 70, 64, 64, 4, 4)
        names, wide = list(inputs), list(inputs.values())
        want = short_conv_function(names, {})("cpu")(*wide)
        x, bias, state, weight, dynamic = on_device(wide, dtype)
        floats = on_device([wide[1], *wide[3:]], torch.float32)
        function = short_conv_function(names, {})("cuda")
        got = function(x, floats[0], state, *floats[1:])
        assert error(got, want) <= BOUNDS[dtype]
        strided = [torch.stack([t, t], -1)[..., 1] for t in (x, bias, state, weight, dynamic)]
        assert torch.equal(function(*strided), function(x, bias, state, weight, dynamic))
        room = torch.zeros(x.numel() + 1, dtype=dtype, device="cuda")
        unaligned = room[1:].view_as(x)
        unaligned.copy_(x)
        assert torch.equal(
            function(unaligned, bias, state, weight, dynamic),
            function(x, bias, state, weight, dynamic),
        )
