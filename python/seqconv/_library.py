"""Loads the compiled operators, once, or says why they cannot be loaded."""

import pathlib

import torch

from seqconv._build import TORCH_VERSION

LIBRARY = pathlib.Path(__file__).with_name("libseqconv_ops.so")


def _series(version: str) -> str:
    """Of "2.11.0+cu130" the "2.11": what a compiled library depends on."""
    return ".".join(version.split(".")[:2])


def load() -> None:
    """Registers the operators torch.ops.seqconv.*; ImportError if it cannot."""
    if str(LIBRARY) in torch.ops.loaded_libraries:
        return
    if _series(torch.__version__) != _series(TORCH_VERSION):
        raise ImportError(
            f"seqconv was built against torch {TORCH_VERSION}, but got torch "
            f"{torch.__version__}; build it again with this torch: pip install "
            "--force-reinstall --no-deps PATH_TO_SEQCONV"
        )
    # Registering twice would end the process.
    if hasattr(torch.ops.seqconv, "lightconv"):
        raise ImportError(
            "seqconv's operators are registered already, by another library "
            "than the package's own; load one of the two: "
            f"{sorted(torch.ops.loaded_libraries)}"
        )
    torch.ops.load_library(str(LIBRARY))
