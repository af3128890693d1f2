"""Buffers, and (``maps``) the nibbles of a memory in which their elements lie.

Addresses and strides count **nibbles** (4 bits), so that 4-bit elements are first class: byte ``n``
of a memory is nibbles ``2n`` (low) and ``2n + 1`` (high). An element of ``bits`` bits occupies
``bits / 4`` consecutive nibbles, least significant first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Literal

import numpy as np

from pipeline.errors import PlanError
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.maps import Affine, Map
from pipeline.typed import misfit

Role = Literal["activation", "accumulator", "constant", "scratch", "aside", "ahead"]

AHEAD: Final = "ahead"
PASSING = ("scratch", "aside", AHEAD)
"""Roles of what holds no tensor, and nothing from one step to the next."""

MOST_COPIES = 1 << 16
"""Most copies of a buffer, and most frames of a plan."""


@dataclass(frozen=True)
class Buffer:
    """The place of (a window of) a tensor. It has no lifetime: the verifier derives it.

    Attributes:
        tensor: what it holds; a scratch buffer names no tensor (``""``).
        shape: the tensor's shape: indices are the tensor's own, whatever the map wraps.
        bits: of an element here; accumulators are wider than their tensor.
        role: ``accumulator`` holds incomplete sums of ``tensor``; ``scratch`` holds what a kernel
            needs while it runs, ``aside`` what it keeps of an output that lies over an input;
            ``constant`` is never written; ``ahead`` is for no step (``pipeline/plan/ahead.py``).
        copies: how many such places there are, ``copy_stride`` nibbles apart: the buffers of a
            pool, or one for each frame in flight. A slice says in which it lies.
        step: what one unit of an accumulator stands for. 1: sums are exact. Larger: what a
            ``Compute`` adds is summed exactly, divided by ``step``, rounded half away from zero and
            added with saturation; ``Finish`` takes ``step`` times what is held. 0: not chosen yet
            (``calibrate``). See docs/decisions/0010.
    """

    name: str
    tensor: str
    memory: str
    shape: tuple[int, ...]
    bits: int
    map: Map
    role: Role = "activation"
    step: int = 1
    copies: int = 1
    copy_stride: int = 0
    checks_itself: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if problem := misfit(self):
            raise PlanError(f"damaged plan: {problem}")
        if (self.role in PASSING) == bool(self.tensor):
            raise PlanError(f"buffer {self.name} of role {self.role} is of tensor {self.tensor!r}")
        if self.copies < 1 or (self.copies > 1 and self.role in ("constant", *PASSING)):
            raise PlanError(f"buffer {self.name} of role {self.role} has {self.copies} copies")
        if (self.copies > 1 and not self.copy_stride) or self.copies > MOST_COPIES:
            raise PlanError(f"the {self.copies} copies of buffer {self.name} are no places apart")
        if self.bits not in (4, 8, 16, 32):
            raise PlanError(f"buffer {self.name} has elements of {self.bits} bits")
        if not self.shape or min(self.shape) < 1:
            raise PlanError(f"buffer {self.name} is empty")
        if self.step < 0 or (self.step != 1 and self.role != "accumulator"):
            raise PlanError(f"buffer {self.name} of role {self.role} has steps of {self.step}")
        if not self.map.fits(self.shape):
            raise PlanError(f"the map of buffer {self.name} is not of its shape")

    @property
    def nibbles(self) -> int:
        """Nibbles of one element."""
        return max(1, self.bits // 4)

    @property
    def box(self) -> Box:
        return tuple((0, extent) for extent in self.shape)

    @property
    def held(self) -> Box:
        """The indices that have a place."""
        return (isinstance(self.map, Affine) and self.map.held) or self.box

    @property
    def wrap(self) -> tuple[int, ...]:
        """The modulus of each axis, 0 for none."""
        return self.map.rings if isinstance(self.map, Affine) else (0,) * len(self.shape)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The lowest nibble of any element, and one past the highest, in any copy."""
        low, high = self.map.extent(self.shape, self.nibbles)
        reach = self.copy_stride * (self.copies - 1)
        return low + min(0, reach), high + max(0, reach)

    @cached_property
    def scattered_pixels(self) -> float:
        """The share of its pixels that do not lie in one piece."""
        cells = self.addresses(self.box).reshape(-1, self.shape[-1])
        return float((np.diff(cells, axis=1) != self.nibbles).any(axis=1).mean())

    def meets(self, other: Buffer, granule: int = 1) -> bool:
        """Check whether both reach into, or lie around, a common granule of so many nibbles."""
        if self.memory != other.memory:
            return False
        (low, high), (start, stop) = self.extent, other.extent
        return low // granule <= (stop - 1) // granule and start // granule <= (high - 1) // granule

    @cached_property
    def starts_on_bytes(self) -> bool:
        """Every element starts on a byte."""
        if self.copies > 1 and self.copy_stride % 2:
            return False
        return self.map.starts_on_bytes(self.shape)

    def at(self, copy: int) -> Buffer:
        """Return the buffer's place number ``copy`` modulo their number, as a buffer of its own."""
        if self.copies == 1:
            return self
        number = copy % self.copies
        if number not in self._places:
            shift = number * self.copy_stride
            moved = self.map.moved(shift)
            self._places[number] = replace(self, map=moved, copies=1, copy_stride=0)
        return self._places[number]

    @cached_property
    def _places(self) -> dict[int, Buffer]:
        return {}

    def run(self, box: Box) -> int | None:
        """The first nibble of ``box`` if its elements lie row-major side by side, else None."""
        return self.map.run(box, self.nibbles)

    def addresses(self, box: Box) -> IntArray:
        """Nibble address of the first nibble of each element; shape: the extents of ``box``."""
        grid = [np.arange(start, stop) for start, stop in box]
        return self.map.addresses(grid, self.shape)

    def cells(self, box: Box) -> IntArray:
        """Return every nibble address of the elements of ``box``: shape (elements, nibbles)."""
        return self.addresses(box).reshape(-1, 1) + np.arange(self.nibbles)
