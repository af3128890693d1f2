"""Steps whose outputs are windows over their input, as portable code looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.codegen.c import window
from pipeline.codegen.c.values import Span, Value
from pipeline.codegen.c.views import View
from pipeline.codegen.c.window import WindowAxis, window_axes
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.weights import Weights
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import Pool2d


@dataclass(frozen=True)
class Windowed:
    """
    Attributes:
        view: of the input; ``inside``: its rows and columns that may be read.
        outs: the output channels.
    """

    job: Job
    view: View
    rows: WindowAxis
    columns: WindowAxis
    inside: tuple[Span, Span]
    outs: Span

    @classmethod
    def of(cls, job: Job, inside: tuple[Span, Span], outs: Span) -> Windowed:
        op = job.op
        assert isinstance(op, Conv2d | Pool2d)
        if isinstance(op, Conv2d):
            _, height, width, _ = job.tensor(op.parameters[0]).shape
            size, apart = (height, width), op.dilation
        else:
            size, apart = op.kernel, (1, 1)
        view = job.view("in", job.given(op.inputs[0]), ring_axes=2)
        axes = window_axes(job.windowed, inside, size, op.stride, op.padding, apart)
        return cls(job, view, *axes, inside, outs)

    def call(
        self,
        template: str,
        about: str,
        weights: Weights | None = None,
        values: Mapping[str, Value] | None = None,
        views: Mapping[str, View] | None = None,
        **shared: Any,
    ) -> None:
        """``values``, ``views``: besides those of windows and weights."""
        job, read = self.job, weights or Weights(None)
        out = job.out((*job.box[:2], self.outs), ring_axes=3)
        begins = {f"in_{axis}": part.start for axis, part in zip("yxc", self.view.box, strict=True)}
        ranges = window.ranges(job.box, self.inside, self.outs) | begins
        job.call(
            template,
            about,
            {"in": self.view, **read.views, "out": out, **(views or {})},
            {**ranges, **read.values, **(values or {})},
            any_strides=True,
            rows=self.rows,
            columns=self.columns,
            weights=read.array,
            **shared,
        )
