"""Base of all kernels: what each of them declares."""

from abc import ABC, abstractmethod

from pipeline.kernels.form import Form
from pipeline.kernels.safe_offset import NEVER, SafeOffset
from pipeline.kernels.work import weight_bytes

LEAST_CACHE = 1024
"""Bytes of the smallest cache of instructions."""


class Kernel(ABC):
    """C for some forms of some operators.

    Attributes:
        code_bytes: that a call reads of the program's memory, about; 0: not known.
        asked: it buys speed with flash and scratch, which others may need more: no step has it that
            does not ask for it by name.
        skips: an activation of 0 takes less than others (``Form.zeros``).
        follows: its units are computed in the order that a step asks for; else row by row.
    """

    code_bytes: int = 0
    asked: bool = False
    skips: bool = False
    follows: bool = True

    @property
    @abstractmethod
    def name(self) -> str:
        """Return what a step of a plan calls it: its set's name, and its own in that."""

    @abstractmethod
    def why_not(self, form: Form) -> str:
        """Say why it does not compute ``form``, in words that fit behind the operator's name; ""
        where it does."""

    def accepts(self, form: Form) -> bool:
        return not self.why_not(form)

    def unit(self, form: Form) -> tuple[int, ...]:
        """Return the block of outputs whose inputs it reads before it writes any of them, see
        ``Compute``."""
        return natural_unit(form)

    def each_row(self, form: Form) -> bool:
        """Check whether it is called for each row of the step by itself."""
        return False

    def scratch_bytes(self, form: Form) -> int:
        """Return the bytes of the arena that it needs besides, at a word; it destroys them."""
        return 0

    def looks_up(self, form: Form) -> bool:
        """Check whether it finds blocked rows' elements by a table in flash, of bytes for each."""
        return False

    def takes_place(self, form: Form) -> bool:
        """Check whether it computes ``form``, which is ``in_place``, so, apart from element-wise
        operators."""
        return False

    @abstractmethod
    def cycles(self, form: Form) -> float:
        """Modelled, of one step."""

    def table_bytes(self, form: Form) -> float:
        """Return the bytes of the program's memory for weights that the step needs, and for what
        ends its sums, as they lie there."""
        return weight_bytes(form)

    def table_passes(self, form: Form, cached_bytes: int = 0) -> float:
        """Return how often it reads all of them there; ``cached_bytes``: of what it read last."""
        return 1

    def loop_bytes(self, form: Form) -> int:
        """Return the bytes of code that it reads anew from one pass of its loop to the next, all
        passes together, where a cache holds no more than a round of the innermost one."""
        return 0

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        """Return where the output may begin above ``tensor``, which dies, or a row of it; None:
        they lie apart. Pixels in order are not so in memory where they lie in blocks."""
        alike = form.parts[tensor].pixels == form.out.pixels
        able = alike and tensor in form.op.overwritable(form.graph.tensors)
        if not able:
            return None
        return SafeOffset(-NEVER, at=(0,)) if form.out.pixels else SafeOffset(0)


def natural_unit(form: Form) -> tuple[int, ...]:
    """Return one element of an element-wise operator, all of one that reads all for any element and
    adds nothing up, such as a reshape; otherwise a pixel."""
    extents, op = form.out.extents, form.op
    if op.element_wise:
        return ()
    if op.combine != "whole" and len(extents) == 1:
        return (1,)
    if op.combine == "whole" and op.reads_all(form.graph.tensors):
        return extents
    return (*[1] * (len(extents) - 1), extents[-1])
