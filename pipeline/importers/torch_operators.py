"""All ATen operators that can be imported, and their names for people."""

from __future__ import annotations

from typing import Any

import torch

from pipeline.importers import (
    torch_arithmetic,
    torch_functions,
    torch_norms,
    torch_pooling,
    torch_quantized,
    torch_recurrent,
    torch_shapes,
    torch_weighted,
)
from pipeline.importers.torch_call import Table

OPERATORS: Table = {
    **torch_weighted.OPERATORS,
    **torch_pooling.OPERATORS,
    **torch_arithmetic.OPERATORS,
    **torch_shapes.OPERATORS,
    **torch_functions.OPERATORS,
    **torch_norms.OPERATORS,
    **torch_quantized.OPERATORS,
    **torch_recurrent.OPERATORS,
}


def _overload(name: str) -> Any:
    _, operator, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, operator), overload)


KEPT = [_overload(name) for name in OPERATORS if name.startswith("aten.")]
"""Operators that ``run_decompositions`` leaves whole."""


def supported() -> list[str]:
    """Names of the operators, as users know them."""
    names = {name.split(".")[1] for name in OPERATORS if name.startswith("aten.")}
    return sorted(name for name in names if not name.startswith("_"))
