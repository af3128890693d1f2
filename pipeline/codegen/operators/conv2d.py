"""Convolution: a window of products."""

from __future__ import annotations

from pipeline.codegen.program import Program
from pipeline.codegen.window import Window, add_step
from pipeline.errors import ThimbleError
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.plan.vocabulary import Compute
from pipeline.plan.walk import Env


def emit(program: Program, op: Conv2d, step: Compute, env: Env) -> None:
    if op.groups != 1:
        raise ThimbleError(
            f"{op.name}: generated code has no grouped convolution yet (groups={op.groups})"
        )
    graph = program.graph
    source, weight = graph.tensors[op.inputs[0]], graph.tensors[op.parameters[0]]
    window = Window(
        op,
        source,
        graph.tensors[op.output],
        "mac",
        (weight.shape[1], weight.shape[2]),
        op.requant,
        op.relu,
        op.stride,
        op.dilation,
        (op.padding[0], op.padding[2]),
        any(op.padding),
        graph.constants[op.parameters[0]],
        weight.dtype.bits,
        graph.constants[op.parameters[1]],
    )
    program.edges |= window.padded
    add_step(program, window, step, env)
