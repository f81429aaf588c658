"""The two processes of test_distributed.py: distributed_worker.py FOLDER.

Each trains on its half of the batch in FOLDER/case.pt, under DDP and under FSDP, and rank 0
saves gradients and parameters after a step as FOLDER/ddp.pt and FOLDER/fsdp.pt. They are
forks of one, for the imports take most of the time.
"""

import copy
import datetime
import os
import pathlib
import sys

import torch
import torch._inductor  # DDP and FSDP do
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


def full(of):
    return of.full_tensor() if hasattr(of, "full_tensor") else of


def step(model, parameters, x, target):
    """{name: (gradient, parameter after a step of SGD)}, gathered."""
    (model(x) - target).square().mean().backward()
    gradients = {name: full(of.grad).clone() for name, of in parameters.items()}
    with torch.no_grad():
        for of in parameters.values():
            of -= 0.1 * of.grad
    return {name: (gradients[name], full(of).detach()) for name, of in parameters.items()}


def work(rank, folder):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=2,
                                   timeout=datetime.timedelta(seconds=20))  # fmt: skip
    model, x, target = torch.load(folder / "case.pt", weights_only=False)
    half = slice(rank * len(x) // 2, (rank + 1) * len(x) // 2)

    replica = copy.deepcopy(model)
    parallel = DistributedDataParallel(replica)
    results = {"ddp": step(parallel, dict(replica.named_parameters()), x[half], target[half])}

    mesh = init_device_mesh("cpu", (2,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    shards = dict(model.named_parameters())
    assert all(of.to_local().numel() < of.numel() for of in shards.values())
    results["fsdp"] = step(model, shards, x[half], target[half])

    if rank == 0:
        for name, of in results.items():
            torch.save(of, folder / f"{name}.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    child = os.fork()
    work(0 if child else 1, folder)
    if child:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
