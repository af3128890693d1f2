"""The steps that kernels over pixels are written for."""

from __future__ import annotations

from pipeline.codegen.int4.operators import crops, finish, move, sums, window
from pipeline.codegen.int4.window import add_step
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
                    sums.emit(program, op, step)
                case Rearrange():
                    crops.emit(program, op, step)
                case _:
                    add_step(program, window(program.graph, op), step)
        case Move():
            move.emit(program, step)
        case Finish() if isinstance(op := program.operators[step.op], AveragePool2d):
            finish.emit(program, op, step)
        case _:
            raise ThimbleError(
                f"{step.op}: generated code adds up in whole bytes, the plan in nibbles"
            )
