"""Convolutions, depthwise ones and dense layers: weights and what ends sums, as assembly reads
them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.codegen.constants import wrapped
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.windows import Windows, convolved_view, met
from pipeline.graph.families import Weighted
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.thumb.conv2d import Convolution
from pipeline.kernels.thumb.dense import UNROLL
from pipeline.kernels.thumb.depthwise import Strip, strip_of, together
from pipeline.kernels.thumb.ending import Narrow, narrow_end
from pipeline.kernels.widened import evenly_spaced


def ends(job: Job, zero_point: int) -> tuple[Narrow, IntArray]:
    """Return how sums end, and (channels,) what they begin with.

    Args:
        zero_point: of the input, as far as it is in what is multiplied.
    """
    op, graph = job.operator(Weighted), job.program.graph
    found = narrow_end(op, graph)
    assert found is not None
    weights, bias = (graph.constants[name] for name in op.parameters)
    flat = weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64)
    return found, bias - zero_point * flat - found.base


def convolution(job: Job) -> None:
    """Windows of some pixels are widened once, for all channels."""
    source, kernel = job.source, Convolution()
    pixels, some = kernel.together(job.form), kernel.window(job.form)
    count = job.box[0].extent * job.target.shape[1]
    view, flat = convolved_view(job)
    (values, never), (end, starts) = met(job, some), ends(job, source.zero_point)
    rows = np.concatenate([(starts + never)[:, None], packed(values), end.words], axis=1)
    job.rows_call(
        "thumb/conv2d", view, {"count": count, "last_block": count - pixels},
        window=Windows.of(job, view, some, 0), flat=flat, pixels=pixels,
        spread="nn_spread_s8" if source.dtype.signed else "nn_spread_u8",
        even=count.known and count.const % pixels == 0, elements=some.size,
        kept=0 if job.apart else evenly_spaced(job.form) % pixels, channel_words=rows.shape[1],
        ends=end,
        stream=job.table(
            "stream", "int32_t", wrapped(rows),
            "of each channel what its sum begins with, four weights a word, its end", weights=True,
        ),
    )  # fmt: skip


def packed(values: IntArray) -> IntArray:
    """(channels, elements) -> (channels, words): four a word, the first lowest, as C has them
    signed."""
    padded = np.pad(values.astype(np.int64), ((0, 0), (0, -values.shape[1] % 4)))
    parts = (padded & 255).reshape(len(values), -1, 4) << 8 * np.arange(4)
    return wrapped(parts.sum(axis=2))


def dense(job: Job) -> None:
    """Four channels at a time, of the inputs that are not the zero point."""
    op, source = job.op, job.source
    values = job.program.graph.constants[op.parameters[0]]
    end, starts = ends(job, 0)
    rows = np.concatenate([starts[:, None], end.words], axis=1)
    job.call(
        "thumb/dense", {"in": job.source_view, "out": job.out(), "scratch": job.scratch},
        inputs=source.size, unroll=UNROLL, words=rows.shape[1], ends=end,
        weights=job.table("weights", "int8_t", values.reshape(-1), "weights", weights=True),
        table=job.table(
            "ends", "int32_t", wrapped(rows),
            "of each channel what its sum begins with, and how it ends",
        ),
    )  # fmt: skip


class Phase(NamedTuple):
    """``number`` columns of the input from ``column`` on, a stride apart, go to the words of a row
    from ``first`` on."""

    first: int
    column: int
    number: int

    @classmethod
    def of(cls, number: int, strip: Strip, window: Windows) -> Phase:
        """Select the columns whose numbers, padding counted, are ``number`` modulo the stride."""
        (_, stride), (_, left), width = window.stride, window.pad, window.width
        first = max(0, -(-(left - number) // stride))
        stop = min(strip.columns, -(-(width + left - number) // stride))
        column = first * stride + number - left
        return cls(number * strip.columns + first, column, max(0, stop - first))


def depthwise(job: Job) -> None:
    """Channel by channel: rows of one widened beside each other."""
    op = job.operator(Conv2d)
    source, name, view = job.source, op.parameters[0], job.rows_view()
    window, columns = Windows.of(job, view), job.target.shape[1]
    strip, outputs = strip_of(job.form), together(columns)
    taps = [
        ky * strip.pitch + kx % op.stride[1] * strip.columns + kx // op.stride[1]
        for ky, kx in np.ndindex(window.kernel)
    ]
    order = np.argsort(taps, kind="stable")
    weights = job.program.graph.constants[name].reshape(window.channels, -1)[:, order]
    end, starts = ends(job, source.zero_point)
    table = np.concatenate([starts[:, None], weights, end.words], axis=1)
    job.rows_call(
        "thumb/depthwise", view, ring_axes=1, strip=strip, places=sorted(taps), window=window,
        phases=[Phase.of(n, strip, window) for n in range(strip.phases)],
        columns=columns, outputs=outputs, blocks=columns // outputs, rest=columns % outputs,
        words=table.shape[1], ends=end,
        table=job.table(
            "table", "int32_t", wrapped(table),
            "of each channel what its sum begins with, its weights, and how it ends", weights=True,
        ),
    )  # fmt: skip


WRITERS = {"thumb.conv2d": convolution, "thumb.dense": dense, "thumb.depthwise": depthwise}
