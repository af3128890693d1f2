"""Parts of rows whose code is the same, and whether the output may lie where it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pipeline.codegen.binding import form_of
from pipeline.codegen.cortex_m.by_row.rows import layouts
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import row_view
from pipeline.kernels.avr.rows import AvrRows
from pipeline.kernels.cortex_m.by_row.parts import Part


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


def runs(parts: Sequence[Part], alike: Callable[[Part], object]) -> tuple[list[Part], list[Run]]:
    """The first part of each kind, and all parts."""
    kinds, found, codes = list[object](), list[Run](), list[Part]()
    for kind, group in groupby(parts, alike):
        same = list(group)
        if kind not in kinds:
            kinds.append(kind)
            codes.append(same[0])
        found.append(Run(same[0].first, same[0].pixels, len(same), kinds.index(kind)))
    return codes, found


def check(job: Job, kernel: AvrRows) -> None:
    """
    Raises:
        ThimbleError: where the output lies over an input row in a way that the kernel can't bear.
    """
    if job.overlaps:
        piece = job.given(job.op.inputs[0])
        rows = job.program.box(piece)[0]
        assert rows.start.known and rows.stop.known, "loops around such steps are unrolled"
        views = [row_view(job, "in", piece, n) for n in range(rows.start.const, rows.stop.const)]
        layouts(job, kernel, views)
    assert kernel.rows(form_of(job)) is not None
