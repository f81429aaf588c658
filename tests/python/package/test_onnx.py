"""Models exported to ONNX, in standard operators alone, run by onnxruntime."""

import onnxruntime
import pytest
import torch
from torch.testing import assert_close

import seqconv_torch

C, H = 16, 4

MODULES = {
    "silu": lambda: seqconv_torch.ShortConv(C, 4, bias=True, activation="silu"),
    "dilated": lambda: seqconv_torch.ShortConv(C, 4, heads=H, residual=True, dilation=2),
    "low_rank": lambda: seqconv_torch.ShortConv(C, 3, groups=0, heads=H, rank=2),
    "lightconv": lambda: seqconv_torch.LightConv(C, H, 5, causal=True, bias=True),
    "dynamicconv": lambda: seqconv_torch.DynamicConv(C, H, 5),
}


def session(module, opset, folder, **options):
    program = torch.onnx.export(
        module, (torch.randn(2, 9, C),), dynamo=True, opset_version=opset, verbose=False, **options
    )
    program.save(folder / "module.onnx")
    assert {node.domain for node in program.model.graph} <= {"", "pkg.onnxscript.torch_lib"}
    return onnxruntime.InferenceSession(
        folder / "module.onnx", providers=["CPUExecutionProvider"]
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, opset", [*((name, 18) for name in MODULES), ("silu", 23)])
def test_a_module_of_any_length_runs_in_onnxruntime(name, opset, tmp_path):
    module = MODULES[name]().eval()
    sizes = {0: torch.export.Dim("rows"), 1: torch.export.Dim("steps")}
    run = session(module, opset, tmp_path, dynamic_shapes=(sizes,))
    for rows, steps in ((2, 9), (1, 1), (3, 30)):
        x = torch.randn(rows, steps, C)
        (y,) = run.run(None, {run.get_inputs()[0].name: x.numpy()})
        assert_close(torch.from_numpy(y), module(x).detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_talk_runs_in_onnxruntime(tmp_path):
    module = seqconv_torch.TaLKConv(C, H, 3).eval()
    run = session(module, 18, tmp_path)
    x = torch.randn(2, 9, C)
    (y,) = run.run(None, {run.get_inputs()[0].name: x.numpy()})
    assert_close(torch.from_numpy(y), module(x).detach(), rtol=1e-5, atol=1e-5)
