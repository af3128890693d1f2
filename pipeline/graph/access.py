"""Declarations of which elements each output element is made of, without saying how.

An output element is a sum (or a maximum) over *terms*; a term is a sum over *atoms*; an atom is the
product of one element of each of the term's operands. A convolution has one term with two operands
(input and weights) and ``kh * kw * c_in`` atoms; an addition has two terms of one atom. Verifier,
cost model and strategies work on this alone, so a new operator needs no change in them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.graph.tensor import Box


@dataclass(frozen=True)
class Window:
    """The indices that one output index reads along one axis of an operand.

    Output index ``o`` along ``axis`` reads ``(o // divide) * stride + offset + t * dilation`` for
    ``t`` in ``range(count)``; indices outside the operand are padding and read nothing. With
    ``axis=None`` the window does not move: every output reads ``offset + t * dilation``.
    """

    axis: int | None
    count: int = 1
    stride: int = 1
    offset: int = 0
    dilation: int = 1
    divide: int = 1

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return the unclipped index range read by outputs ``start`` to ``stop`` (exclusive)."""
        first, last = (
            (0, 0) if self.axis is None else (start // self.divide, (stop - 1) // self.divide)
        )
        low = first * self.stride + self.offset
        return low, last * self.stride + self.offset + (self.count - 1) * self.dilation + 1


@dataclass(frozen=True)
class Operand:
    """A tensor read through one window for each of its axes.

    Atoms are numbered row-major over the windows' ``count``; all operands of a term have equally
    many, and atom ``a`` of the term multiplies atom ``a`` of each.
    """

    tensor: str
    windows: tuple[Window, ...]

    def region(self, out: Box) -> Box:
        """Return the unclipped box of elements that the output box ``out`` reads."""
        return tuple(
            window.span(*((0, 1) if window.axis is None else out[window.axis]))
            for window in self.windows
        )


@dataclass(frozen=True)
class Term:
    operands: tuple[Operand, ...]


def clipped(box: Box, shape: tuple[int, ...]) -> Box:
    """Return the part of ``box`` inside a tensor of ``shape``; empty ranges have start == stop."""
    ranges = (
        (max(start, 0), min(stop, size)) for (start, stop), size in zip(box, shape, strict=True)
    )
    return tuple((start, max(start, stop)) for start, stop in ranges)


def size_of(box: Box) -> int:
    size = 1
    for start, stop in box:
        size *= max(0, stop - start)
    return size
