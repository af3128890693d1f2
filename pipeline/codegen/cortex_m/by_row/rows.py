"""Rows of inputs, as row kernels take them, and parts of a row whose code is the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod
from typing import Generic, TypeVar

import numpy as np

from pipeline.codegen.c.expressions import product, total
from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import made_row, row_view
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.tensor import Tensor

T = TypeVar("T")


@dataclass(frozen=True)
class Alike(Generic[T]):
    """Neighbours that differ in where they are alone, by as much each time."""

    members: tuple[T, ...]

    @classmethod
    def all(cls, every: Iterable[T], code: Callable[[T], Hashable] | None = None) -> list[Alike[T]]:
        """``code``: what neighbours have in common, if not all that is compared of them."""
        return [cls(tuple(same)) for _, same in groupby(every, code)]

    @property
    def one(self) -> T:
        return self.members[0]

    def step(self, place: str) -> int:
        """Return the step from one's ``place``, an attribute, to the next one's."""
        first, second = (getattr(each, place) for each in (self.members * 2)[:2])
        return int(second - first)

    def nth(self, place: str) -> str:
        """C of that of the nth."""
        return total(getattr(self.one, place), product("n", self.step(place)))


def input_rows(job: Job) -> list[View]:
    """Return those under a convolution's kernel, ``row0`` and so on; one that is outside of the
    image is a row of zero points."""
    op = job.operator(Conv2d)
    source, found = job.source, list[View]()
    top, piece = made_row(job) * op.stride[0] - op.padding[0], job.given(source.name)
    for ky in range(job.tensor(op.parameters[0]).shape[1]):
        row = top + ky * op.dilation[0]
        inside = 0 <= row < source.shape[0]
        view = row_view(job, f"row{ky}", piece, row if inside else 0)
        if not inside:
            view = replace(view, array=_outside(job, source), offset=Value(), constant=True)
        found.append(view)
    return found


def pooled_rows(job: Job) -> list[View]:
    """Return those under a pooling's window that are inside of the image, ``row0`` and so on, or
    the one that is added."""
    op, piece = job.operator(Pool2d), job.given(job.op.inputs[0])
    source, top = job.source, made_row(job) * op.stride[0] - op.padding[0]
    inside = range(max(0, top), min(source.shape[0], top + op.kernel[0]))
    if job.partial:
        added = job.program.box(piece)[0]
        assert added.start.known, "loops around row kernels are unrolled"
        inside = range(added.start.const, added.start.const + 1)
    return [row_view(job, f"row{n}", piece, row) for n, row in enumerate(inside)]


def _outside(job: Job, like: Tensor) -> str:
    """Name a row of zero points, as long as the longest that is read outside of an image of this
    type and zero point: all of them have one table."""
    graph, kind = job.program.graph, (like.dtype, like.zero_point)
    read = (graph.tensors[op.inputs[0]] for op in graph.operators if isinstance(op, Conv2d))
    size = max(prod(each.shape[1:]) for each in read if (each.dtype, each.zero_point) == kind)
    return job.program.constants.add(
        "outside", f"{size}_{like.zero_point & 255}", f"{like.dtype}_t",
        np.full(size, like.zero_point),
        f"rows outside of images: {size} times the zero point {like.zero_point}", align=4,
    ).name  # fmt: skip
