"""Choice of the set of kernels that writes a step. The one place that knows all of them.

``int4`` finds pixels anywhere, down to nibbles, through lines and tables; ``int8`` walks bytes and
counts with the plan's loops, and so do the kernels of a core's own (``cortex_m``, ``avr``). What
computes is the kernel that the plan names, or the fastest there is (``binding``).
"""

import pkgutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module

from pipeline.codegen import avr, int4, thumb
from pipeline.codegen.binding import kernel_of
from pipeline.codegen.cortex_m import by_row, operators
from pipeline.codegen.int4 import stretches
from pipeline.codegen.int8 import operators as portable
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators import copies, sums
from pipeline.codegen.program import Program
from pipeline.errors import ThimbleError
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.plan.steps import touched
from pipeline.plan.vocabulary import Blocks, Clear, Compute, Finish, Lin, Move

CORTEX_M = "cortex_m."
AVR = "avr."
BY_ROW = f"{CORTEX_M}row_"
"""Prefix of kernels whose rows are pointers that are known; as those of rows in blocks are."""

Working = Compute | Clear | Finish | Move

INT4 = "int4."
"""Prefix of kernels that find pixels through lines."""


def counts(program: Program, step: Working) -> bool:
    """Check whether what runs the step can count with the loops around it."""
    kernel = _kernel(program, step)
    blocks = any(isinstance(program.buffer(piece).map, Blocks) for piece in touched(step))
    if kernel.startswith(CORTEX_M) and blocks:
        return False
    if kernel.startswith(AVR):  # where the output overlaps, it is known for which rows it may
        assert isinstance(step, Compute)
        return Job(program, program.operators[step.op], step).apart
    if kernel == "int8.rearrange":
        assert isinstance(step, Compute)
        return copies.by_strides(Job(program, program.operators[step.op], step))
    return not kernel.startswith((INT4, BY_ROW, "int8.transpose_conv"))


def write(program: Program, step: Working) -> None:
    """
    Raises:
        ThimbleError: when the kernel that the step names cannot run it, or none can.
    """
    kernel = _kernel(program, step)
    match step:
        case Compute():
            if kernel not in writers():
                known = ", ".join(sorted(writers()))
                raise ThimbleError(f"{step.op}: no code for {kernel}; have {known}")
            writers()[kernel](Job(program, program.operators[step.op], step))
        case Move() if kernel.startswith(INT4):
            copies.permute(program, step)
        case Move():
            copies.move(program, step)
        case Finish() if not kernel.startswith(INT4):
            sums.finish(program, step)
        case Finish() if isinstance(op := program.operators[step.op], AveragePool2d):
            stretches.finish(program, op, step)
        case Clear() if not kernel.startswith(INT4):
            sums.clear(program, step)
        case _:
            raise ThimbleError(
                f"{step.op}: generated code adds up in whole bytes, the plan in nibbles"
            )


@cache
def writers() -> dict[str, Callable[[Job], None]]:
    """Collect the ``WRITERS`` of all modules of these packages, by the name of the kernel."""
    found = dict[str, Callable[[Job], None]]()
    for package in (portable, int4, avr, thumb, operators, by_row):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            found |= getattr(import_module(module.name), "WRITERS", {})
    return found


def row_by_row(program: Program, step: Working) -> tuple[str, Compute] | None:
    """Return a loop's variable, and ``step`` for one row of its output a round, where its kernel
    has it so."""
    if not isinstance(step, Compute) or step.out.size[0] < 2:
        return None
    job = Job(program, program.operators[step.op], step)
    kernel = kernel_of(job)
    if not kernel.each_row(job.form):
        return None
    name, out = "line", step.out
    while name in program.loops:
        name += "_"
    row = out.lo[0] + Lin(0, ((name, 1),))
    part = replace(out, lo=(row, *out.lo[1:]), size=(1, *out.size[1:]))
    return name, replace(step, out=part, kernel=kernel.name)


def _kernel(program: Program, step: Working) -> str:
    if isinstance(step, Compute):
        return kernel_of(Job(program, program.operators[step.op], step)).name
    nibbles = any(program.buffer(piece).bits < 8 for piece in touched(step))
    avr = program.hardware.core == "avr" and isinstance(step, Move)
    return f"{INT4}move" if nibbles or avr else "int8.copy"
