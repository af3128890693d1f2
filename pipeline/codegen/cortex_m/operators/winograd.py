"""Winograd's minimal filtering of whole tensors: what the template has no arithmetic for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.binding import form_of, kernel_of
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.ending import QuickText, wrapped
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.inner import unrolled
from pipeline.kernels.cortex_m.quick import quick_end
from pipeline.kernels.cortex_m.winograd import (
    LIFT,
    MOST_STEPS,
    Winograd,
    lifted,
    outputs_of_a_side,
    pairs_of,
)

WEIGHTS = {
    2: np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]),
    4: np.array([[3, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 3]]),
}
"""G of F(m x m, 3 x 3), times 2 and times 3, by m: (m + 2, 3)."""

ALIKE = {2: (0, 2, 0, 0), 4: (0, -6, 0, 0, 0, 0)}
"""B transposed, by m, times a column of ones: what becomes of equal inputs."""

SHIFTS = {2: (1, 1), 4: (3, 2, 1, 1)}
"""By m: outputs in one direction are 2 to this, and 3 where m is 4, times too large."""

NINTH = pow(9, -1, 1 << 32)


@dataclass(frozen=True, kw_only=True)
class Tile:
    """
    Attributes:
        outputs, side: of a tile along one axis, of the output and of the input.
        row, channels: elements of the input to the next row, and to the next pixel.
        pairs, groups, rest: of channels, of four channels, and of channels beyond whole fours.
        across: tiles in a row; ``last``: the number of the last one, ``last_y``, ``last_x``: where
            the last in each direction begin; ``count``: with those that are made twice.
        span: that are transformed at once.
        lift: what is added to inputs as they are widened, two to a word, and to the last four.
        outside: what a column outside of the image is transformed to, by the column's number.
        starts: words that a channel's sums begin with; ``shifts``: see ``SHIFTS``.
    """

    outputs: int
    side: int
    row: int
    channels: int
    pairs: int
    groups: int
    rest: int
    across: int
    last: int
    last_y: int
    last_x: int
    count: int
    span: int
    lift: tuple[int, int]
    outside: dict[int, list[int]]
    starts: int
    shifts: tuple[int, ...]


def _tile(job: Job, kernel: Winograd) -> Tile:
    op, form = job.operator(Conv2d), form_of(job)
    source = job.tensor(op.inputs[0])
    m = outputs_of_a_side(op, job.program.graph)
    rows, columns, _ = job.target.shape
    down, across = -(-rows // m), -(-columns // m)
    _, width, channels = source.shape
    above = 128 if m == 4 and source.dtype.signed else 0
    lifts = (above, above + LIFT)
    alike = np.array(ALIKE[m]) * (source.zero_point + above)
    return Tile(
        outputs=m,
        side=m + 2,
        row=width * channels,
        channels=channels,
        pairs=pairs_of(form),
        groups=-(-channels // 4),
        rest=channels % 4,
        across=across,
        last=down * across - 1,
        last_y=rows - m,
        last_x=columns - m,
        count=kernel.tiles(form),
        span=kernel.span(form),
        lift=(lifts[0] * 0x10001, lifts[1] * 0x10001),
        outside={0: _halves(alike, m), m + 1: _halves(alike + LIFT * (m == 4), m)},
        starts=5 if m == 4 else 1,
        shifts=SHIFTS[m],
    )


def _halves(values: IntArray, side: int) -> list[int]:
    """The same in both halves of a word: where m is 4 as one number, which borrows between them."""
    each = values * 0x10001 if side == 4 else (values & 0xFFFF) * 0x10001
    return [int(value) for value in each % (1 << 32)]


def compute(job: Job) -> None:
    op, program, kernel = job.operator(Conv2d), job.program, kernel_of(job)
    assert isinstance(kernel, Winograd)
    tile = _tile(job, kernel)
    source, channels = job.tensor(op.inputs[0]), job.target.shape[2]
    end = quick_end(op, program.graph)
    assert end is not None
    values, bias = (program.graph.constants[name].astype(np.int64) for name in op.parameters)
    groups = weights.pairs(channels, 2)
    arranged = _plain(values, groups) if kernel.live else _transformed(values, groups, tile.outputs)
    less = source.zero_point + (tile.lift[0] & 0xFFFF)
    starts = (bias - less * values.sum((1, 2, 3)))[:, None]
    if tile.outputs == 4:
        starts = np.concatenate([starts, starts - LIFT * lifted(values)], axis=1)
    table = np.concatenate([wrapped(2 * starts), end.constants], axis=1)[groups]
    how = "as they are" if kernel.live else "transformed"
    job.call(
        "cortex_m/winograd",
        about(job, op),
        {"in": step.source_view(job), "out": job.out(), "scratch": step.scratch(job)},
        {},
        True,
        tile=tile,
        live=kernel.live,
        pad=op.padding,
        zero=source.zero_point,
        widen="s8" if source.dtype.signed else "u8",
        unroll=unrolled(tile.pairs, MOST_STEPS),
        channels=channels,
        ninth=NINTH,
        end=QuickText.of(end, job.target),
        weights=program.constants.add(
            op.name, "weights", "int8_t", arranged, f"{op.name}: of two channels, {how}",
            job.in_flash(op.parameters[0]), 4,
        ),
        table=program.constants.add(
            op.name, "ends", "int32_t", table,
            f"{op.name}: for each channel what sums begin with, twice, and how they end",
        ),
    )  # fmt: skip


def _by_fours(values: IntArray) -> IntArray:
    """(outputs, 3, 3, depth) -> (outputs, 3, 3, groups of four channels, 2, 2): channels n and
    n + 2 of a group, and n, the second last; zeros fill the last group."""
    depth = values.shape[3]
    padded = np.pad(values, ((0, 0), (0, 0), (0, 0), (0, -depth % 4)))
    return padded.reshape(*values.shape[:3], -1, 2, 2)


def _plain(values: IntArray, groups: IntArray) -> IntArray:
    """Bytes: for each two outputs, each pair of channels, each tap: two outputs of the first
    channel, two of the second."""
    of = _by_fours(values)[groups]  # (pairs of outputs, 2, 3, 3, groups, n + 2, n)
    return of.transpose(0, 4, 6, 2, 3, 5, 1).reshape(-1)


def _transformed(values: IntArray, groups: IntArray, side: int) -> IntArray:
    """Bytes of 16 bits each: for each two outputs, each position, each pair of channels: two
    channels of the first output, two of the second."""
    g = WEIGHTS[side]
    of = np.einsum("ia,oabcde,jb->oijcde", g, _by_fours(values), g)[groups]
    of = of.transpose(0, 2, 3, 4, 6, 1, 5)  # (…, i, j, groups, n, 2 outputs, n + 2)
    return np.ascontiguousarray(of, dtype="<i2").view(np.int8).reshape(-1).astype(np.int64)
