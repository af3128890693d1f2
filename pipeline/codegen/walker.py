"""A plan's steps as the statements of nn_invoke.

A loop stays one where kernels take addresses that count with it; else it is unrolled.
"""

from collections.abc import Iterable
from copy import copy
from dataclasses import replace

from pipeline.codegen import kernel_sets, streamed
from pipeline.codegen.bound import bound
from pipeline.codegen.c import values
from pipeline.codegen.checks import arena_memory
from pipeline.codegen.program import ARENA, Program
from pipeline.codegen.statements import Argument, Call
from pipeline.errors import ThimbleError
from pipeline.kernels.own_image import own_image
from pipeline.plan.steps import touched, written
from pipeline.plan.unrolled import repeated
from pipeline.plan.vocabulary import Clear, Compute, Finish, Loop, Move, Signal, Step, Wait

MOST_STATEMENTS = 20_000

ANY_PART = ("int4.", "int8.")
"""Beginnings of the names of kernels that make any part of an image; all others make a tile as an
image of its own, which their forms take it for."""

Working = Compute | Clear | Finish | Move


def emit(program: Program, steps: Iterable[Step]) -> None:
    for step in steps:
        match step:
            case Loop() if _counts(program, step):
                rests = any(streamed.waits(inner, program) for inner, _ in repeated(step.body))
                with program.loop(step.var, step.count, rests):
                    emit(program, step.body)
            case Loop(var=var, count=count, body=body):
                for n in range(count):
                    emit(program, (bound(inner, {var: n}) for inner in body))
            case Signal() | Wait():
                _in_step(program, step)
            case _:
                with program.unless_there(step):
                    _unless_empty(program, step)
                if program.stepped and not streamed.waits(step, program):
                    program.line(Call("nn_stepped", (Argument(ARENA),)))
        if len(program.lines) > MOST_STATEMENTS:
            raise ThimbleError("the plan has too many steps to generate code for")


def _in_step(program: Program, step: Signal | Wait) -> None:
    """Keep in step with another track; one alone runs in order."""
    if not program.counters:
        return
    counter = program.counters[step.counter]
    if isinstance(step, Signal):
        program.line(f"nn_signal({counter});")
    else:
        least = values.of(step.at_least, program.loops)
        program.line(f"if (!nn_await({counter}, {least})) {{")
        program.line("    return nn_card.status;")
        program.line("}")


def _counts(program: Program, step: Step) -> bool:
    """Check whether what runs the step can count with the loops around it."""
    if isinstance(step, Loop):
        program.loops[step.var] = (step.var, step.count)  # in scope while its body is looked at
        counting = all(_counts(program, inner) for inner in step.body)
        del program.loops[step.var]
        return counting
    if isinstance(step, Signal | Wait):
        return True
    if streamed.waits(step, program):
        return streamed.counts(program, step)
    return kernel_sets.counts(program, step)


def _unless_empty(program: Program, step: Working) -> None:
    """A slice that may have nothing in it, at the ends of a loop, is asked about."""
    made = written(step)
    assert made is not None
    box = program.box(made)
    if any(part.extent.high < 1 for part in box):
        return
    unsure = [part for part in box if part.fewest < 1]
    if unsure:
        program.line(f"if ({' && '.join(f'{part.stop} > {part.start}' for part in unsure)}) {{")
    if streamed.waits(step, program):
        streamed.take(program, step)
    else:
        _check_memory(program, step)
        program, step = _as_image(program, step)
        rows = kernel_sets.row_by_row(program, step)
        if rows is None:
            kernel_sets.write(program, step)
        else:
            variable, row = rows
            with program.loop(variable, made.size[0]):
                _unless_empty(program, row)
    if unsure:
        program.line("}")


def _as_image(program: Program, step: Working) -> tuple[Program, Working]:
    """Return a step that makes a tile as one that makes an image of its own, in a program that
    knows that and adds to the same C."""
    plan = program.plan
    if not isinstance(step, Compute) or not step.kernel or step.kernel.startswith(ANY_PART):
        return program, step
    own = own_image(step, plan.buffer, program.graph)
    if own is None:
        return program, step
    found = copy(program)
    found.graph, found.operators = own.graph, {own.step.op: own.graph.operators[0]}
    track = replace(plan.tracks[0], steps=(own.step,))
    found.plan = replace(
        plan, buffers=tuple(own.buffers.values()), tracks=(track,), resident=(),
        outputs=(own.step.out.buffer,),
    )  # fmt: skip
    return found, own.step


def _check_memory(program: Program, step: Working) -> None:
    """Check that all but constants, and an input that is only read, lies in the arena."""
    arena = arena_memory(program.plan)
    for buffer in map(program.buffer, touched(step)):
        if buffer.role == "constant" and isinstance(step, Move):
            raise ThimbleError(f"generated code does not move constants such as {buffer.tensor}")
        outside = program.plan.memory[buffer.memory].kind == "frame" and isinstance(step, Compute)
        if buffer.role != "constant" and buffer.memory != arena and not outside:
            what = "a move" if isinstance(step, Move) else step.op
            raise ThimbleError(f"{what}: generated code computes from SRAM, not {buffer.name}")
