"""Images of another size: each pixel of weighted neighbours, all channels side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.codegen.c import window
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operators.resize import Resize


def compute(job: Job) -> None:
    op = job.operator(Resize)
    job.refuse_overlap()
    view = job.view("in", job.given(job.source.name), ring_axes=3)
    kinds = (("rows", "down"), ("columns", "along"))
    tables = dict[str, Any]()
    for axis, (first, by) in enumerate(kinds):
        about = f"the first of the {first} that are weighed, and weights, 2**-10"
        for kind, values in ((first, op.firsts[axis]), (by, op.weights[axis])):
            tables[kind] = job.table(kind, "int16_t", np.array(values), about)
    begins = {f"in_{axis}": part.start for axis, part in zip("yxc", view.box, strict=True)}
    ranges = window.named("y", job.box[0]) | window.named("x", job.box[1])
    job.call(
        "int8/resize",
        {"in": view, "out": job.out(ring_axes=3)},
        ranges | window.named("o", job.box[2]) | begins,
        about=f"{op.name}: {shape_text(job.source.shape)} -> {shape_text(job.target.shape)}",
        any_strides=True,
        taps=op.taps,
        beyond=min(map(min, op.weights)) < 0,
        limits=(job.target.dtype.minimum, job.target.dtype.maximum),
        **tables,
    )


WRITERS = {"int8.resize": compute}
