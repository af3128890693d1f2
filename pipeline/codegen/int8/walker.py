"""A plan's steps as the statements of nn_invoke: loops stay loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pipeline.codegen.binding import form_of, kernel_of
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators import copies, sums
from pipeline.codegen.int8.program import Program
from pipeline.codegen.int8.values import Span
from pipeline.errors import ThimbleError
from pipeline.plan.vocabulary import (
    Clear,
    Compute,
    Finish,
    Lin,
    Loop,
    Move,
    Signal,
    Slice,
    Step,
    Wait,
)

MOST_STATEMENTS = 20_000


def emit(program: Program, steps: Iterable[Step]) -> None:
    for step in steps:
        match step:
            case Loop(var=var, count=count, body=body):
                with program.loop(var, count):
                    emit(program, body)
            case Compute(out=out):
                _unless_empty(program, out, step)
            case Clear(acc=acc):
                _unless_empty(program, acc, step)
            case Finish(out=out):
                _unless_empty(program, out, step)
            case Move(dst=dst):
                _unless_empty(program, dst, step)
            case Signal() | Wait():
                pass  # one track runs in order
        if len(program.lines) > MOST_STATEMENTS:
            raise ThimbleError("the plan has too many steps to generate code for")


def _unless_empty(program: Program, written: Slice, step: Compute | Clear | Finish | Move) -> None:
    """A slice that may have nothing in it, at the ends of a loop, is asked about."""
    box = program.box(written)
    if any(part.extent.high < 1 for part in box):
        return
    unsure = [part for part in box if part.fewest < 1]
    if unsure:
        program.line(f"if ({' && '.join(_filled(part) for part in unsure)}) {{")
    _step(program, step)
    if unsure:
        program.line("}")


def _filled(part: Span) -> str:
    return f"{part.stop} > {part.start}"


def _step(program: Program, step: Compute | Clear | Finish | Move) -> None:
    match step:
        case Compute():
            compute(program, step)
        case Clear():
            sums.clear(program, step)
        case Finish():
            sums.finish(program, step)
        case Move():
            copies.move(program, step)


def compute(program: Program, step: Compute) -> None:
    op = program.operators[step.op]
    acc = program.buffer(step.out)
    if acc.step == 0:
        raise ThimbleError(f"{acc.name}: the step of its sums is not chosen; calibrate the plan")
    job = Job(program, op, step)
    kernel = kernel_of(job)
    if kernel.name not in program.writers:
        raise ThimbleError(
            f"{op.name}: no code for {kernel.name}; have {', '.join(sorted(program.writers))}"
        )
    if step.out.size[0] > 1 and kernel.each_row(form_of(job)):
        emit(program, (_row_by_row(program, step, kernel.name),))
    else:
        program.writers[kernel.name](job)


def _row_by_row(program: Program, step: Compute, kernel: str) -> Loop:
    """``step`` as a loop that makes one row of its output a round."""
    name, out = "line", step.out
    while name in program.loops:
        name += "_"
    first = out.lo[0] if isinstance(out.lo[0], Lin) else Lin(out.lo[0])
    row = Lin(first.const, (*first.coef, (name, 1)))
    part = replace(out, lo=(row, *out.lo[1:]), size=(1, *out.size[1:]))
    return Loop(name, out.size[0], (replace(step, out=part, kernel=kernel),))
