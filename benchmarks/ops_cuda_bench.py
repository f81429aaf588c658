#!/usr/bin/env python3
"""Times the operators on a CUDA device, beside what people use instead.

    python3 benchmarks/ops_cuda_bench.py [--json FILE] [--quick]

Every kernel is checked against the CPU's in float64 before it is timed. Rates
count the bytes that a perfect kernel would move (every tensor once) and are
given as a share of the copy rate measured in the same run. "cold" goes round
buffers of more than 0.5 GB together, so that nothing is left in the cache;
"warm" repeats one call. The libraries are loaded from build/cuda/lib, or from
SEQCONV_OPS_LIBRARY and SEQCONV_OPS_CUDA_LIBRARY.
"""

import argparse
import json
import os
import pathlib
import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

LIBRARIES = pathlib.Path(__file__).parents[1] / "build/cuda/lib"
COLD_BYTES = 768 << 20
BOUNDS = {torch.float32: 1e-5, torch.bfloat16: 4e-3, torch.float16: 1e-3}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def load():
    cuda = os.environ.get("SEQCONV_OPS_CUDA_LIBRARY") or str(
        LIBRARIES / "libseqconv_ops_cuda.so"
    )
    ops = os.environ.get("SEQCONV_OPS_LIBRARY") or str(
        pathlib.Path(cuda).parent / "libseqconv_ops.so"
    )
    for library in (ops, cuda):
        torch.ops.load_library(library)
    return torch.ops.seqconv


def seconds(calls, repeats=7, least=0.02):
    """Median seconds of one call, the calls taken in turn, by events."""
    for call in calls[:2]:
        call()
    torch.cuda.synchronize()
    rounds = 1
    while True:
        taken = timed(calls, rounds)
        if taken >= least or rounds > 1000:
            break
        rounds = max(rounds + 1, int(rounds * 1.3 * least / max(taken, 1e-6)))
    times = [timed(calls, rounds) for _ in range(repeats)]
    return statistics.median(times) / (rounds * len(calls))


def timed(calls, rounds):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(rounds):
        for call in calls:
            call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def copy_rate():
    """Bytes read and written each second by a copy of 1 GiB."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / seconds([lambda: target.copy_(source)])


class Case:
    """An operator at one size: inputs, calls, bytes."""

    def __init__(self, seqconv, name, dtype, B, T, C, H, K):
        self.seqconv, self.name, self.dtype = seqconv, name, dtype
        self.B, self.T, self.C, self.H, self.K = B, T, C, H, K

    def inputs(self, device="cuda"):
        x = torch.randn(self.B, self.T, self.C, device=device)
        if self.name == "lightconv":
            beside = [torch.randn(self.H, self.K, device=device)]
        elif self.name == "cumulative_average":
            beside = []
        elif self.name == "dynamicconv":
            shape = (self.B, self.T, self.H, self.K)
            beside = [torch.randn(shape, device=device)]
        else:
            shape = (self.B, self.T, self.H)
            beside = [torch.rand(shape, device=device) for _ in range(2)]
        return [t.to(self.dtype) for t in (x, *beside)]

    def keywords(self):
        if self.name == "cumulative_average":
            return {}
        if self.name == "talk":
            return {"max_left": self.K // 2, "max_right": self.K // 2}
        return {"padding_left": self.K - 1}

    def forward(self, *inputs):
        return getattr(self.seqconv, self.name)(*inputs, **self.keywords())

    def backward(self, grad, *inputs):
        extra = self.keywords()
        if self.name in ("lightconv", "dynamicconv"):
            extra["has_bias"] = False
        op = getattr(self.seqconv, self.name + "_backward")
        if self.name == "cumulative_average":
            return (op(grad),)
        return op(grad, *inputs, **extra)

    def moved(self):
        """Bytes of a perfect forward and backward pass."""
        size = torch.empty(0, dtype=self.dtype).element_size()
        tokens = self.B * self.T
        beside = {
            "lightconv": 0,
            "dynamicconv": self.H * self.K,
            "talk": 2 * self.H,
            "cumulative_average": 0,
        }[self.name]
        reads_x = self.name != "cumulative_average"  # backward, beside grad_y
        return (
            (2 * self.C + beside) * size * tokens,
            ((2 + reads_x) * self.C + 2 * beside) * size * tokens,
        )

    def check(self):
        """The operator on a part of the batch against the CPU in float64."""
        few = Case(
            self.seqconv, self.name, self.dtype, 1, min(self.T, 300),
            self.C, self.H, self.K,
        )  # fmt: skip
        inputs = few.inputs()
        grad = torch.randn_like(inputs[0])
        wide = [t.double().cpu() for t in inputs]
        got = [few.forward(*inputs), *few.backward(grad, *inputs)]
        want = [few.forward(*wide), *few.backward(grad.double().cpu(), *wide)]
        for i, (g, w) in enumerate(zip(got, want)):
            if w.numel() == 0:
                continue
            error = (g.double().cpu() - w).abs().max() / w.abs().max()
            if not error <= BOUNDS[self.dtype]:
                raise SystemExit(
                    f"{self.name} {self.dtype} K {self.K} T {self.T}: output "
                    f"{i} is off by {error:.2e} of its largest value"
                )

    def times(self):
        """Seconds: forward cold and warm, backward cold and warm."""
        sets = max(2, -(-COLD_BYTES // self.moved()[0]))
        rounds = [self.inputs() for _ in range(sets)]
        grads = [torch.randn_like(r[0]) for r in rounds]
        forward = [lambda r=r: self.forward(*r) for r in rounds]
        backward = [
            lambda r=r, g=g: self.backward(g, *r)
            for r, g in zip(rounds, grads)
        ]
        return (
            seconds(forward),
            seconds(forward[:1]),
            seconds(backward),
            seconds(backward[:1]),
        )


def unfold(x, kernels, K):
    """DynamicConv (or LightConv) in plain torch, by windows of K."""
    B, T, C = x.shape
    H = kernels.shape[-2]
    taps = kernels.softmax(-1)
    if taps.dim() == 2:
        taps = taps.expand(B, T, H, K)
    windows = F.pad(x, (0, 0, K - 1, 0)).unfold(1, K, 1)  # [B, T, C, K]
    windows = windows.reshape(B * T * H, C // H, K)
    return (windows @ taps.reshape(B * T * H, K, 1)).view(B, T, C)


def both(function, inputs):
    """A call of forward and backward through autograd."""
    leaves = [i.detach().requires_grad_() for i in inputs]
    grad = torch.randn_like(function(*leaves).detach())

    def run():
        torch.autograd.grad(function(*leaves), leaves, grad)

    return run


def flash(q, k, v):
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v)


def naive(q, k, v):
    return torch.softmax(q @ k.transpose(2, 3) / q.shape[3] ** 0.5, -1) @ v


def heads(B, T, C, H, dtype, count=3):
    return [
        torch.randn(B, H, T, C // H, device="cuda", dtype=dtype)
        for _ in range(count)
    ]


def report(rows, row):
    rows.append(row)
    print(
        "  ".join(
            f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
            for k, v in row.items()
        ),
        flush=True,
    )


def measure_kernels(seqconv, rate, quick):
    """Share of the copy rate over shapes, and the ratio to unfolding."""
    rows = []
    shapes = [(1024, 16, 31)] if quick else [
        (1024, 16, 3), (1024, 16, 7), (1024, 16, 15), (1024, 16, 31),
        (1024, 16, 63), (1024, 16, 255), (512, 8, 31), (512, 4, 31),
    ]  # fmt: skip
    for dtype_name, dtype in DTYPES.items():
        for C, H, K in shapes:
            for T in [512] if quick else [32, 128, 512, 4096]:
                for name in ("lightconv", "dynamicconv", "talk"):
                    case = Case(seqconv, name, dtype, 32768 // T, T, C, H, K)
                    case.check()
                    fc, fw, bc, bw = case.times()
                    down, up = case.moved()
                    row = {
                        "op": name, "type": dtype_name, "B": case.B, "T": T,
                        "C": C, "H": H, "K": K,
                        "forward_us": fc * 1e6, "forward_warm_us": fw * 1e6,
                        "forward_percent": 100 * down / fc / rate,
                        "backward_us": bc * 1e6, "backward_warm_us": bw * 1e6,
                        "backward_percent": 100 * up / bc / rate,
                    }  # fmt: skip
                    if name != "talk" and T == 512 and K <= 63:
                        inputs = case.inputs()
                        row["unfold_forward_ratio"] = seconds(
                            [lambda: unfold(*inputs, K)], repeats=3
                        ) / fw
                        plain = both(lambda x, k: unfold(x, k, K), inputs)
                        ours = both(case.forward, inputs)
                        row["unfold_both_ratio"] = seconds(
                            [plain], repeats=3
                        ) / seconds([ours], repeats=3)
                    report(rows, row)
    return rows


def measure_averages(seqconv, rate, quick):
    """Share of the copy rate of the cumulative average over batches."""
    rows = []
    for dtype_name, dtype in DTYPES.items():
        for B, T in [(64, 512)] if quick else [
            (1, 512), (8, 512), (64, 512), (1, 32768), (8, 4096), (1024, 32),
        ]:  # fmt: skip
            case = Case(seqconv, "cumulative_average", dtype, B, T, 1024, 1, 1)
            case.check()
            fc, fw, bc, bw = case.times()
            down, up = case.moved()
            report(rows, {
                "op": case.name, "type": dtype_name, "B": B, "T": T, "C": 1024,
                "forward_us": fc * 1e6, "forward_warm_us": fw * 1e6,
                "forward_percent": 100 * down / fc / rate,
                "backward_us": bc * 1e6, "backward_warm_us": bw * 1e6,
                "backward_percent": 100 * up / bc / rate,
            })  # fmt: skip
    return rows


def measure_attention(seqconv, quick):
    """Flash attention against dynamicconv (K 31) and talk, bfloat16."""
    rows = []
    C, H, K, dtype = 1024, 16, 31, torch.bfloat16
    for T in [512] if quick else [128, 512, 1024, 4096, 10000]:
        B = max(1, 32768 // T)
        row = {"T": T, "B": B}
        qkv = heads(B, T, C, H, dtype)
        calls = {"flash": (flash, qkv)}
        for name in ("lightconv", "dynamicconv", "talk"):
            case = Case(seqconv, name, dtype, B, T, C, H, K)
            calls[name] = (case.forward, case.inputs())
        for name, (function, inputs) in calls.items():
            row[name + "_us"] = 1e6 * seconds([lambda: function(*inputs)])
            row[name + "_both_us"] = 1e6 * seconds([both(function, inputs)])
        report(rows, row)
    return rows


def measure_table_6(seqconv, quick):
    """Lioutas & Guo 2020, table 6: B 10, d 1024, H 16; iterations a second
    and peak memory of a forward pass, and of one with its backward pass."""
    rows = []
    B, C, H, dtype = 10, 1024, 16, torch.bfloat16
    for n in [10, 1000] if quick else [10, 100, 1000, 10000]:
        for name in ("talk", "dynamicconv", "naive", "flash"):
            row = {"n": n, "operator": name}
            for mode in ("forward", "both"):
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                try:
                    if name in ("naive", "flash"):
                        inputs = heads(B, n, C, H, dtype)
                        function = naive if name == "naive" else flash
                    else:
                        case = Case(seqconv, name, dtype, B, n, C, H, 31)
                        inputs, function = case.inputs(), case.forward
                    call = (
                        both(function, inputs)
                        if mode == "both"
                        else lambda: function(*inputs)
                    )
                    row[mode + "_per_second"] = 1 / seconds([call], repeats=3)
                    row[mode + "_MiB"] = (
                        torch.cuda.max_memory_allocated() / 2**20
                    )
                except torch.cuda.OutOfMemoryError:
                    row[mode + "_per_second"] = "out of memory"
                inputs = call = None
            report(rows, row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write all results to this file")
    parser.add_argument("--quick", action="store_true", help="a few sizes")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("ops_cuda_bench.py: there is no CUDA device")
    torch.manual_seed(1)
    seqconv = load()
    rate = copy_rate()
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "copy_GB_per_second": rate / 1e9,
    }
    print(result, flush=True)
    result["kernels"] = measure_kernels(seqconv, rate, args.quick)
    result["averages"] = measure_averages(seqconv, rate, args.quick)
    result["attention"] = measure_attention(seqconv, args.quick)
    result["table_6"] = measure_table_6(seqconv, args.quick)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
