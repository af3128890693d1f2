"""CMSIS-NN, from a clone of github.com/ARM-software/CMSIS_5 at the commit that an entry names."""

from __future__ import annotations

from pathlib import Path

FOLDERS = (
    "ActivationFunctions", "BasicMathFunctions", "ConcatenationFunctions", "ConvolutionFunctions",
    "FullyConnectedFunctions", "NNSupportFunctions", "PoolingFunctions", "ReshapeFunctions",
    "SoftmaxFunctions",
)  # fmt: skip


def sources(clone: Path) -> list[Path]:
    """Of the functions that networks call."""
    return [
        path for name in FOLDERS for path in sorted((clone / "CMSIS/NN/Source" / name).glob("*.c"))
    ]


def includes(clone: Path) -> list[str]:
    return [f"-I{clone / 'CMSIS' / name}" for name in ("Core/Include", "NN/Include", "DSP/Include")]
