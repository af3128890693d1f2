"""Weights in the order in which the kernels meet them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.codegen.cortex_m.dot import Dot
from pipeline.codegen.cortex_m.ending import End, end
from pipeline.codegen.int8.job import Job
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.conv2d import MOST_WORDS, Rows
from pipeline.kernels.cortex_m.inner import can_pack, unrolled


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


def streamed(
    job: Job, values: IntArray, places: IntArray, groups: IntArray, finish: End, *, unroll: int,
    together: object = "two", **dot: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return what templates take that multiply two channels, or ``together``, by words of a window.

    Args:
        values: (channels, elements); ``places``, ``groups``: see ``paired``.
        unroll, dot: see ``Dot``.
    """
    op, constants, packed = job.op, job.program.constants, can_pack(values, finish.reach)
    taps: int = dot.get("taps", 1)
    return {
        "dot": Dot(groups=len(places) // taps, unroll=unroll, packed=packed, **dot),
        "weights": constants.add(
            op.name, "weights", "int8_t", paired(values, places, groups, packed),
            f"{op.name}: {together} channels by two elements", job.in_flash(op.parameters[0]), 4,
        ),
        "table": constants.add(
            op.name, "ends", "int32_t", finish.rows(groups.reshape(-1, 2), packed),
            f"{op.name}: for two channels what sums begin with, and how they end",
        ),
        "end": finish,
    }  # fmt: skip


def of_windows(job: Job, some: Rows, groups: IntArray) -> dict[str, Any]:
    """The same, of windows that are gathered from ``some`` taps; others lie outside for all pixels:
    what the zero point has with them is in what sums begin with."""
    flat, never = met(job, some)
    finish = end(job)
    finish = replace(finish, starts=finish.starts + never)
    places = order(some.number, some.elements)
    return streamed(job, flat, places, groups, finish, unroll=by_fours(len(places), MOST_WORDS))


def met(job: Job, some: Rows) -> tuple[IntArray, IntArray]:
    """(channels, elements) of the weights that are multiplied, and (channels,) what the zero point
    has with the others, which lie outside for all pixels."""
    op = job.operator(Conv2d)
    every = job.program.graph.constants[op.parameters[0]]
    rows, columns = some.rows, some.columns
    flat = every[:, rows.start : rows.stop, columns.start : columns.stop].reshape(len(every), -1)
    never = every.sum((1, 2, 3)) - flat.sum(1)
    return flat, never * job.tensor(op.inputs[0]).zero_point


def once(values: IntArray, places: IntArray, step: int, packed: bool) -> IntArray:
    """``paired``, for sums that must not be added to twice: channels that a group before has, or
    that there are none of, have weights of zeros.

    Args:
        values: (channels, elements); ``step``: channels of a group.
    """
    count = len(values)
    groups = pairs(count, step)
    again = groups < np.arange(0, count, step)[:, None]
    zeros = np.zeros_like(values[:1]).repeat(step, axis=0)
    groups = np.where(again, count, groups)
    return paired(np.concatenate([values, zeros]), places, groups, packed)


def by_fours(words: int, most: int) -> int:
    """Count the ``words`` of two elements that a round of a loop takes, at ``most`` of four."""
    return 2 * unrolled(words // 2, most)


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
