"""The steps that kernels over pixels are written for."""

from __future__ import annotations

from pipeline.codegen.int4 import stretches
from pipeline.codegen.int4.operators import window
from pipeline.codegen.int4.window import add_step
from pipeline.codegen.permutations import first_nibbles
from pipeline.codegen.program import Program
from pipeline.errors import ThimbleError
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.operators.rearrange import Rearrange
from pipeline.plan.vocabulary import Clear, Compute, Finish, Move


def write(program: Program, step: Compute | Clear | Finish | Move) -> None:
    """Adds the statement of a step; no loop is around it."""
    match step:
        case Compute():
            op = program.operators[step.op]
            match op:
                case Add():
                    stretches.add(program, op, step)
                case Rearrange():
                    stretches.crop(program, op, step)
                case _:
                    add_step(program, window(program.graph, op), step)
        case Move():
            _move(program, step)
        case Finish() if isinstance(op := program.operators[step.op], AveragePool2d):
            stretches.finish(program, op, step)
        case _:
            raise ThimbleError(
                f"{step.op}: generated code adds up in whole bytes, the plan in nibbles"
            )


def _move(program: Program, step: Move) -> None:
    source, target = program.buffer(step.src), program.buffer(step.dst)
    box = step.src.box(source.shape, {})
    if step.dst.box(target.shape, {}) != box:
        raise ThimbleError(f"a move of {source.tensor} writes other elements than it reads")
    taken, given = (first_nibbles(buffer, box) for buffer in (source, target))
    program.permute(taken, given, source.nibbles)
