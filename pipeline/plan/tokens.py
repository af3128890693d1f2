"""Tokens that memory cells hold, instead of values, while a plan is walked."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.graph.tensor import IntArray
from pipeline.plan.elements import Elements
from pipeline.plan.known import Known
from pipeline.plan.vocabulary import Buffer, Plan, PlanError
from pipeline.plan.zones import Zones

COMPLETE = -1
PARTS = 1 << 34

MOST_CELLS = 1 << 28
"""Most cells of a memory: their tokens take up to 4 GB, the rest is left to other programs."""


class Form(NamedTuple):
    """All that decides what an element's bits mean: final elements, or sums."""

    tensor: str
    kind: Literal["element", "accumulator"]
    bits: int
    step: int


def form(buffer: Buffer) -> Form:
    kind: Literal["element", "accumulator"] = (
        "accumulator" if buffer.role == "accumulator" else "element"
    )
    return Form(buffer.tensor, kind, buffer.bits, buffer.step)


class Tokens:
    """A token in every cell: (tensor and form, element and part, contributions).

    What is stored as 16-bit sums cannot be read as 4-bit activations, nor as sums of another step
    (``form``), nor for another frame. Constants are of frame 0. What of an element lies in a cell
    has a number, below ``PARTS``, in the lower bits of the token; form and frame are above.
    Contributions are a mask id (``contributions.py``), or COMPLETE for final elements. A cell is a
    byte where all buffers of the memory consist of bytes, else a nibble.

    Buffers named in ``kept`` hold what they hold for ever, so they have no tokens. What is known
    to be whole has them once somebody looks.
    """

    def __init__(self, plan: Plan, zones: Zones, kept: Set[str]) -> None:
        self.plan = plan
        self.kept = kept
        top = {memory.name: 0 for memory in plan.memories}
        self.grain = dict.fromkeys(top, 2)
        sums = set()
        for buffer in plan.buffers:
            if buffer.name in kept:
                continue
            top[buffer.memory] = max(top[buffer.memory], buffer.extent[1])
            if buffer.bits < 8:
                self.grain[buffer.memory] = 1
            if buffer.role == "accumulator":
                sums.add(buffer.memory)
        cells = {name: -(-nibbles // self.grain[name]) for name, nibbles in top.items()}
        for name, size in cells.items():
            if size > MOST_CELLS:
                raise PlanError(f"{name} would be watched up to byte {top[name] // 2}: too far")
        self.held = {name: np.zeros(n, dtype=np.int64) for name, n in cells.items()}
        self.sums = {name: np.full(cells[name], COMPLETE, dtype=np.int32) for name in sums}
        self.known = Known(zones, lambda elements: self._put(elements, COMPLETE))
        self._forms: dict[tuple[Form, int], int] = {}
        self._names: list[str] = ["garbage"]

    def form(self, elements: Elements) -> int:
        stored = form(elements.buffer)
        key = (stored, elements.frame)
        if key not in self._forms:
            self._forms[key] = len(self._names)
            step = f" in steps of {stored.step}" if stored.step > 1 else ""
            frame = f" of frame {elements.frame}" if self.plan.frames > 1 else ""
            self._names.append(f"{stored.bits}-bit {stored.kind} of {stored.tensor}{step}{frame}")
        return self._forms[key]

    def empty(self, elements: Elements) -> bool:
        """Check that no cell holds a token."""
        self.known.settle(elements)
        memory = elements.buffer.memory
        return not elements.take(self.held[memory], self.grain[memory]).any()

    def write(self, elements: Elements, sums: IntArray | int) -> bool:
        """Put the elements into their cells; ``sums`` has their shape.

        Returns False when two of them share a cell.
        """
        if isinstance(sums, int) and sums == COMPLETE and self.known.put(elements):
            return True
        self.known.forget(elements)
        self._put(elements, sums)
        if elements.apart:
            return True
        return not self._wrong(elements).any()

    def add(self, elements: Elements, sums: IntArray) -> None:
        """Note what has been added to accumulators that are there."""
        elements.put(self.sums[elements.buffer.memory], self._grain(elements), sums[..., None])

    def _put(self, elements: Elements, sums: IntArray | int) -> None:
        memory, grain = elements.buffer.memory, self._grain(elements)
        elements.put(self.held[memory], grain, self._wanted(elements))
        if memory in self.sums:
            elements.put(self.sums[memory], grain, np.reshape(sums, (*np.shape(sums), 1)))

    def _grain(self, elements: Elements) -> int:
        return self.grain[elements.buffer.memory]

    def destroy(self, elements: Elements) -> None:
        self.known.forget(elements)
        elements.put(self.held[elements.buffer.memory], self._grain(elements), 0)

    def check(self, elements: Elements, who: Callable[[], str]) -> IntArray | int:
        """Every cell must hold exactly the expected part of its element.

        Returns the mask ids (the elements's shape) of accumulators, COMPLETE for final elements.
        """
        buffer = elements.buffer
        if buffer.name in self.kept or self.known.holds(elements):
            return COMPLETE
        self.known.settle(elements)
        memory, grain = buffer.memory, self._grain(elements)
        wrong = self._wrong(elements)
        if wrong.any():
            place = tuple(int(n) for n in np.argwhere(wrong)[0])
            found, held = divmod(int(elements.take(self.held[memory], grain)[place]), PARTS)
            what = self._names[found]
            if found:
                what += f" number {held // self._per_element(buffer)}"
            raise PlanError(
                f"{who()} needs {self._names[self.form(elements)]} "
                f"number {int(elements.numbers[place[:-1]])} in "
                f"{memory} nibble {int(elements.addresses[place[:-1]]) + grain * place[-1]} "
                f"({buffer.name}), finds {what}"
            )
        if buffer.role != "accumulator":
            return COMPLETE
        return np.asarray(elements.take(self.sums[memory], grain)[..., 0], dtype=np.int64)

    def _per_element(self, buffer: Buffer) -> int:
        return max(1, buffer.nibbles // self.grain[buffer.memory])

    def _wanted(self, elements: Elements) -> IntArray:
        """Return the token that belongs into each cell: (*shape, cells of an element)."""
        return elements.numbered(self._per_element(elements.buffer), PARTS * self.form(elements))

    def _wrong(self, elements: Elements) -> npt.NDArray[np.bool_]:
        found = elements.take(self.held[elements.buffer.memory], self._grain(elements))
        return np.asarray(found != self._wanted(elements))
