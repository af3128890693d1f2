"""Where along an axis the greatest element is: each in turn."""

from __future__ import annotations

from pipeline.codegen.c import nest
from pipeline.codegen.c.expressions import product, total
from pipeline.codegen.c.values import whole
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operators.arg_max import ArgMax


def compute(job: Job) -> None:
    op, shape = job.operator(ArgMax), job.source.shape
    job.refuse_overlap()
    box = [*job.box[: op.axis], whole(shape[op.axis]), *job.box[op.axis :]][: len(shape)]
    view, out = job.view("in", job.given(job.source.name), box), job.out()
    steps = (*view.strides[: op.axis], *view.strides[op.axis + 1 :]) or (0,)
    loops, counts = nest.nest([part.extent for part in job.box], [out.strides, steps], [out])
    each = total(loops.at(1), product("index", view.strides[op.axis]))
    job.call(
        "int8/arg_max",
        {"in": view, "out": out},
        counts,
        about=f"{op.name}: places of extremes along axis {op.axis} of {shape_text(shape)}",
        nest=loops,
        extent=shape[op.axis],
        first=view.load(loops.at(1)),
        each=view.load(each),
        least=op.least,
        place=loops.at(0),
    )


WRITERS = {"int8.arg_max": compute}
