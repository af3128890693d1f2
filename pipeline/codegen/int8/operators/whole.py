"""Operators that make an output at once of all that it reads along some axes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.codegen.c import nest
from pipeline.codegen.c.expressions import product, total
from pipeline.codegen.c.values import whole
from pipeline.codegen.int8.ending import scaling, stored
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operator import limits
from pipeline.graph.operators.along import (
    ArgMax,
    LogSoftmax,
    MatMul,
    Normalize,
    Softmax,
    WideSoftmax,
)
from pipeline.graph.operators.resize import Resize
from pipeline.graph.tensor import Tensor
from pipeline.kernels.int8.costs import word


def _from_to(job: Job, about: str, named: Mapping[str, str], ring_axes: int, **shared: Any) -> None:
    """Call the template of the operator's name: its loops go along the output's axes, from
    ``out_0`` to ``stop_0`` and so on; what it reads of the tensors ``named`` begins at ``in_0``."""
    job.refuse_overlap()
    views = {kind: job.view(kind, job.given(name), None, ring_axes) for kind, name in named.items()}
    views["out"] = job.out(ring_axes=ring_axes)
    ranges = {f"stop_{axis}": part.stop for axis, part in enumerate(job.box)}
    for kind, view in views.items():
        ranges |= {f"{kind}_{axis}": part.start for axis, part in enumerate(view.box)}
    ends = limits(job.target, getattr(job.op, "clip", None))
    shared = {"result": stored("value", ends, job.target.zero_point)} | shared
    job.call(
        f"int8/{word(job.op)}", views, ranges, about=f"{job.op.name}: {about}", any_strides=True,
        **shared,
    )  # fmt: skip


def mat_mul(job: Job) -> None:
    """Multiply, for each element, a row and a column."""
    op, program = job.operator(MatMul), job.program
    sums = op.partial_sums(program.graph.tensors, program.graph.constants)
    left, right = (job.tensor(name) for name in op.operands)
    scale = scaling(program.constants, op.name, op.requant, sums)
    _from_to(
        job, f"{' * '.join(map(_text, (left, right)))} -> {_text(job.target)}",
        dict(zip(("in", "right"), op.operands, strict=True)), 3,
        turned=op.turned, alone=[each.shape[0] == 1 for each in (left, right)],
        inner=op.atoms(program.graph.tensors), zero=left.zero_point, right_zero=right.zero_point,
        scaled=scale.scaled("sum"),
    )  # fmt: skip


def normalize(job: Job) -> None:
    """Pass twice over what is normalized together."""
    op = job.operator(Normalize)
    _from_to(
        job, f"normalization of {_text(job.source)} over axes {op.axes}", {"in": op.inputs[0]}, 0,
        axes=op.axes, count=op.count(job.program.graph.tensors), about_mean=op.centred,
        epsilon=op.epsilon, multiplier=op.requant.multipliers[0], shift=op.requant.shifts[0],
    )  # fmt: skip


def resize(job: Job) -> None:
    """Each pixel of weighted neighbours, all channels side by side."""
    op, tables = job.operator(Resize), dict[str, Any]()
    for axis, (first, by) in enumerate((("rows", "down"), ("columns", "along"))):
        about = f"the first of the {first} that are weighed, and weights, 2**-10"
        for kind, values in ((first, op.firsts[axis]), (by, op.weights[axis])):
            tables[kind] = job.table(kind, "int16_t", np.array(values), about)
    (least, most), beyond = limits(job.target, None), min(map(min, op.weights)) < 0
    _from_to(
        job, f"{_text(job.source)} -> {_text(job.target)}", {"in": op.inputs[0]}, 3, taps=op.taps,
        result=f"nn_clip((int32_t)sum, {least}, {most})" if beyond else "(int32_t)sum", **tables,
    )  # fmt: skip


def arg_max(job: Job) -> None:
    """Each in turn."""
    op, shape = job.operator(ArgMax), job.source.shape
    job.refuse_overlap()
    box = [*job.box[: op.axis], whole(shape[op.axis]), *job.box[op.axis :]][: len(shape)]
    view, out = job.view("in", job.given(job.source.name), box), job.out()
    steps = (*view.strides[: op.axis], *view.strides[op.axis + 1 :]) or (0,)
    loops, counts = nest.nest([part.extent for part in job.box], [out.strides, steps], [out])
    each = total(loops.at(1), product("index", view.strides[op.axis]))
    job.call(
        "int8/arg_max", {"in": view, "out": out}, counts,
        about=f"{op.name}: places of extremes along axis {op.axis} of {_text(job.source)}",
        nest=loops, extent=shape[op.axis], first=view.load(loops.at(1)), each=view.load(each),
        least=op.least, place=loops.at(0),
    )  # fmt: skip


def softmax(job: Job) -> None:
    """Three passes over each row."""
    op, (low, high), below = job.operator(Softmax), limits(job.target, None), None
    base, tables = (
        low,
        [("exp", op.exponentials, "exponential of an input so far below the maximum, Q0.31")],
    )
    if isinstance(op, LogSoftmax):
        tables.append(("differences", op.differences, "below the maximum, Q5.26"))
    if isinstance(op, WideSoftmax):
        below, base, low = scaling(job.program.constants, op.name, op.requant, (-65535, 0)), 0, 0
        pairs = (("exponential", op.exponentials), ("reciprocal", op.reciprocals))
        tables = [(kind, points, f"{kind} in Q0.15") for kind, points in pairs]
    kind = "int16_t" if below else "int32_t"
    job.refuse_overlap()
    view, out = job.view("in", job.given(job.source.name), job.box), job.out()
    extents = [part.extent for part in job.box]
    loops, counts = nest.nest(extents, [out.strides, view.strides], [out, view], pixels=True)
    job.call(
        "int8/softmax", {"in": view, "out": out}, counts,
        about=f"{job.op.name}: softmax {_text(job.source)}", nest=loops.without(1),
        extent=job.source.shape[-1], channel=loops.pixel, input=view.load(loops.at(1)),
        place=loops.at(0), made=out.load(loops.at(0)), least=job.source.dtype.minimum,
        wide=below is not None, below=below, logs=isinstance(op, LogSoftmax), base=base,
        limits=(low, high),
        tables=[job.table(n, kind, np.array(v, np.int64), about) for n, v, about in tables],
    )  # fmt: skip


def _text(tensor: Tensor) -> str:
    return shape_text(tensor.shape)


WRITERS = {
    **{f"int8.{each.__name__}": each for each in (arg_max, mat_mul, normalize, resize)},
    **{f"int8.{each}": softmax for each in ("softmax", "log_softmax", "wide_softmax")},
}
