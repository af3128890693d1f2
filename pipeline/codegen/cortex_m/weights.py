"""Weights in the order in which the kernels meet them."""

from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.codegen.cortex_m.dot import Dot
from pipeline.codegen.cortex_m.ending import End, end
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.windows import met
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m import WEAVES
from pipeline.kernels.cortex_m.conv2d import MOST_WORDS
from pipeline.kernels.fast import unrolled
from pipeline.kernels.quick import channel_sums
from pipeline.kernels.taps import Rows

PACKED_REACH = 1 << 23
"""A sum that is had as the upper 24 bits of another must be smaller, whichever channels share a
half of a word."""


def order(rows: int, row: int) -> IntArray:
    """(words, 2): which of ``rows * row`` elements are side by side in a widened window; -1: none.

    Whole words of each row come first, then what is left of all of them; of each four elements the
    even ones, then the odd ones.
    """
    whole = row - row % 4
    numbers = np.arange(rows * row).reshape(rows, row)
    first, rest = numbers[:, :whole].reshape(-1), numbers[:, whole:].reshape(-1)
    filled = np.full(-(-len(rest) // 4) * 4, -1)
    filled[: len(rest)] = rest
    fours = np.concatenate([first, filled]).reshape(-1, 4)
    return fours[:, [[0, 2], [1, 3]]].reshape(-1, 2)


def pairs(count: int, step: int) -> IntArray:
    """(groups, step): channels computed together; the last group begins early enough."""
    first = np.minimum(np.arange(0, count, step), max(0, count - step))
    return first[:, None] + np.arange(step)


def passes(count: int, at_once: int, step: int) -> IntArray:
    """``pairs`` of each pass of ``at_once`` channels, the last of which may have fewer."""
    starts = range(0, count, at_once)
    return np.concatenate([n + pairs(min(at_once, count - n), step) for n in starts])


def once(count: int, step: int, parts: int) -> IntArray:
    """``pairs`` of each of ``parts`` times ``count`` channels, for sums that must not be added to
    twice: -1 for a channel that a group before has, or that there is none of."""
    each = pairs(count, step)
    again = (each < np.arange(0, count, step)[:, None]) | (each >= count)
    return np.concatenate([np.where(again, -1, n * count + each) for n in range(parts)])


def streamed(
    job: Job, values: IntArray, places: IntArray, groups: IntArray, finish: End | IntArray, *,
    unroll: int, name: str = "weights", **dot: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return what templates take that multiply groups of channels by words of a window. Rounds of
    the loop begin where reads of flash do: a cache of few lines has lost what two of them share.

    Args:
        values: (channels, elements); ``places``, ``groups``: see ``paired``.
        finish: or (channels, 2), how far sums reach that are added to others.
        unroll, dot: see ``Dot``; ``name``: of the table.
    """
    taps, last = int(dot.get("taps", 1)), finish if isinstance(finish, End) else None
    reach = finish.reach if isinstance(finish, End) else finish
    packed = bool(values.min(initial=0) > -128 and np.abs(reach).max() < PACKED_REACH)
    return {
        "dot": Dot(groups=len(places) // taps, unroll=unroll, packed=packed,
                   woven=job.program.hardware.cpu in WEAVES, **dot),
        "weights": job.table(
            name, "int8_t", paired(values, places, groups, packed),
            f"{groups.shape[1]} channels by two elements", weights=True,
            align=max(4, job.program.hardware.flash_timing.read_bytes),
        ),
        "table": last and job.table(
            "ends", "int32_t", last.rows(groups.reshape(-1, 2), packed),
            "for two channels what sums begin with, and how they end",
        ),
        "end": last,
    }  # fmt: skip


def of_windows(job: Job, some: Rows, at_once: int) -> dict[str, Any]:
    """Return the same, of windows that are gathered from ``some`` taps, ``at_once`` output channels
    in a pass; others lie outside for all pixels: what the zero point has with them is in what sums
    begin with. Of sums, passes are over as many input channels as ``some`` has."""
    (flat, never), places, name = met(job, some), order(some.number, some.elements), "weights"
    finish: End | IntArray
    if job.partial:
        parts = flat.reshape(len(flat), some.size // some.channels, -1, some.channels)
        groups, name = once(len(flat), 2, parts.shape[2]), f"passes_{some.channels}"
        flat = parts.transpose(2, 0, 1, 3).reshape(-1, some.size)
        finish = channel_sums(job.operator(Conv2d), job.program.graph)
    else:
        groups, ends = passes(len(flat), at_once, 2), end(job)
        finish = replace(ends, starts=ends.starts + never)
    unroll = by_fours(len(places), MOST_WORDS)
    return streamed(job, flat, places, groups, finish, unroll=unroll, name=name)


def by_fours(words: int, most: int) -> int:
    """Count the ``words`` of two elements that a round of a loop takes, at ``most`` of four."""
    return 2 * unrolled(words // 2, most)


def in_words(low: IntArray, high: IntArray) -> IntArray:
    """Numbers of 16 bits as the halves of words of 32, as C has them signed."""
    return high * 65536 + (low & 0xFFFF)


def paired(weights: IntArray, places: IntArray, groups: IntArray, packed: bool) -> IntArray:
    """Bytes of the stream: for each group of channels, each two elements of the window: for each
    pair of channels two halves, the second channel's byte above.

    Args:
        weights: (channels, elements); groups: see ``pairs``; -1: none.
        places: (words, 2), which elements of a window; -1: none.
        packed: halves are 256 * second + first, as numbers.
    """
    padded = np.pad(weights.astype(np.int64), (0, 1))
    halves = padded[groups][:, :, places]  # (groups, step, words, 2)
    first, second = halves[:, ::2], halves[:, 1::2]  # (groups, pairs, words, 2)
    value = 256 * second + (first if packed else first & 255)
    value = value.transpose(0, 2, 1, 3)
    both = np.stack([value & 255, value >> 8 & 255], axis=-1)
    return np.where(both > 127, both - 256, both).reshape(-1)
