"""Cells along a sequence: one loop over its steps, one over units, weights as they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.codegen.int8.ending import Scaling, scaling, stored
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.exponential import sigmoid_points
from pipeline.graph.operator import limits
from pipeline.graph.operators.recurrent import (
    Gru,
    Lstm,
    LstmHidden,
    LstmMemory,
    Recurrent,
    TimeFilter,
)
from pipeline.graph.requant import INT32, FixedPoint
from pipeline.kernels.cortex_m import has_dsp
from pipeline.kernels.int8.costs import word

PRODUCTS = -(1 << 30), 1 << 30
"""The least and the greatest product of two numbers of 16 bits."""


def recurrent(job: Job) -> None:
    """Inputs are widened, and a step's h copied, before anything is written."""
    op, graph, constants = job.operator(Recurrent), job.program.graph, job.program.constants
    _, steps, features = job.source.shape
    views = {"in": job.view("in", job.given(op.inputs[0])), "out": job.out()}
    for kind, name in zip(("hidden", "cell"), op.inputs[1:], strict=False):
        views[kind] = job.view(kind, job.given(name))

    def scaled(requant: FixedPoint, sums: tuple[int, int]) -> Scaling:
        return scaling(constants, op.name, requant, sums)

    ends = op.sums(graph.tensors, graph.constants)
    sums = [
        [scaled(requant.part(gate, gate + 1), end).scaled("sum") for gate in range(op.gates)]
        for requant, end in zip(op.requants, ends, strict=True)
    ]
    given: dict[str, Any] = {"kept": op.kept(graph.tensors), "memory": None, "shown": None}
    given |= {"resets": not getattr(op, "after", True), "more": None}
    if isinstance(op, LstmMemory):
        low, high = (-op.most, op.most) if op.most else (-(1 << 15), (1 << 15) - 1)
        kept, added = (scaled(each, PRODUCTS) for each in (op.keep, op.add))
        given["memory"] = kept.scaled("forget"), added.scaled("more"), low, high
    if isinstance(op, LstmHidden):
        given["shown"] = *op.curve, scaled(op.show, PRODUCTS).scaled("value")
        given |= {"half": 1 << op.curve[1] >> 1, "output_gate": op.gates - 1}
    given |= tables(job, ("weights", "back", "bias", "more"))
    if pairs := has_dsp(job.program.hardware):
        job.program.headers.add("nn_dsp.h")
    given["points"] = constants.add("sigmoid", "points", "uint16_t", np.array(sigmoid_points()),
                                    "sigmoid at every 1/24, Q0.16")  # fmt: skip
    job.call(
        "int8/recurrent", {**views, "scratch": job.scratch}, kind="",
        about=f"{op.name}: {word(op)} {shape_text(job.source.shape)} -> "
        f"{shape_text(job.target.shape)}",
        cell_kind=word(op), steps=steps, features=features, units=job.target.shape[2],
        scaled=sums, reverse=op.reverse, hidden_zero=op.hidden(graph.tensors).zero_point,
        out_zero=job.target.zero_point, pairs=pairs,
        result=stored("seen", limits(job.target, None), job.target.zero_point), **given,
    )  # fmt: skip


def tables(job: Job, kinds: tuple[str, ...]) -> dict[str, Any]:
    """Parameters as the graph has them."""
    graph, found = job.program.graph, dict[str, Any]()
    for kind, name in zip(kinds, job.op.parameters, strict=False):
        type_ = f"{graph.tensors[name].dtype}_t"
        found[kind] = job.table(kind, type_, graph.constants[name], kind, weights=True)
    return found


def time_filter(job: Job) -> None:
    """Each unit in turn."""
    op = job.operator(TimeFilter)
    job.refuse_overlap()
    (memory, _, filters), (units,), zero = job.source.shape, job.target.shape, job.target.zero_point
    scale = scaling(job.program.constants, op.name, op.requant, INT32)
    job.call(
        "int8/time_filter", {"in": job.view("in", job.given(job.source.name)), "out": job.out()},
        about=f"{op.name}: {memory} steps of {filters} filters", units=units, memory=memory,
        rank=filters // units, scaled=scale.scaled("(int32_t)total"),
        result=stored("value", limits(job.target, None), zero), **tables(job, ("weights", "bias")),
    )  # fmt: skip


WRITERS = {"int8.time_filter": time_filter}
WRITERS |= {f"int8.{word(kind)}": recurrent for kind in (Gru, Lstm, LstmHidden, LstmMemory)}
