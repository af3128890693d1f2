"""Pooling of a tensor that lies in the arena."""

from __future__ import annotations

from pipeline.codegen.program import Program
from pipeline.codegen.window import Window, add_step
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.plan.vocabulary import Compute
from pipeline.plan.walk import Env


def emit(program: Program, op: Pool2d, step: Compute, env: Env) -> None:
    graph = program.graph
    averages = isinstance(op, AveragePool2d)
    window = Window(
        op,
        graph.tensors[op.inputs[0]],
        graph.tensors[op.output],
        "sum" if averages else "max",
        op.kernel,
        op.requant if isinstance(op, AveragePool2d) else PowerOfTwo(),
        stride=op.stride,
    )
    add_step(program, window, step, env)
