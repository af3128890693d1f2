"""A rectifier with slopes: each element by one of two factors."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.c import expressions
from pipeline.codegen.int8.ending import scaling, stored
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.operators import elements
from pipeline.graph import broadcast
from pipeline.graph.operator import limits
from pipeline.graph.operators.prelu import Prelu


def compute(job: Job) -> None:
    op, tensors = job.operator(Prelu), job.program.graph.tensors
    names = {"in": op.inputs[0], "slope": op.parameters[0]}
    views, loops, counts = elements.walked(job, names)
    ends, slopes = (broadcast.extremes(name, tensors) for name in names.values())
    products = np.outer(ends, slopes)
    constants = job.program.constants
    above = scaling(constants, op.name, op.requant, (int(ends.min()), int(ends.max())))
    below = scaling(constants, op.name, op.below, (int(products.min()), int(products.max())))
    value, factor = (
        expressions.centred(views[kind].load(loops.at(number)), tensors[name].zero_point)
        for number, (kind, name) in enumerate(names.items(), 1)
    )
    result = stored("value", limits(job.target, op.clip), job.target.zero_point)
    lines = (
        f"const int32_t x = {value};",
        f"const int32_t value = x >= 0 ? {above.scaled('x')} : {below.scaled(f'x * {factor}')};",
    )
    about = f"{op.name}: rectifier with slopes of {shape_text(tensors[names['in']].shape)}"
    elements.call(job, about, views, loops, counts, lines, result)


WRITERS = {"int8.prelu": compute}
