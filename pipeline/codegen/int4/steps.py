"""The steps that kernels over pixels are written for."""

from __future__ import annotations

from pipeline.codegen.int4.operators import move, window
from pipeline.codegen.int4.window import add_step
from pipeline.codegen.program import Program
from pipeline.errors import ThimbleError
from pipeline.plan.vocabulary import Clear, Compute, Finish, Move


def write(program: Program, step: Compute | Clear | Finish | Move) -> None:
    """Adds the statement of a step; no loop is around it."""
    match step:
        case Compute():
            add_step(program, window(program.graph, program.operators[step.op]), step)
        case Move():
            move.emit(program, step)
        case _:
            raise ThimbleError(
                f"{step.op}: generated code adds up in whole bytes, the plan in nibbles"
            )
