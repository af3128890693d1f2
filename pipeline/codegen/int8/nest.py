"""Loops over elements that several views walk together, merged where they lie side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.codegen.int8.expressions import product, total
from pipeline.codegen.int8.values import Value
from pipeline.codegen.int8.views import View

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
    """
    Attributes:
        begins: of each view what the looked-up axes add to an offset, "" for none.
        torn: of each view whether that is all of it.
    """

    axes: tuple[Axis, ...]
    begins: tuple[str, ...]
    torn: tuple[bool, ...]

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

    def without(self, inner: int) -> Nest:
        """The loops around the innermost ones."""
        return replace(self, axes=self.axes[: len(self.axes) - inner])

    @property
    def inside(self) -> str:
        """The indentation of the body."""
        return "    " * self.depth

    def at(self, view: int) -> str:
        """C expression of the current element's offset in a view, in bytes."""
        if self.torn[view]:
            return self.begins[view]
        steps = (product(axis.variable, axis.strides[view]) for axis in self.axes)
        return total(self.begins[view] or "0", *steps)


def nest(
    extents: Sequence[Value],
    strides: Sequence[Sequence[int]],
    views: Sequence[View] = (),
    merge: bool = True,
) -> tuple[Nest, dict[str, Value]]:
    """The loops, and how many steps each has, with other values that the offsets need.

    Args:
        extents: of each axis.
        strides: of each view, along each axis; 0 where a view stays.
        views: the first of them that have strides; missing axes are the first ones.
        merge: whether axes may share a loop.
    """
    kept = max(
        (len(extents) - len(v.strides) + v.lookup.axes for v in views if v.lookup), default=0
    )
    merged: list[tuple[Value, tuple[int, ...]]] = []
    numbers, last = dict[int, int](), 0  # of each axis' loop; the axis of the last one
    for axis, extent in enumerate(extents):
        steps = tuple(view[axis] for view in strides)
        if extent.known and extent.const == 1:
            continue
        if merge and merged and extent.known and last >= kept:
            outer, outer_steps = merged[-1]
            if outer_steps == tuple(step * extent.const for step in steps):
                merged[-1] = (outer * extent.const, steps)
                continue
        numbers[axis], last = len(merged), axis
        merged.append((extent, steps))
    axes = tuple(Axis(name, steps) for name, (_, steps) in zip(VARIABLES, merged, strict=False))
    loops = {axis: VARIABLES[number] for axis, number in numbers.items()}
    begins = [_begins(view, len(extents), loops) for view in views]
    torn = [view.torn for view in views]
    rest = len(strides) - len(views)
    found = Nest(axes, (*begins, *[""] * rest), (*torn, *[False] * rest))
    counts = {axis.count: extent for axis, (extent, _) in zip(axes, merged, strict=True)}
    firsts = {first_channel(v): v.box[-1].start for v in views if v.torn}
    return found, counts | {name: value for name, value in firsts.items() if not value.known}


def first_channel(view: View) -> str:
    """Of a view of torn pixels: its number, or the name of the value that has it."""
    first = view.box[-1].start
    return str(first) if first.known else f"{view.name}_channel"


def _begins(view: View, axes: int, loops: Mapping[int, str]) -> str:
    if view.lookup is None:
        return ""
    missing, indices = axes - len(view.strides), list[str]()
    for axis, part in enumerate(view.box):
        stays = part.extent.known and part.extent.const == 1
        indices.append("0" if stays else loops.get(axis + missing, "0"))
    starts = ["0"] * len(indices)
    if view.torn:  # its elements are counted from the pixel's first one
        indices[-1] = total(first_channel(view), indices[-1])
        return view.at(indices, starts)
    return view.entry(indices, starts)
