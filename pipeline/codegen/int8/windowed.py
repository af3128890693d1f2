"""Steps whose outputs are windows over their input, as portable code looks at them. A row may be
made over a row of its input: what would overwrite what is yet to be read is kept aside, some
pixels, or a channel of the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.codegen.c import window
from pipeline.codegen.c.kernel import SCRATCH
from pipeline.codegen.c.order import Line
from pipeline.codegen.c.values import Span, Value
from pipeline.codegen.c.views import View
from pipeline.codegen.c.window import WindowAxis, window_axes
from pipeline.codegen.int8.job import Job, scratch_view
from pipeline.codegen.int8.weights import Weights
from pipeline.graph.families import Sliding
from pipeline.plan.vocabulary import Buffer


@dataclass(frozen=True)
class Windowed:
    """
    Attributes:
        view: of the input; ``inside``: its rows and columns that may be read.
        outs: the output channels.
        kept: what is aside.
    """

    job: Job
    view: View
    rows: WindowAxis
    columns: WindowAxis
    inside: tuple[Span, Span]
    outs: Span
    kept: Buffer | None

    @classmethod
    def of(cls, job: Job, inside: tuple[Span, Span], outs: Span) -> Windowed:
        op = job.op
        assert isinstance(op, Sliding)
        size = op.window(job.program.graph.tensors)
        view = job.view("in", job.given(op.inputs[0]), ring_axes=2)
        axes = window_axes(job.windowed, inside, size, op.stride, op.padding, op.dilation)
        return cls(job, view, *axes, inside, outs, job.kept)

    @property
    def by_channel(self) -> bool:
        """Check whether a channel of the row is kept."""
        unit = self.job.step.unit
        return self.kept is not None and (unit[1] > 1 or unit[2] < self.job.target.shape[2])

    @property
    def order(self) -> list[Line]:
        return [] if self.kept else self.job.order

    def unit(self) -> tuple[int, ...]:
        return (1, 1, 1) if self.kept else self.job.unit()

    def call(
        self, template: str, read: Weights, values: Mapping[str, Value] = {},
        **shared: Any,
    ) -> None:  # fmt: skip
        """``values``: besides those of windows and of the weights that are ``read``."""
        job = self.job
        out = job.out((*job.box[:2], self.outs), ring_axes=3)
        begins = {f"in_{axis}": part.start for axis, part in zip("yxc", self.view.box, strict=True)}
        ranges = window.ranges(job.box, self.inside, self.outs) | begins
        views, aside = {"in": self.view, **read.views, "out": out}, None
        if self.kept:
            (_, width, channels), bits = job.target.shape, job.target.dtype.bits
            aside = {"width": width, "delay": job.step.delay, "pixel_bytes": channels * bits // 8}
            aside |= {"by_channel": self.by_channel}
            views[SCRATCH] = scratch_view(self.kept)
            backwards = job.step.order[:1] > job.step.order[-1:]
            last = Value(width - 1 if backwards else 0)
            ranges |= {"x_first": last, "x_step": Value(-1 if backwards else 1)}
        job.call(
            template, views, {**ranges, **read.values, **values}, kind="over" * (aside is not None),
            order=self.order, any_strides=True, rows=self.rows, columns=self.columns,
            weights=read.array, aside=aside, **shared,
        )  # fmt: skip
