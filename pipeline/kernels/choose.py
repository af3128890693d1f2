"""Choice of a kernel: those that a board's core has, and the fastest of them for a form."""

from __future__ import annotations

from math import inf

from pipeline.errors import ThimbleError
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.placing import Concat, Rearrange
from pipeline.hardware import Hardware
from pipeline.kernels import avr, cortex_m, thumb
from pipeline.kernels.avr.window import AvrWindow
from pipeline.kernels.form import Form
from pipeline.kernels.int4 import Copy, Sum, Window
from pipeline.kernels.int8 import PRODUCT_CYCLES, LookedUpAdd, Portable, word
from pipeline.kernels.int8.costs import costs_of
from pipeline.kernels.kernel import Kernel
from pipeline.kernels.waits import cycles_of_step

RATES = {**cortex_m.RATES, **thumb.RATES, "avr": 5.0}
"""Cycles of portable C for one of a Cortex-M4, by core."""


def declares(hardware: Hardware) -> bool:
    """Return whether the kernels declare cycles for this core."""
    return (hardware.cpu or hardware.core) in RATES


def kernels(form: Form, hardware: Hardware) -> tuple[Kernel, ...]:
    """Return those that might compute ``form``."""
    core, cycles = hardware.cpu or hardware.core, hardware.cycles_per_mac
    if declares(hardware):
        cycles = PRODUCT_CYCLES * RATES[core]
    portable = Portable(word(form.op), cycles, costs_of(core, cortex_m.has_dsp(hardware)))
    read, held = form.op.inputs, form.op.parameters if form.op.weighted else ()
    wide = any(form.graph.tensors[name].dtype.bits > 8 for name in read)
    apart = form.op.slides and not held and getattr(form.op, "dilation", (1, 1)) != (1, 1)
    some = (form.graph.tensors[name].dtype for name in (*read, form.op.output, *held[:1]))
    of_nibbles = any(each.bits < 8 for each in some)  # others' arenas may be too large for these
    if wide or apart or any(form.graph.tensors[name].zero_point for name in held):
        return portable, *[Window(4 * cycles, core)] * of_nibbles
    own: tuple[Kernel, ...]
    if hardware.core == "avr":
        own = (*avr.KERNELS, LookedUpAdd()) if avr.has_assembly(hardware) else ()
        nibbles = _of_nibbles(form, cycles, core, hardware.weight_memory)
        narrow = any(form.graph.tensors[name].dtype.bits < 8 for name in form.op.parameters[:1])
        if narrow and nibbles.accepts(form):  # portable C would hold a byte for each weight
            return *own, nibbles
        return *own, nibbles, portable
    own = thumb.KERNELS if thumb.has_thumb(hardware) else ()
    if cortex_m.has_dsp(hardware):
        own = (*cortex_m.kernels(hardware.cpu), cortex_m.Ordered(hardware.cpu))
    return *own, portable, *[_of_nibbles(form, 4 * cycles, core)] * of_nibbles


def _of_nibbles(form: Form, work_cycles: float, core: str, weights_in: str = "") -> Kernel:
    """``weights_in``: of a core with assembly for windows, where those lie."""
    match form.op:
        case Add():
            return Sum(work_cycles)
        case Rearrange() | Concat():
            return Copy(work_cycles)
    if weights_in:
        return AvrWindow(work_cycles, core, weights_in)
    return Window(work_cycles, core)


def offers(form: Form, hardware: Hardware) -> tuple[Kernel, ...]:
    """Return all that compute ``form`` unasked, the fastest first; those that look up each element
    of rows in blocks last."""
    able = [each for each in kernels(form, hardware) if not each.asked and each.accepts(form)]

    def order(kernel: Kernel) -> tuple[bool, float]:
        return kernel.looks_up(form), cycles_of_step(kernel, form, hardware)

    return tuple(sorted(able, key=order))


def quicker(form: Form, hardware: Hardware) -> tuple[Kernel, ...]:
    """Return those that have to be asked for, and are faster than all others."""
    able = [each for each in kernels(form, hardware) if each.asked and each.accepts(form)]
    usual = (cycles_of_step(each, form, hardware) for each in offers(form, hardware))
    limit = min(usual, default=inf)
    return tuple(each for each in able if cycles_of_step(each, form, hardware) < limit)


def choose(form: Form, hardware: Hardware, scratch: bool = True) -> Kernel:
    """Return the fastest; without ``scratch``, of those that need none.

    Raises:
        ThimbleError: where there is none.
    """
    able = offers(form, hardware)
    for kernel in able:
        if scratch or not kernel.scratch_bytes(form):
            return kernel
    raise ThimbleError(f"{form.op.name}: {why_none(form, hardware)}")


def takes_place(form: Form, hardware: Hardware) -> bool:
    """Check whether a kernel for ``form``, which is ``in_place``, computes it so."""
    return any(kernel.takes_place(form) for kernel in offers(form, hardware))


def why_none(form: Form, hardware: Hardware) -> str:
    """Say why there is no kernel for ``form``: what the one says that computes most of its kind."""
    least = "int4" if any(part.bits < 8 for part in form.parts.values()) else "int8"
    *_, most = (k for k in kernels(form, hardware) if k.name.startswith(least))
    return most.why_not(form)


def named(name: str, form: Form, hardware: Hardware) -> Kernel:
    """Return the kernel that a plan calls ``name``.

    Raises:
        ThimbleError: where there is none of this name for the operator on this board.
    """
    for kernel in kernels(form, hardware):
        if kernel.name == name:
            return kernel
    raise ThimbleError(f"{form.op.name}: this board has no kernel {name} for it")


def scratch_bytes(form: Form, hardware: Hardware) -> int:
    """Return the scratch bytes of the fastest kernel; 0 where there is none."""
    return next((kernel.scratch_bytes(form) for kernel in offers(form, hardware)), 0)


def block_pixels(hardware: Hardware, columns: int) -> int:
    """Return the pixels of a block that suits the board's kernels; 0: they take no blocks."""
    return cortex_m.best_pixels(columns) if cortex_m.has_dsp(hardware) else 0
