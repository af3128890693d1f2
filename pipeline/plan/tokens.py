"""What every memory cell holds while a plan is walked: a token instead of a value."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.vocabulary import Buffer, Plan, PlanError

COMPLETE = -1


class Tokens:
    """A token in every nibble: (tensor and form, element and part, contributions).

    ``form`` is a tensor's final elements or its accumulators, at one width: what was stored as
    16-bit sums cannot be read as 4-bit activations. Contributions are a mask id
    (``contributions.py``), or COMPLETE for final elements.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        top = {memory.name: 0 for memory in plan.memories}
        for buffer in plan.buffers:
            if buffer.memory not in top:
                raise PlanError(f"buffer {buffer.name} is in an unknown memory {buffer.memory}")
            addresses = buffer.addresses(buffer.box)
            limit = 2 * plan.memory[buffer.memory].bytes
            low, high = int(addresses.min()), int(addresses.max()) + buffer.nibbles
            if low < 0 or high > limit:
                raise PlanError(
                    f"buffer {buffer.name} reaches nibbles {low}…{high - 1} of {buffer.memory}, "
                    f"which has {limit}"
                )
            if buffer.bits >= 8 and (addresses % 2).any():
                raise PlanError(f"buffer {buffer.name} has {buffer.bits}-bit elements off a byte")
            top[buffer.memory] = max(top[buffer.memory], high)
        self.owner = {name: np.zeros(size, dtype=np.int32) for name, size in top.items()}
        self.content = {name: np.zeros(size, dtype=np.int64) for name, size in top.items()}
        self.sums = {name: np.full(size, COMPLETE, dtype=np.int32) for name, size in top.items()}
        self._forms: dict[tuple[str, str, int], int] = {}
        self._names: list[str] = ["garbage"]

    def form(self, buffer: Buffer) -> int:
        kind = "accumulator" if buffer.role == "accumulator" else "element"
        key = (buffer.tensor, kind, buffer.bits)
        if key not in self._forms:
            self._forms[key] = len(self._names)
            self._names.append(f"{buffer.bits}-bit {kind} of {buffer.tensor}")
        return self._forms[key]

    def write(
        self, buffer: Buffer, numbers: IntArray, cells: IntArray, sums: IntArray | int
    ) -> None:
        """Put elements ``numbers`` into ``cells`` (elements, nibbles)."""
        parts = numbers.reshape(-1, 1) * buffer.nibbles + np.arange(buffer.nibbles)
        self.owner[buffer.memory][cells] = self.form(buffer)
        self.content[buffer.memory][cells] = parts
        self.sums[buffer.memory][cells] = np.reshape(sums, (-1, 1)) if np.ndim(sums) else sums

    def destroy(self, buffer: Buffer) -> None:
        self.owner[buffer.memory][buffer.cells(buffer.box)] = 0

    def check(
        self, buffer: Buffer, numbers: IntArray, cells: IntArray, who: Callable[[], str]
    ) -> IntArray:
        """Every cell must hold exactly the expected part of its element.

        Returns the mask ids (elements,), COMPLETE for final elements.
        """
        parts = numbers.reshape(-1, 1) * buffer.nibbles + np.arange(buffer.nibbles)
        owner = self.owner[buffer.memory][cells]
        wrong = (owner != self.form(buffer)) | (self.content[buffer.memory][cells] != parts)
        if wrong.any():
            row, part = (int(n) for n in np.argwhere(wrong)[0])
            found = int(self.owner[buffer.memory][cells[row, part]])
            held = int(self.content[buffer.memory][cells[row, part]]) // buffer.nibbles
            what = self._names[found] + (f" number {held}" if found else "")
            raise PlanError(
                f"{who()} needs {self._names[self.form(buffer)]} "
                f"number {int(numbers.flat[row])} in "
                f"{buffer.memory} nibble {int(cells[row, part])} ({buffer.name}), finds {what}"
            )
        return np.asarray(self.sums[buffer.memory][cells[:, 0]])


def numbers(shape: tuple[int, ...], grid: list[IntArray]) -> IntArray:
    """Row-major element numbers of a grid of indices."""
    total = np.zeros((1,) * len(grid), dtype=np.int64)
    for axis, index in enumerate(grid):
        stride = prod(shape[axis + 1 :])
        total = total + (index * stride).reshape([-1 if d == axis else 1 for d in range(len(grid))])
    return total


def indices(box: Box) -> list[IntArray]:
    return [np.arange(start, stop) for start, stop in box]


def grid_cells(buffer: Buffer, grid: list[IntArray]) -> IntArray:
    """Nibble addresses of a grid of elements: shape (elements, nibbles)."""
    box = tuple((int(i.min()), int(i.max()) + 1) if len(i) else (0, 0) for i in grid)
    local = np.ix_(*(index - start for index, (start, _) in zip(grid, box, strict=True)))
    first = buffer.addresses(box)
    first = np.broadcast_to(first, [stop - start for start, stop in box])[local]
    return np.asarray(first.reshape(-1, 1) + np.arange(buffer.nibbles))
