#!/usr/bin/env python3
"""Times the operators on a CUDA device, beside what people use instead.

    python3 benchmarks/ops_cuda_bench.py [--json FILE] [--quick] [--parts ...]

Every kernel is checked against the CPU's in float64 before it is timed. Rates
count the bytes that a perfect kernel would move (every tensor once) and are
given as a share of the copy rate measured in the same run. "cold" goes round
buffers of more than 0.5 GB together, so that nothing is left in the cache;
"warm" repeats one call. The libraries are loaded from build/cuda/lib, or from
SEQCONV_OPS_LIBRARY and SEQCONV_OPS_CUDA_LIBRARY.

Calls are captured in a CUDA graph and the graph is timed ("timed": "graph"), so
that small sizes show the device and not Python; where they cannot be captured
they are timed as they are ("calls"). The file is rewritten after each row. A
check that fails or an exception is noted in its row ("error"); the rest is
measured all the same, and the exit code is 1.
"""

import argparse
import os
import pathlib
import sys

import torch
import torch.nn.functional as F
from cuda_timing import Clock, Results, copy_rate, noted
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


class Case:
    """An operator at one size: inputs, calls, bytes. short_conv has H kernels: static
    ones where there are as many as channels, else dynamic ones."""

    def __init__(self, seqconv, name, dtype, B, T, C, H, K):
        self.seqconv, self.name, self.dtype = seqconv, name, dtype
        self.B, self.T, self.C, self.H, self.K = B, T, C, H, K

    def inputs(self, device="cuda"):
        x = torch.randn(self.B, self.T, self.C, device=device)
        if self.name == "lightconv":
            beside = [torch.randn(self.H, self.K, device=device)]
        elif self.name == "cumulative_average":
            beside = []
        elif self.name == "short_conv" and self.H == self.C:
            beside = [torch.randn(self.H, self.K, device=device)]
        elif self.name in ("dynamicconv", "short_conv"):
            shape = (self.B, self.T, self.H, self.K)
            beside = [torch.randn(shape, device=device)]
        else:
            # All types hold these, and no window ends at a whole position,
            # where offsets have two gradients and rounding chooses.
            shape = (self.B, self.T, self.H)
            beside = [
                (torch.randint(0, 128, shape, device=device) * 2 + 1) / 256
                for _ in range(2)
            ]
        return [t.to(self.dtype) for t in (x, *beside)]

    def keywords(self):
        if self.name == "cumulative_average":
            return {}
        if self.name == "talk":
            return {"max_left": self.K // 2, "max_right": self.K // 2}
        if self.name == "short_conv":
            return {"activation": "silu"}
        return {"padding_left": self.K - 1}

    def taps(self, tensor):
        """weight and dynamic of short_conv."""
        return (tensor, None) if self.H == self.C else (None, tensor)

    def forward(self, *inputs):
        if self.name == "short_conv":
            x, taps = inputs
            return self.seqconv.short_conv(x, *self.taps(taps), **self.keywords())
        return getattr(self.seqconv, self.name)(*inputs, **self.keywords())

    def backward(self, grad, *inputs):
        op = getattr(self.seqconv, self.name + "_backward")
        if self.name == "cumulative_average":
            return (op(grad),)
        if self.name == "short_conv":
            x, taps = inputs
            taps = self.taps(taps)
            mask = [True, *(t is not None for t in taps), False, False]
            return op(grad, x, *taps, output_mask=mask, **self.keywords())
        # No bias; TaLK has two offsets.
        mask = [True, True, self.name == "talk"]
        return op(grad, *inputs, output_mask=mask, **self.keywords())

    def moved(self):
        """Bytes of a perfect forward and backward pass."""
        size = torch.empty(0, dtype=self.dtype).element_size()
        tokens = self.B * self.T
        beside = {
            "lightconv": 0,
            "dynamicconv": self.H * self.K,
            "talk": 2 * self.H,
            "cumulative_average": 0,
            "short_conv": 0 if self.H == self.C else self.H * self.K,
        }[self.name]
        reads_x = self.name != "cumulative_average"  # backward, beside grad_y
        return (
            (2 * self.C + beside) * size * tokens,
            ((2 + reads_x) * self.C + 2 * beside) * size * tokens,
        )

    def check(self, device="cuda"):
        """The operator on a part of the batch against the CPU in float64."""
        few = Case(
            self.seqconv, self.name, self.dtype, 1, min(self.T, 300),
            self.C, self.H, self.K,
        )  # fmt: skip
        inputs = few.inputs(device)
        grad = torch.randn_like(inputs[0])
        wide = [t.double().cpu() for t in inputs]
        got = [few.forward(*inputs), *few.backward(grad, *inputs)]
        want = [few.forward(*wide), *few.backward(grad.double().cpu(), *wide)]
        misses = []
        for i, (g, w) in enumerate(zip(got, want)):
            if w.numel() == 0:
                continue
            error = (g.double().cpu() - w).abs().max() / w.abs().max()
            if not error <= BOUNDS[self.dtype]:
                misses.append(
                    f"output {i} is off by {error:.2e} of its largest value"
                )
        if misses:
            raise ValueError(", ".join(misses))

    def measure(self, row, clock, rate):
        """Checks, then times forward and backward, cold and warm."""
        with noted(row, "check"):
            self.check()
        sets = max(2, -(-COLD_BYTES // self.moved()[0]))
        rounds = [self.inputs() for _ in range(sets)]
        grads = [torch.randn_like(r[0]) for r in rounds]
        forward = [lambda r=r: self.forward(*r) for r in rounds]
        backward = [
            lambda r=r, g=g: self.backward(g, *r)
            for r, g in zip(rounds, grads)
        ]
        for name, calls, moved in zip(
            ("forward", "backward"), (forward, backward), self.moved()
        ):
            with noted(row, name):
                cold = clock.seconds(calls)
                row[name + "_us"] = cold * 1e6
                row[name + "_warm_us"] = clock.seconds(calls[:1]) * 1e6
                row[name + "_percent"] = 100 * moved / cold / rate

    def against_unfold(self, row, clock):
        """How many times as long unfolding takes."""
        inputs = self.inputs()

        def plain(x, logits):
            return unfold(x, logits, self.K)

        with noted(row, "unfold forward"):
            row["unfold_forward_ratio"] = clock.seconds(
                [lambda: plain(*inputs)], repeats=3
            ) / clock.seconds([lambda: self.forward(*inputs)], repeats=3)
        with noted(row, "unfold both"):
            row["unfold_both_ratio"] = clock.seconds(
                [both(plain, inputs)], repeats=3
            ) / clock.seconds([both(self.forward, inputs)], repeats=3)


def unfold(x, logits, K):
    """DynamicConv (or LightConv) in plain torch, by windows of K."""
    B, T, C = x.shape
    H = logits.shape[-2]
    taps = logits.softmax(-1)
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


def measure_kernels(results, seqconv, rate, quick):
    """Share of the copy rate over shapes, and the ratio to unfolding."""
    shapes = [(1024, 16, 31)] if quick else [
        (1024, 16, 3), (1024, 16, 7), (1024, 16, 15), (1024, 16, 31),
        (1024, 16, 63), (1024, 16, 255), (512, 8, 31), (512, 4, 31),
    ]  # fmt: skip
    for dtype_name, dtype in DTYPES.items():
        for C, H, K in shapes:
            for T in [512] if quick else [32, 128, 512, 4096]:
                for name in ("lightconv", "dynamicconv", "talk"):
                    case = Case(seqconv, name, dtype, 32768 // T, T, C, H, K)
                    unfolds = name != "talk" and T == 512 and K <= 63

                    def fill(row):
                        case.measure(row, results.clock, rate)
                        if unfolds:
                            case.against_unfold(row, results.clock)

                    keys = {
                        "op": name, "type": dtype_name, "B": case.B, "T": T,
                        "C": C, "H": H, "K": K,
                    }  # fmt: skip
                    results.row("kernels", keys, fill)


def measure_averages(results, seqconv, rate, quick):
    """Share of the copy rate of the cumulative average over batches."""
    for dtype_name, dtype in DTYPES.items():
        for B, T in [(64, 512)] if quick else [
            (1, 512), (8, 512), (64, 512), (1, 32768), (8, 4096), (1024, 32),
        ]:  # fmt: skip
            case = Case(seqconv, "cumulative_average", dtype, B, T, 1024, 1, 1)
            keys = {
                "op": case.name, "type": dtype_name, "B": B, "T": T, "C": 1024,
            }  # fmt: skip
            results.row(
                "averages",
                keys,
                lambda row: case.measure(row, results.clock, rate),
            )


def measure_short_convs(results, seqconv, rate, quick):
    """Share of the copy rate of short convolutions with SiLU: static taps of every
    channel, and dynamic ones of heads."""
    C = 1024
    for dtype_name, dtype in DTYPES.items():
        for H, K in [(C, 4)] if quick else [(C, 3), (C, 4), (C, 31), (16, 4), (16, 31)]:
            for T in [512] if quick else [32, 512, 4096]:
                case = Case(seqconv, "short_conv", dtype, 32768 // T, T, C, H, K)
                keys = {
                    "op": case.name, "type": dtype_name, "B": case.B, "T": T, "C": C,
                    "H": H, "K": K,
                }  # fmt: skip
                results.row(
                    "short_convs",
                    keys,
                    lambda row: case.measure(row, results.clock, rate),
                )


def measure_attention(results, seqconv, rate, quick):
    """Flash attention against the operators (K 31), bfloat16."""
    C, H, K, dtype = 1024, 16, 31, torch.bfloat16
    for T in [512] if quick else [128, 512, 1024, 4096, 10000]:
        B = max(1, 32768 // T)

        def fill(row):
            for name in ("flash", "lightconv", "dynamicconv", "talk"):
                with noted(row, name):
                    if name == "flash":
                        function, inputs = flash, heads(B, T, C, H, dtype)
                    else:
                        case = Case(seqconv, name, dtype, B, T, C, H, K)
                        function, inputs = case.forward, case.inputs()
                    row[name + "_us"] = 1e6 * results.clock.seconds(
                        [lambda: function(*inputs)]
                    )
                    row[name + "_both_us"] = 1e6 * results.clock.seconds(
                        [both(function, inputs)]
                    )

        results.row("attention", {"T": T, "B": B}, fill)


def measure_table_6(results, seqconv, rate, quick):
    """Lioutas & Guo 2020, table 6: B 10, d 1024, H 16; iterations a second
    and peak memory of a forward pass, and of one with its backward pass."""
    B, C, H, dtype = 10, 1024, 16, torch.bfloat16

    def measure(row, n, name, mode):
        before = torch.cuda.memory_allocated()
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
        torch.cuda.reset_peak_memory_stats()
        call()
        peak = torch.cuda.max_memory_allocated() - before
        row[mode + "_MiB"] = peak / 2**20
        row[mode + "_per_second"] = 1 / results.clock.seconds(
            [call], repeats=3
        )

    for n in [10, 1000] if quick else [10, 100, 1000, 10000]:
        for name in ("talk", "dynamicconv", "naive", "flash"):

            def fill(row):
                for mode in ("forward", "both"):
                    with noted(row, mode):
                        torch.cuda.empty_cache()
                        try:
                            measure(row, n, name, mode)
                        except torch.cuda.OutOfMemoryError:
                            if name != "naive":
                                raise  # what it needs is no surprise there
                            row[mode + "_per_second"] = "out of memory"

            results.row("table_6", {"n": n, "operator": name}, fill)


PARTS = {
    "kernels": measure_kernels,
    "averages": measure_averages,
    "short_convs": measure_short_convs,
    "attention": measure_attention,
    "table_6": measure_table_6,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--json", type=pathlib.Path, help="write the results to this file"
    )
    parser.add_argument("--quick", action="store_true", help="a few sizes")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=list(PARTS),
        help="which tables to measure (default: all)",
    )  # fmt: skip
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("ops_cuda_bench.py: there is no CUDA device")
    torch.manual_seed(1)
    seqconv = load()
    clock = Clock()
    rate = copy_rate(clock)
    facts = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "copy_GB_per_second": rate / 1e9,
    }
    print(facts, flush=True)
    results = Results(args.json, clock, facts)
    results.write()
    for part in args.parts:
        PARTS[part](results, seqconv, rate, args.quick)
    if results.errors:
        print(f"{results.errors} rows have an error", file=sys.stderr)
    return 1 if results.errors else 0


if __name__ == "__main__":
    sys.exit(main())
