"""Fully connected layer: a window as large as its input."""

from __future__ import annotations

from pipeline.codegen.program import Program
from pipeline.codegen.views import grid
from pipeline.codegen.window import Window, add_step
from pipeline.graph.operators.dense import Dense
from pipeline.plan.vocabulary import Compute
from pipeline.plan.walk import Env


def emit(program: Program, op: Dense, step: Compute, env: Env) -> None:
    graph = program.graph
    source, weight = graph.tensors[op.inputs[0]], graph.tensors[op.parameters[0]]
    rows, columns, depth = grid(source.shape)
    window = Window(
        op,
        source,
        graph.tensors[op.output],
        "mac",
        (rows, columns),
        op.requant,
        op.relu,
        weights=graph.constants[op.parameters[0]].reshape(-1, rows, columns, depth),
        weight_bits=weight.dtype.bits,
        bias=graph.constants[op.parameters[1]],
    )
    add_step(program, window, step, env)
