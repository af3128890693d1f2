"""Cells along a sequence: one loop over its steps, one over units, weights as they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.codegen.cortex_m import weights
from pipeline.codegen.int8.ending import Scaling, scaling, stored
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.exponential import sigmoid_points
from pipeline.graph.operator import limits, product_sums
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
from pipeline.kernels.thumb import has_thumb

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
    given |= {"resets": not getattr(op, "after", True), "more": None, "dots": ()}
    if isinstance(op, LstmMemory):
        low, high = (-op.most, op.most) if op.most else (-(1 << 15), (1 << 15) - 1)
        kept, added = (scaled(each, PRODUCTS) for each in (op.keep, op.add))
        given["memory"] = kept.scaled("forget"), added.scaled("more"), low, high
    if isinstance(op, LstmHidden):
        given["shown"] = *op.curve, scaled(op.show, PRODUCTS).scaled("value")
        given |= {"half": 1 << op.curve[1] >> 1, "output_gate": op.gates - 1}
    units, hardware = job.target.shape[2], job.program.hardware
    pairs = has_dsp(hardware) and units % 2 == 0
    rows = 4 - units % 4 if pairs else 4 if has_thumb(hardware) and units % 4 == 0 else 1
    given |= streams(job, op, rows) if pairs else tables(job, ("weights", "back"))
    given |= tables(job, ("bias", "more"), first=2)
    job.program.headers |= {"nn_dsp.h"} if pairs else {"nn_thumb.h"} if rows > 1 else set()
    given["points"] = constants.add("sigmoid", "points", "uint16_t", np.array(sigmoid_points()),
                                    "sigmoid at every 1/24, Q0.16")  # fmt: skip
    job.call(
        "int8/recurrent", {**views, "scratch": job.scratch}, kind="",
        about=f"{op.name}: {word(op)} {shape_text(job.source.shape)} -> "
        f"{shape_text(job.target.shape)}",
        cell_kind=word(op), steps=steps, features=features, units=units, rows=rows,
        scaled=sums, reverse=op.reverse, hidden_zero=op.hidden(graph.tensors).zero_point,
        out_zero=job.target.zero_point,
        gates=[gate for gate in range(op.gates) if gate != 1 or not given["resets"]],
        result=stored("seen", limits(job.target, None), job.target.zero_point), **given,
    )  # fmt: skip


def streams(job: Job, op: Recurrent, rows: int) -> dict[str, Any]:
    """Order the weights of x and of h as dots meet them, ``rows`` units at a time, in loops that
    leave room in small caches of flash."""
    graph, every = job.program.graph, list[dict[str, Any]]()
    for source, name in zip((job.source, op.hidden(graph.tensors)), op.parameters, strict=False):
        values = graph.constants[name]
        places, groups = weights.order(1, values.shape[1]), np.arange(len(values)).reshape(-1, rows)
        every.append(weights.streamed(
            job, values, places, groups, product_sums(values, source),
            name="back" * bool(every) or "weights", unroll=2 if len(places) % 4 else 4,
        ))  # fmt: skip
    own, was = every
    return {"weights": own["weights"], "back": was["weights"], "dots": (own["dot"], was["dot"])}


def tables(job: Job, kinds: tuple[str, ...], first: int = 0) -> dict[str, Any]:
    """Parameters as the graph has them."""
    graph, found = job.program.graph, dict[str, Any]()
    for kind, name in zip(kinds, job.op.parameters[first:], strict=False):
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
