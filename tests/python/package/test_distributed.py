"""Two processes, DDP and FSDP over gloo: the gradients of one with the whole batch."""

import pathlib
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import seqconv_torch

C, WORKER = 12, pathlib.Path(__file__).with_name("distributed_worker.py")


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Whole-batch results, and the folder with those of the processes."""
    folder = tmp_path_factory.mktemp("distributed")
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(C, C), seqconv_torch.ShortConv(C, 4, heads=3, bias=True, activation="silu"),
        nn.Linear(C, C), seqconv_torch.DynamicConv(C, 3, 5, causal=True, bias=True),
    ).double()  # fmt: skip
    x, target = torch.randn(2, 4, 9, C, dtype=torch.float64)
    torch.save((model, x, target), folder / "case.pt")
    done = subprocess.run([sys.executable, WORKER, folder], capture_output=True, text=True,
                          check=False, timeout=60)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (model(x) - target).square().mean().backward()
    wanted = {name: (of.grad, (of - 0.1 * of.grad).detach())
              for name, of in model.named_parameters()}  # fmt: skip
    return wanted, folder


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_processes_make_the_step_of_one(case, kind):
    wanted, folder = case
    found = torch.load(folder / f"{kind}.pt")
    assert found.keys() == wanted.keys()
    for name, pair in wanted.items():
        assert pair[0].ne(0).any()
        for ours, theirs in zip(found[name], pair):
            assert_close(ours, theirs, rtol=1e-12, atol=1e-14, msg=name)
