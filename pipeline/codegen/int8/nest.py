"""Loops over elements that several views walk together, merged where they lie side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.codegen.int8.values import Value

VARIABLES = "ijklmn"


@dataclass(frozen=True)
class Axis:
    """One C loop; view v goes ``strides[v]`` bytes further with each step."""

    variable: str
    strides: tuple[int, ...]

    @property
    def count(self) -> str:
        """The name of the value that says how many steps."""
        return f"{self.variable}_count"


@dataclass(frozen=True)
class Nest:
    axes: tuple[Axis, ...]

    @property
    def depth(self) -> int:
        return len(self.axes)

    def opening(self, values: Mapping[str, str]) -> list[str]:
        """``values``: the texts of the counts."""
        return [
            f"{'    ' * depth}for (int32_t {axis.variable} = 0; "
            f"{axis.variable} < {values[axis.count]}; {axis.variable}++) {{"
            for depth, axis in enumerate(self.axes)
        ]

    @property
    def closing(self) -> list[str]:
        return ["    " * depth + "}" for depth in reversed(range(self.depth))]

    @property
    def inside(self) -> str:
        """The indentation of the body."""
        return "    " * self.depth

    def at(self, view: int) -> str:
        """C expression of the current element's offset in a view, in bytes."""
        return total(*(product(axis.variable, axis.strides[view]) for axis in self.axes))


def nest(
    extents: Sequence[Value], strides: Sequence[Sequence[int]]
) -> tuple[Nest, dict[str, Value]]:
    """The loops, and how many steps each has.

    Args:
        extents: of each axis.
        strides: of each view, along each axis; 0 where a view stays.
    """
    merged: list[tuple[Value, tuple[int, ...]]] = []
    for axis, extent in enumerate(extents):
        steps = tuple(view[axis] for view in strides)
        if extent.known and extent.const == 1:
            continue
        if merged and extent.known:
            outer, outer_steps = merged[-1]
            if outer_steps == tuple(step * extent.const for step in steps):
                merged[-1] = (outer * extent.const, steps)
                continue
        merged.append((extent, steps))
    axes = tuple(Axis(name, steps) for name, (_, steps) in zip(VARIABLES, merged, strict=False))
    return Nest(axes), {axis.count: extent for axis, (extent, _) in zip(axes, merged, strict=True)}


def product(text: str, factor: int) -> str:
    """``text * factor`` as a person writes it."""
    if factor == 0 or text == "0":
        return "0"
    if text.isdecimal():
        return str(int(text) * factor)
    inside = f"({text})" if " + " in text or " - " in text else text
    return text if factor == 1 else f"{inside} * {factor}"


def times(*factors: str) -> str:
    """A product of expressions."""
    return " * ".join(f"({text})" if " " in text else text for text in factors)


def offset(index: str, start: str, ring: int, stride: int) -> str:
    """Bytes from a view's corner to ``index`` along one axis."""
    if ring:
        return product(f"({index}) % {ring}", stride)
    return product(minus(index, start), stride)


def minus(text: str, other: str) -> str:
    if other == "0":
        return text
    inside = f"({other})" if " " in other else other
    return f"{text} + {other[1:]}" if other.startswith("-") else f"{text} - {inside}"


def total(*parts: str) -> str:
    """A sum without its zeros."""
    return " + ".join(part for part in parts if part != "0") or "0"


def centred(text: str, zero_point: int) -> str:
    """``text`` less the zero point, as a factor."""
    return f"({minus(text, str(zero_point))})" if zero_point else text
