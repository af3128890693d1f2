"""Flash and scratch for speed: which operators run by kernels that have to be asked for.

Each such kernel saves cycles, by the model, waits included, and takes flash and scratch. Kernels
are chosen by what they save for a byte of flash, most first, as long as the estimated program fits
the board; what has no room for its scratch is given up, the largest scratch first.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.kernels import Form, cycles_of_step, offers, quicker
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import Laid

FRAME_BYTES = 3500
"""Bytes of flash that start-up, protocol and the program's steps take at most, roughly."""

WEIGHTED_BYTES, OTHER_BYTES = 1300, 700
"""About what the code of an operator takes at most, by whether it has weights."""


class Option(NamedTuple):
    """A kernel for an operator, by its output; ``saved`` cycles and ``flash`` bytes more, both
    beside the kernel that it would have unasked."""

    output: str
    kernel: str
    saved: float
    flash: float
    scratch: int


def quickest(
    graph: Graph,
    hardware: Hardware,
    operators: Sequence[Operator],
    laid: Callable[[Draft], Laid],
    cells: int,
    usual: Laid,
) -> Laid:
    """Return the regions of ``laid`` in ``cells`` nibbles, with the kernels to ask for.

    Args:
        laid: given a draft, with kernels that are ``asked`` for.
        usual: where none are.
    """
    options, taken = options_of(graph, hardware, operators)
    able, left = [o for o in options if 2 * o.scratch <= cells], hardware.flash_bytes - taken
    while usual.cells <= cells and (chosen := chosen_of(able, left)):
        asked = {each.output: each.kernel for each in chosen}
        again = laid(Draft(graph, hardware, asked=asked))
        if again.cells <= cells:
            return again
        largest = max(chosen, key=lambda each: each.scratch)
        able = [o for o in able if o.output != largest.output or o.scratch < largest.scratch]
    return usual


def chosen_of(options: Iterable[Option], flash: float) -> list[Option]:
    """Return one for each operator at most, which together take ``flash`` bytes at most."""
    chosen, options = dict[str, Option](), list(options)

    def more(each: Option) -> tuple[float, float]:
        """Cycles saved and flash taken beside what is chosen."""
        known = chosen.get(each.output, Option("", "", 0.0, 0.0, 0))
        return each.saved - known.saved, each.flash - known.flash

    while True:
        better = [(*more(each), each) for each in options]
        fitting = [(s, b, each) for s, b, each in better if s > 0 and b <= flash]
        if not fitting:
            return list(chosen.values())
        _, taken, best = max(fitting, key=lambda each: each[0] / max(each[1], 1.0))
        chosen[best.output], flash = best, flash - taken


def options_of(
    graph: Graph, hardware: Hardware, operators: Iterable[Operator]
) -> tuple[list[Option], float]:
    """Return them, and the bytes of flash that the program takes without, rather too many."""
    found, total, in_flash = list[Option](), float(FRAME_BYTES), hardware.weights_in == "flash"
    for op in operators:
        form = Form.whole(op, graph)
        total += WEIGHTED_BYTES if op.weighted else OTHER_BYTES
        usual = next(iter(offers(form, hardware)), None)
        if usual is None:
            continue
        takes, bytes_ = cycles_of_step(usual, form, hardware), usual.table_bytes(form)
        total += bytes_ * in_flash
        for kernel in quicker(form, hardware):
            tables = kernel.table_bytes(form) - bytes_
            if not in_flash and tables > bytes_:
                continue  # they would lie where the others do
            saved = takes - cycles_of_step(kernel, form, hardware)
            flash = tables + max(0, kernel.code_bytes - WEIGHTED_BYTES)
            found.append(Option(op.output, kernel.name, saved, flash, kernel.scratch_bytes(form)))
    return found, total
