"""Winograd's minimal filtering of whole tensors: what the template has no arithmetic for."""

import numpy as np

from pipeline.codegen.binding import kernel_of
from pipeline.codegen.cortex_m import weights
from pipeline.codegen.cortex_m.dot import Dot
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.int8.job import Job
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.winograd import (
    LIFT,
    MOST_STEPS,
    SPANS,
    Winograd,
    lifted,
    outputs_of_a_side,
    pairs_of,
)
from pipeline.kernels.fast import unrolled

WEIGHTS = {
    2: np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]),
    4: np.array([[3, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 3]]),
}
"""G of F(m x m, 3 x 3), times 2 and times 3, by m: (m + 2, 3)."""

ALIKE = {2: (0, 2, 0, 0), 4: (0, -6, 0, 0, 0, 0)}
"""B transposed, by m, times a column of ones: what becomes of equal inputs."""

SHIFTS = {2: (1, 1), 4: (3, 2, 1, 1)}
"""By m: outputs in one direction are 2 to this, and 3 where m is 4, times too large."""


def _halves(values: IntArray, side: int) -> list[int]:
    """The same in both halves of a word: where m is 4 as one number, which borrows between them."""
    each = values * 0x10001 if side == 4 else (values & 0xFFFF) * 0x10001
    return [int(value) for value in each % (1 << 32)]


def compute(job: Job) -> None:
    op, program, kernel, form = job.operator(Conv2d), job.program, kernel_of(job), job.form
    assert isinstance(kernel, Winograd)
    source, (rows, columns, channels) = job.source, job.target.shape
    finish, m = end(job), outputs_of_a_side(op, program.graph)
    above = 128 if m == 4 and source.dtype.signed else 0
    alike = np.array(ALIKE[m]) * (source.zero_point + above)
    values, bias = (program.graph.constants[name].astype(np.int64) for name in op.parameters)
    groups = weights.pairs(channels, 2)
    arranged = _plain(values, groups) if kernel.live else _transformed(values, groups, m)
    starts = (bias - (source.zero_point + above) * values.sum((1, 2, 3)))[:, None]
    if m == 4:
        starts = np.concatenate([starts, starts - LIFT * lifted(values)], axis=1)
    how = "as they are" if kernel.live else "transformed"
    job.call(
        "cortex_m/winograd",
        {"in": job.source_view, "out": job.out(), "scratch": job.scratch},
        m=m, width=source.shape[1], depth=source.shape[2], rows=rows, columns=columns,
        steps=pairs_of(form), count=kernel.tiles(form), span=kernel.span(form), live=kernel.live,
        lift=[above * 0x10001, (above + LIFT) * 0x10001],
        vacant={0: _halves(alike, m), m + 1: _halves(alike + LIFT * (m == 4), m)},
        shifts=SHIFTS[m],
        pad=op.padding,
        dot=Dot(groups=pairs_of(form), unroll=unrolled(pairs_of(form), MOST_STEPS), halves=True),
        ninth=pow(9, -1, 1 << 32),
        end=finish,
        weights=job.table(
            "weights", "int8_t", arranged, f"of two channels, {how}", weights=True, align=4
        ),
        table=job.table(
            "ends", "int32_t", finish.heads(2 * starts)[groups],
            "for each channel what sums begin with, twice, and how they end",
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


WRITERS = {Winograd(span=span).name: compute for span in (0, *SPANS)}
