#!/usr/bin/env python3
"""short_conv beside its rivals, call against call, in turns.

    pip install ./python/torch onnxruntime onnx
    short_conv_bench.py [--threads 1] [--rounds 9] [--cases NAME ...] [--json FILE]

Rivals: onnxruntime's CausalConvWithState and VarlenCausalConvWithState, each in its own
layout and with bound memory (left out without onnxruntime); torch.nn.functional.conv1d, depthwise, in its own layout;
the formula in plain tensor algebra, eager and compiled by torch.compile. Every result is
compared with the formula in float64 before it is timed. A round times all of a case once;
printed are the medians, and how many times as long as ours each rival takes.
"""
import argparse
import json
import statistics
import time

import torch

import seqconv_torch  # noqa: F401: registers the operators

try:
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError:
    onnxruntime = None

OPS = torch.ops.seqconv
ROWS, CHANNELS = 4096, 512


def reference(x, weight=None, dynamic=None, silu=False):
    """The formula for x [B, T, C], weight [C, K], dynamic [B, T, H, K]."""
    taps = (weight if dynamic is None else dynamic).shape[-1]
    padded = torch.nn.functional.pad(x, (0, 0, taps - 1, 0))
    z = 0
    for j in range(taps):
        if dynamic is None:
            tap = weight[:, j]
        else:
            tap = dynamic[..., j].repeat_interleave(x.shape[2] // dynamic.shape[2], 2)
            tap = tap if weight is None else tap + weight[:, j]
        z = z + tap * padded[:, j : j + x.shape[1]]
    return z * torch.sigmoid(z) if silu else z


def session(operator, names, attributes, integers=()):
    node = helper.make_node(operator, names, ["y", "q"], domain="com.microsoft", **attributes)
    kinds = {name: TensorProto.INT32 if name in integers else TensorProto.FLOAT for name in names}
    values = [helper.make_tensor_value_info(n, kinds[n], None) for n in names if n]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "q")]
    model = helper.make_model(
        helper.make_graph([node], "g", values, results),
        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def bound(operator, inputs, attributes, shapes, integers=()):
    """A call of an operator with its memory bound, and its y; "" among inputs: none."""
    run = session(operator, list(inputs), attributes, integers)
    binding = run.io_binding()
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(array)
        for name, array in inputs.items() if name}
    results = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for name, array in results.items():
        binding.bind_output(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    kept = (inputs, values, results)  # the binding holds addresses alone

    def call(kept=kept):
        run.run_with_iobinding(binding)

    return call, results["y"]


def onnx_dense(x, weight, silu):
    B, T, C = x.shape
    call, y = bound(
        "CausalConvWithState",
        {"x": x.transpose(1, 2).contiguous().numpy(), "w": weight[:, None].contiguous().numpy()},
        {"activation": "silu" if silu else "none"},
        {"y": (B, C, T), "q": (B, C, weight.shape[1] - 1)})
    return call, lambda: torch.from_numpy(y).transpose(1, 2)


def onnx_packed(x, weight, offsets, silu):
    past = (offsets.numel() - 1, x.shape[1], weight.shape[1] - 1)
    call, y = bound(
        "VarlenCausalConvWithState",
        {"x": x.numpy(), "w": weight[:, None].contiguous().numpy(), "cu": offsets.numpy(),
         "": None, "p": np.zeros(past, np.float32)},
        {"activation": "silu" if silu else "none"}, {"y": x.shape, "q": past}, ("cu",))
    return call, lambda: torch.from_numpy(y)


def depthwise(x, weight, backward):
    """conv1d in its own layout."""
    C, K = weight.shape
    inputs = x.transpose(1, 2).contiguous().requires_grad_(backward)
    kernel = weight[:, None].clone().requires_grad_(backward)
    grad = torch.randn(x.shape[0], C, x.shape[1])

    def call():
        y = torch.nn.functional.conv1d(inputs, kernel, padding=K - 1, groups=C)[..., : x.shape[1]]
        if backward:
            torch.autograd.grad(y, (inputs, kernel), grad)
        return y

    return call, lambda: call().detach().transpose(1, 2)


def tensors(function, inputs, backward):
    """A function of tensors as a call, with gradients of all inputs."""
    inputs = [t.clone().requires_grad_(backward) for t in inputs]
    grad = torch.randn_like(inputs[0])

    def call():
        y = function(*inputs)
        if backward:
            torch.autograd.grad(y, inputs, grad)
        return y

    return call, lambda: call().detach()


def static_case(K, silu=False, backward=False):
    x, weight = torch.randn(1, ROWS, CHANNELS), torch.randn(CHANNELS, K)
    activation = "silu" if silu else "none"
    formula = lambda x, w: reference(x, w, silu=silu)  # noqa: E731
    calls = {"seqconv": tensors(
        lambda x, w: OPS.short_conv(x, w, activation=activation), (x, weight), backward)}
    if not silu:
        calls["conv1d"] = depthwise(x, weight, backward)
    if onnxruntime and not backward:
        calls["onnxruntime"] = onnx_dense(x, weight, silu)
    if silu and not backward:
        calls["formula"] = tensors(formula, (x, weight), backward)
    return formula(x.double(), weight.double()), calls


def dynamic_case(C, T, H, K, backward=False):
    x, dynamic = torch.randn(1, T, C), torch.randn(1, T, H, K)
    formula = lambda x, d: reference(x, dynamic=d)  # noqa: E731
    calls = {
        "seqconv": tensors(
            lambda x, d: OPS.short_conv(x, None, d), (x, dynamic), backward),
        "formula": tensors(formula, (x, dynamic), backward),
        "compiled": tensors(torch.compile(formula), (x, dynamic), backward)}
    return formula(x.double(), dynamic.double()), calls


def packed_case(filled):
    """8 sequences of 512 rows, of which a share is real, packed and padded."""
    lengths = torch.full((8,), int(512 * filled))
    x, weight = torch.randn(8, 512, CHANNELS), torch.randn(CHANNELS, 4)
    offsets = torch.cat([torch.zeros(1), lengths.cumsum(0)]).to(torch.int32)
    packed = torch.cat([row[:n] for row, n in zip(x, lengths)])
    wanted = reference(x.double(), weight.double(), silu=True)
    wanted = torch.cat([row[:n] for row, n in zip(wanted, lengths)])
    calls = {
        "seqconv": tensors(
            lambda x, w: OPS.short_conv(x, w, activation="silu", cu_seqlens=offsets),
            (packed, weight), False),
        "padded": (
            (padded := tensors(
                lambda x, w: OPS.short_conv(x, w, activation="silu", lengths=lengths),
                (x, weight), False))[0],
            lambda: torch.cat([row[:n] for row, n in zip(padded[1](), lengths)]))}
    if onnxruntime:
        calls["onnxruntime"] = onnx_packed(packed, weight, offsets, True)
    return wanted, calls


def step_case(rows):
    x, weight = torch.randn(rows, 1, CHANNELS), torch.randn(CHANNELS, 4)
    ring, positions = torch.zeros(rows, 3, CHANNELS), torch.zeros(rows, 2, dtype=torch.int64)
    state = torch.zeros(rows, 4, CHANNELS)

    def ours():
        return OPS.short_conv_step(x, ring, positions, weight)

    def plain():
        state.copy_(torch.cat([state[:, 1:], x], 1))
        return (state * weight.t()).sum(1, keepdim=True)

    def first(call):
        """The result of a first call, which sees nothing before it."""
        for tensor in (ring, positions, state):
            tensor.zero_()
        return call()

    wanted = x.double() * weight[:, -1].double()
    calls = {name: (call, lambda call=call: first(call))
             for name, call in (("seqconv", ours), ("formula", plain))}
    if onnxruntime:
        call, y = bound(
            "CausalConvWithState",
            {"x": x.transpose(1, 2).contiguous().numpy(), "w": weight[:, None].contiguous().numpy()},
            {}, {"y": (rows, CHANNELS, 1), "q": (rows, CHANNELS, 3)})
        calls["onnxruntime"] = (call, lambda: torch.from_numpy(y).transpose(1, 2))
    return wanted, calls


CASES = {
    "channel K 4 forward": lambda: static_case(4),
    "channel K 4 both": lambda: static_case(4, backward=True),
    "channel K 7 forward": lambda: static_case(7),
    "channel K 7 both": lambda: static_case(7, backward=True),
    "channel K 4 silu": lambda: static_case(4, silu=True),
    "channel K 31 silu": lambda: static_case(31, silu=True),
    "packed full": lambda: packed_case(1),
    "packed half": lambda: packed_case(0.5),
    "step 1": lambda: step_case(1),
    "step 32": lambda: step_case(32),
    "grouped dynamic forward": lambda: dynamic_case(CHANNELS, ROWS, CHANNELS // 64, 4),
    "grouped dynamic both": lambda: dynamic_case(CHANNELS, ROWS, CHANNELS // 64, 4, True),
    "channel dynamic forward": lambda: dynamic_case(1024, 2048, 1024, 4),
    "channel dynamic both": lambda: dynamic_case(1024, 2048, 1024, 4, True),
}


def seconds_of(call, least=0.02):
    """Seconds of a call, over as many as take a while."""
    count, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < least:
        call()
        count += 1
    return spent / count


def measure(name, rounds):
    torch.manual_seed(1)
    wanted, calls = CASES[name]()
    for rival, (call, result) in calls.items():
        call()
        off = (result().double() - wanted).abs().max().item() / wanted.abs().max().item()
        if off > 1e-5:
            raise SystemExit(f"{name}: {rival} must equal the formula, but is off by {off}")
        seconds_of(call)
    times = {rival: [] for rival in calls}
    for _ in range(rounds):
        for rival, (call, _) in calls.items():
            times[rival].append(seconds_of(call))
    medians = {rival: statistics.median(of) for rival, of in times.items()}
    ours = medians["seqconv"]
    print(f"{name:26s}" + "".join(
        f"  {rival} {of * 1e3:.3f} ms" + ("" if rival == "seqconv" else f" ({of / ours:.2f}x)")
        for rival, of in medians.items()), flush=True)
    return {"case": name, "threads": torch.get_num_threads(), **medians}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", help="write the medians, in seconds, here as well")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rows = [measure(name, given.rounds) for name in given.cases]
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
