"""The steps that kernels over bytes are written for, and who writes each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from pipeline.codegen.avr import windows as avr
from pipeline.codegen.cortex_m import operators as cortex_m
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators import copies, sums, writers
from pipeline.codegen.program import Program
from pipeline.codegen.thumb import windows as thumb
from pipeline.errors import ThimbleError
from pipeline.plan.vocabulary import Clear, Compute, Finish, Move


def write(program: Program, step: Compute | Clear | Finish | Move, kernel: str) -> None:
    """Adds the statements of a step; ``kernel`` runs it, if it computes."""
    match step:
        case Compute():
            job = Job(program, program.operators[step.op], step)
            if kernel not in _writers():
                known = ", ".join(sorted(_writers()))
                raise ThimbleError(f"{step.op}: no code for {kernel}; have {known}")
            _writers()[kernel](job)
        case Clear():
            sums.clear(program, step)
        case Finish():
            sums.finish(program, step)
        case Move():
            copies.move(program, step)


@cache
def _writers() -> dict[str, Callable[[Job], None]]:
    return {**writers(), **avr.WRITERS, **cortex_m.WRITERS, **thumb.WRITERS}
