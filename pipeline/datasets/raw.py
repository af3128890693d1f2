"""The raw values 0…255 of images that a user gives as other numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.datasets.dataset import U8
from pipeline.errors import ThimbleError

BLOCK_VALUES = 1 << 22
"""Converted at a time, so that no second copy in floats is made."""


def raw(values: npt.NDArray[Any], what: str) -> U8:
    """``values`` as uint8: uint8 and other integers of 0…255 as they are, floats of 0…1 times 255,
    rounded.

    Anything else, standardised images for instance, could mean any brightness: how to convert it is
    said instead.

    Raises:
        ThimbleError: for other ranges, values that are not finite, and what is no number.
    """
    if values.dtype == np.uint8:
        return np.array(values)
    if values.dtype.kind not in "iuf":
        raise ThimbleError(f"{what} is {values.dtype}: uint8, or floats of 0…1, are needed")
    if not values.size:
        return values.astype(np.uint8)
    low, high = float(values.min()), float(values.max())
    most = 1 if values.dtype.kind == "f" else 255
    if not np.isfinite([low, high]).all():
        raise ThimbleError(f"{what} holds values that are not finite: leave these images out")
    if low < 0 or high > most:
        raise ThimbleError(
            f"{what} is {values.dtype} of {low:.5g}…{high:.5g}; uint8 of 0…255 or floats of 0…1 "
            f"are taken: {_conversion(values, low, high)}"
        )
    result = np.empty(values.shape, np.uint8)
    for source, target in _blocks(values, result):
        target[...] = np.rint(source * 255) if most == 1 else source
    return result


def integers(values: npt.NDArray[Any], what: str) -> npt.NDArray[np.int16]:
    """``values`` as int16, which they have to fit; raises ThimbleError if they don't."""
    low, high = (int(end) if values.dtype.kind in "iu" else 1 << 16 for end in
                 (values.min(initial=0), values.max(initial=0)))  # fmt: skip
    if not -(1 << 15) <= low <= high < 1 << 15:
        raise ThimbleError(f"{what} is {values.dtype}: data.stored=true wants integers of 16 bits")
    return values.astype(np.int16)


def _conversion(values: npt.NDArray[Any], low: float, high: float) -> str:
    if low >= 0 and high <= 255:
        return "save images.astype(np.uint8)"
    step = f"(images - {low:.5g}) / {high - low:.5g} * 255"
    return (
        f"save np.clip(np.rint({step}), 0, 255).astype(np.uint8), training and test images alike, "
        f"and set model.input_range=[{low:.5g},{high:.5g}] for a network that takes these values"
    )


def _blocks(source: npt.NDArray[Any], target: U8) -> Iterator[tuple[npt.NDArray[Any], U8]]:
    """Pieces of both along the first axis."""
    each = max(1, BLOCK_VALUES // max(1, source[:1].size))
    for start in range(0, len(source), each):
        yield source[start : start + each], target[start : start + each]
