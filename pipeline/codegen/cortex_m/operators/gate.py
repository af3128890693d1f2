"""Products of an image and one factor a channel, four elements at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.codegen.binding import form_of
from pipeline.codegen.c import expressions
from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m.by_row.rows import out_row
from pipeline.codegen.cortex_m.ending import element_ending
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.rows import made_row, row_view, stretches
from pipeline.graph.tensor import Tensor
from pipeline.kernels.cortex_m.gate import sides


@dataclass(frozen=True)
class Widened:
    """Bytes as pairs of 16 bits, without their zero point.

    Attributes:
        kind: of bytes, as C's functions for them end.
        zeros: in C, what is added to both halves of a word.
    """

    kind: str
    zeros: str
    zero_point: int

    def centred(self, byte: str) -> str:
        return expressions.centred(byte, self.zero_point)

    @classmethod
    def of(cls, tensor: Tensor) -> Widened:
        half = -tensor.zero_point & 0xFFFF
        kind = "s8" if tensor.dtype.signed else "u8"
        return cls(kind, f"0x{half << 16 | half:08X}u", tensor.zero_point)


def compute(job: Job) -> None:
    image, _ = names = _sides(job)
    views = {"in": job.view("in", job.given(image), job.box), "out": job.out()}
    rows, (_, columns, channels) = job.box[0], job.target.shape
    _call(job, "gate", "", names, views, {"pixels": rows.extent * columns}, channels)


def by_row(job: Job) -> None:
    image, _ = names = _sides(job)
    row, out = row_view(job, "in", job.given(image), made_row(job)), out_row(job)
    for stretch in stretches(job):
        blocks, channels, pixels = stretch.extents
        views = {"in": stretch.of(row), "out": stretch.of(out)}
        ranges = {"blocks": Value(blocks)}
        _call(job, "by_row/gate", "row", names, views, ranges, channels, pixels)


def _sides(job: Job) -> tuple[str, str]:
    found = sides(form_of(job))
    assert found is not None
    return found


def _call(
    job: Job,
    template: str,
    kind: str,
    names: tuple[str, str],
    views: Mapping[str, View],
    ranges: Mapping[str, Value],
    channels: int,
    pixels: int = 0,
) -> None:
    """``names``: of the image and the factors."""
    op = job.op
    image, factors = map(job.tensor, names)
    job.call(
        f"cortex_m/{template}",
        f"{op.name}: product of {shape_text(image.shape)} and {shape_text(factors.shape)}",
        {**views, "factors": job.view("factors", job.given(names[1]))},
        ranges,
        job.apart,
        kind,
        image=Widened.of(image),
        gate=Widened.of(factors),
        **element_ending(job),
        channels=channels,
        pixels=pixels,
    )
