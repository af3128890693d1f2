"""Convolutions, depthwise ones and dense layers: which parts of a row have which code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pipeline.codegen.avr.stream import from_least, stream
from pipeline.codegen.int8.convolution import of_dense
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import layouts, row_view
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.avr import Convolution, Depthwise
from pipeline.kernels.avr.convolution import UNROLL
from pipeline.kernels.avr.rows import AvrRows, columns_read


@dataclass(frozen=True)
class Run:
    """Parts one after the other, of equally many pixels each.

    Attributes:
        code: the number of what runs them.
    """

    first: int
    pixels: int
    count: int
    code: int


def runs(parts: Sequence[range], alike: Callable[[range], object]) -> tuple[list[range], list[Run]]:
    """Return the first part of each kind, and all parts."""
    kinds, found, codes = list[object](), list[Run](), list[range]()
    for kind, group in groupby(parts, alike):
        same = list(group)
        if kind not in kinds:
            kinds.append(kind)
            codes.append(same[0])
        found.append(Run(same[0].start, len(same[0]), len(same), kinds.index(kind)))
    return codes, found


def convolution(job: Job) -> None:
    codes, every = runs(Convolution().parts(job.form), len)
    sizes = [len(part) for part in codes]
    more = {"sizes": sizes, "runs": every, "unroll": UNROLL}
    _windows(job, Convolution(), True, more)


def depthwise(job: Job) -> None:
    form = job.form

    def alike(part: range) -> object:
        read = columns_read(form, part)
        return len(part), [column - next(iter(read)) for column in read], list(read.values())

    codes, every = runs(Depthwise().parts(form), alike)
    firsts = [
        next(iter(columns_read(form, range(run.first, run.first + run.pixels)))) for run in every
    ]
    read = [(len(part), list(columns_read(form, part).items())) for part in codes]
    more = {"codes": read, "runs": list(zip(every, firsts, strict=True))}
    _windows(job, Depthwise(), False, more)


def _windows(job: Job, kernel: AvrRows, unsigned: bool, more: dict[str, Any]) -> None:
    """
    Raises:
        ThimbleError: where the output lies over an input row in a way that the kernel can't bear.
    """
    op = job.operator(Conv2d)
    if job.overlaps:
        piece = job.given(op.inputs[0])
        given = job.program.box(piece)[0]
        assert given.start.known and given.stop.known, "loops around such steps are unrolled"
        numbers = range(given.start.const, given.stop.const)
        layouts(job, kernel, [row_view(job, "in", piece, n) for n in numbers])
    assert kernel.rows(job.form) is not None
    source, view = job.source, job.rows_view()
    job.rows_call(
        f"avr/int8/{kernel.word}", view, ring_axes=1, kind="assembly", window=Windows.of(job, view),
        stream=stream(job, unsigned), zero=from_least(source), flip=-source.dtype.minimum, **more,
    )  # fmt: skip


def dense(job: Job) -> None:
    convolution(of_dense(job))


WRITERS = {"avr.conv2d": convolution, "avr.dense": dense, "avr.depthwise": depthwise}
