"""Parts of a row: pixels that a convolution makes together, and what it needs for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pipeline.kernels.cortex_m.by_row.layout import BLOCK, RowLayout

PAIRS = {4: 1, 3: 1, 2: 2, 1: 4}
"""Pairs of output channels, by how many pixels are made together: sums fill the registers."""

FARTHEST = 4095
"""Bytes from an address that a load reaches."""


@dataclass(frozen=True)
class Part:
    """Output pixels ``first`` to ``first + pixels``."""

    first: int
    pixels: int

    @property
    def stop(self) -> int:
        return self.first + self.pixels


@cache
def parts(target: RowLayout, source: RowLayout | None = None, stride: int = 1) -> tuple[Part, ...]:
    """Up to four pixels each, one of a channel as far from the next as the others, where they go
    and, in blocks of ``source``, where they come from."""
    found, first = list[Part](), 0
    while first < target.columns:
        alike = _alike(target, source, stride, first)
        count = 3 if alike == BLOCK + 1 else min(BLOCK, alike)  # 3 and 2 rather than 4 and 1
        found.append(Part(first, count))
        first += count
    return tuple(found)


def _alike(target: RowLayout, source: RowLayout | None, stride: int, first: int) -> int:
    """Count the pixels from ``first`` on that are like it."""

    def of(column: int) -> Iterator[int]:
        yield target.apart(column)
        if source is not None:
            yield source.apart(column * stride)
            if not source.plane and stride == 1:
                yield column // BLOCK

    like = tuple(of(first))
    stop = next((c for c in range(first, target.columns) if tuple(of(c)) != like), target.columns)
    return stop - first


def pairs_at_once(pixels: int, channels: int, pair_bytes: int) -> int:
    """Pairs of ``channels`` that are made together; ``pair_bytes``: of the weights of one."""
    found = PAIRS[pixels]
    while found > 1 and (channels % (2 * found) or (found - 1) * pair_bytes > FARTHEST):
        found //= 2
    return found
