"""Functions that PyTorch transforms."""

import torch
from torch.autograd import forward_ad


def by_definition() -> bool:
    """True where operators must be tensor algebra: under torch.func and torch.vmap, with
    tangents of forward mode, and in an export to ONNX. Their kernels have one derivative, and
    the second one by the definition too."""
    if torch.compiler.is_dynamo_compiling():
        return False
    return (
        torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or (torch.compiler.is_exporting() and torch.onnx.is_in_onnx_export())
    )
