"""Weights in the order in which the kernels meet them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.codegen.cortex_m.dot import Dot
from pipeline.codegen.cortex_m.ending import End
from pipeline.codegen.int8.job import Job
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.inner import can_pack, unrolled


def order(rows: int, row: int) -> IntArray:
    """(words, 4): which of ``rows * row`` elements each byte of a widened window is; -1: none.

    Whole words of each row come first, then what is left of all of them.
    """
    whole = row - row % 4
    numbers = np.arange(rows * row).reshape(rows, row)
    first, rest = numbers[:, :whole].reshape(-1), numbers[:, whole:].reshape(-1)
    filled = np.full(-(-len(rest) // 4) * 4, -1)
    filled[: len(rest)] = rest
    return np.concatenate([first, filled]).reshape(-1, 4)


def rests(rows: int, row: int, pixels: int) -> list[list[tuple[int, int]]]:
    """For each row where its last ``row % 4`` elements go, in halves of words from the first whole
    word of them on, and which elements of the row they are."""
    left = row % 4
    places = []
    for ky in range(rows):
        here = []
        for n in range(left):
            word, byte = divmod(ky * left + n, 4)
            half = 2 * (2 * word + byte % 2) * pixels + byte // 2
            here.append((half, row - left + n))
        places.append(here)
    return places


def pairs(count: int, step: int) -> IntArray:
    """(groups, step): channels computed together; the last group begins early enough."""
    first = np.minimum(np.arange(0, count, step), count - step)
    return first[:, None] + np.arange(step)


def passes(count: int, at_once: int, step: int) -> IntArray:
    """``pairs`` of each pass of ``at_once`` channels, the last of which may have fewer."""
    starts = range(0, count, at_once)
    return np.concatenate([n + pairs(min(at_once, count - n), step) for n in starts])


def streamed(
    job: Job, values: IntArray, places: IntArray, groups: IntArray, finish: End, most: int,
    together: object = "two",
) -> dict[str, Any]:  # fmt: skip
    """Return what templates take that multiply two channels, or ``together``, by words of a window.

    Args:
        values: (channels, elements); ``places``: see ``order``; ``groups``: see ``pairs``.
        most: words in the code of the innermost loop.
    """
    name, constants = job.op.name, job.program.constants
    packed = can_pack(values, finish.reach)
    return {
        "dot": dot(places, most, packed),
        "weights": constants.add(
            name, "weights", "int8_t", interleaved(values, places, groups, packed),
            f"{name}: {together} channels by two elements", job.in_flash(job.op.parameters[0]), 4,
        ),
        "table": constants.add(
            name, "ends", "int32_t", finish.rows(groups.reshape(-1, 2), packed),
            f"{name}: for two channels what sums begin with, and how they end",
        ),
        "end": finish,
    }  # fmt: skip


def dot(places: IntArray, most: int, packed: bool) -> Dot:
    """How windows whose elements lie as ``places`` says are multiplied, ``most`` words in a row."""
    groups = len(places)
    return Dot(groups=2 * groups, unroll=2 * unrolled(groups, most), packed=packed)


def interleaved(weights: IntArray, places: IntArray, groups: IntArray, packed: bool) -> IntArray:
    """Bytes of the stream: for each group of channels, each word of the window, its even and then
    its odd elements: see ``paired``.

    Args:
        places: see ``order``.
    """
    return paired(weights, places[:, [[0, 2], [1, 3]]].reshape(-1, 2), groups, packed)


def paired(weights: IntArray, places: IntArray, groups: IntArray, packed: bool) -> IntArray:
    """Bytes of the stream: for each group of channels, each two elements of the window: for each
    pair of channels two halves, the second channel's byte above.

    Args:
        weights: (channels, elements); groups: see ``pairs``.
        places: (words, 2), which elements of a window; -1: none.
        packed: halves are 256 * second + first, as numbers.
    """
    padded = np.concatenate([weights, np.zeros((len(weights), 1), weights.dtype)], axis=1)
    halves = padded[groups][:, :, places].astype(np.int64)  # (groups, step, words, 2)
    first, second = halves[:, ::2], halves[:, 1::2]  # (groups, pairs, words, 2)
    value = 256 * second + (first if packed else first & 255)
    value = value.transpose(0, 2, 1, 3)
    both = np.stack([value & 255, value >> 8 & 255], axis=-1)
    return np.where(both > 127, both - 256, both).reshape(-1)
