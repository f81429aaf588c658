"""Loads the compiled operators, once, or says why they cannot be loaded."""

import pathlib
from collections.abc import Callable
from typing import Protocol

import torch

from seqconv_torch import _build

# Beside the other file that the build has made: an editable installation keeps
# the two apart from the sources.
_FOLDER = pathlib.Path(_build.__file__).resolve().parent / "lib"
LIBRARY = _FOLDER / "libseqconv_ops.so"
CUDA_LIBRARY = _FOLDER / "libseqconv_ops_cuda.so"


class Operators(Protocol):
    """torch.ops.seqconv: functions of tensors."""

    def __getattr__(self, name: str, /) -> Callable[..., torch.Tensor]: ...


def _series(version: str) -> str:
    """Of "2.11.0+cu130" the "2.11": what a compiled library depends on."""
    return ".".join(version.split(".")[:2])


def load() -> None:
    """Registers the operators torch.ops.seqconv.*; ImportError if it cannot."""
    if str(LIBRARY) in torch.ops.loaded_libraries:
        return
    if _series(torch.__version__) != _series(_build.TORCH_VERSION):
        raise ImportError(
            f"seqconv_torch was built against torch {_build.TORCH_VERSION}, but got "
            f"torch {torch.__version__}; build it again with this torch: "
            "pip install --force-reinstall --no-deps PATH_TO_SEQCONV"
        )
    # Registering twice would end the process.
    if hasattr(torch.ops.seqconv, "lightconv"):
        raise ImportError(
            "seqconv's operators are registered already, by another library "
            "than the package's own; load one of the two: "
            f"{sorted(torch.ops.loaded_libraries)}"
        )
    torch.ops.load_library(str(LIBRARY))  # type: ignore[no-untyped-call]
    if CUDA_LIBRARY.exists():  # built with SEQCONV_CUDA=ON
        torch.ops.load_library(str(CUDA_LIBRARY))  # type: ignore[no-untyped-call]
