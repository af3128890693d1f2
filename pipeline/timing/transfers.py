"""Costs of a move on a card: the blocks that it touches, the commands that it takes.

A box of a row-major tensor is a few runs of adjacent bytes. Runs whose blocks are the same or
adjacent pass in one command. A block that is written in part is read first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Affine, Buffer


@dataclass(frozen=True)
class Transfers:
    """Bytes, blocks and commands of each run of a move; all (runs,).

    Attributes:
        bytes: elements moved, in bytes.
        blocks: distinct blocks touched.
        commands: groups of adjacent blocks.
        partial: blocks that are only covered in part.
    """

    bytes: IntArray
    blocks: IntArray
    commands: IntArray
    partial: IntArray


def transfers(
    buffer: Buffer, lows: IntArray, extents: IntArray, block_bytes: int, shift: IntArray
) -> Transfers:
    """Count what it takes to move boxes of ``buffer``, which lies on the card.

    Args:
        lows, extents: (runs, axes).
        shift: (runs,) nibbles by which the copy that a run takes lies further.
    """
    size = extents.prod(axis=1) * buffer.nibbles // 2
    if block_bytes == 1:
        some = (size > 0).astype(np.int64)
        return Transfers(size, size, some, np.zeros_like(size))
    keys = np.concatenate([extents, _residues(buffer, lows, shift, 2 * block_bytes)], axis=1)
    kinds, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    counted = np.array(
        [
            _count(_runs(buffer, lows[n], extents[n], int(shift[n])), 2 * block_bytes)
            if size[n]
            else (0, 0, 0)
            for n in first
        ],
        dtype=np.int64,
    ).reshape(len(kinds), 3)[which.reshape(-1)]
    return Transfers(size, *counted.T)


def ends(buffer: Buffer, lows: IntArray, extents: IntArray, shift: IntArray) -> IntArray:
    """Return the bytes of the card from the first to behind the last of boxes: (runs, 2)."""
    if not isinstance(buffer.map, Affine) or any(buffer.wrap):
        runs = [_runs(buffer, *each) for each in zip(lows, extents, shift.tolist(), strict=True)]
        spans = np.array([[run[0, 0], run[-1, 1]] for run in runs], np.int64).reshape(-1, 2)
        return np.stack([spans[:, 0] // 2, -(-spans[:, 1] // 2)], axis=1)
    strides = np.array(buffer.map.strides)
    first = buffer.map.base + lows @ strides + shift
    last = first + np.maximum(extents - 1, 0) @ strides + buffer.nibbles
    return np.stack([first // 2, -(-last // 2)], axis=1)


def _residues(buffer: Buffer, lows: IntArray, shift: IntArray, block: int) -> IntArray:
    """Return what tells boxes of one extent apart: their start in a block; (runs, 1 or axes)."""
    if not isinstance(buffer.map, Affine) or any(buffer.wrap):
        return np.concatenate([lows, shift.reshape(-1, 1)], axis=1)
    begins: IntArray = buffer.map.base + lows @ np.array(buffer.map.strides) + shift
    return np.asarray(begins % block).reshape(-1, 1)


def _runs(buffer: Buffer, low: IntArray, extent: IntArray, shift: int) -> IntArray:
    """Adjacent nibbles of one box as sorted intervals: (n, 2), ends exclusive."""
    box = tuple((int(a), int(a + n)) for a, n in zip(low, extent, strict=True))
    if isinstance(buffer.map, Affine) and not any(buffer.wrap):
        length = buffer.nibbles
        outer: list[IntArray] = []
        for axis in reversed(range(len(box))):
            count, stride = int(extent[axis]), buffer.map.strides[axis]
            if count > 1 and (stride != length or outer):
                outer.append(stride * np.arange(count))
            elif count > 1:
                length *= count
        begins = np.array([buffer.map.base + int(low @ np.array(buffer.map.strides))])
        for steps in outer:
            begins = (begins[:, None] + steps).reshape(-1)
    else:
        begins, length = buffer.addresses(box).reshape(-1), buffer.nibbles
    begins = np.sort(begins) + shift
    return np.stack([begins, begins + length], axis=1)


def _count(runs: IntArray, block: int) -> tuple[int, int, int]:
    """Blocks, commands and partly covered blocks of sorted intervals, in nibbles."""
    first, last = runs[:, 0] // block, (runs[:, 1] - 1) // block
    before = np.maximum.accumulate(last)[:-1]
    fresh = last - first + 1
    fresh[1:] = np.maximum(last[1:] - np.maximum(first[1:], before + 1) + 1, 0)
    commands = 1 + int((first[1:] > before + 1).sum())
    blocks = int(fresh.sum())
    joined = np.concatenate([[True], runs[1:, 0] > runs[:-1, 1]])
    starts = runs[joined, 0]
    stops = runs[np.concatenate([joined[1:], [True]]), 1]
    whole = int(np.maximum(stops // block - -(-starts // block), 0).sum())
    return blocks, commands, blocks - whole
