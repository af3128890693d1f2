"""Loops over elements that several views walk together, merged where they lie side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.codegen.c.expressions import product, total
from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View

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
        scattered: of each view whose pixels' elements may be anywhere the number of one, and its
            width.
        ordered: how many of the first loops are in the order of ``lines`` instead.
    """

    axes: tuple[Axis, ...]
    begins: tuple[str, ...]
    scattered: tuple[str, ...]
    ordered: int = 0

    @property
    def depth(self) -> int:
        return len(self.axes) - self.ordered + 2 * (self.ordered > 0)

    def opening(self, values: Mapping[str, str]) -> list[str]:
        """``values``: the texts of the counts."""
        found = self._lines(values["line_count"]) if self.ordered else []
        first = self.depth - len(self.axes[self.ordered :])
        return found + [
            f"{'    ' * depth}for (int32_t {axis.variable} = 0; "
            f"{axis.variable} < {values[axis.count]}; {axis.variable}++) {{"
            for depth, axis in enumerate(self.axes[self.ordered :], first)
        ]

    def _lines(self, count: str) -> list[str]:
        """Loops over lines and their pixels; a vector has no rows."""
        words = (("y", "down"), ("x", "right"))[-self.ordered :]
        pairs = list(zip(self.axes[: self.ordered], words, strict=True))
        read = "(int16_t)nn_flash16(&lines->"
        starts = ", ".join(f"{a.variable} = {read}{at})" for a, (at, _) in pairs)
        steps = ", ".join(f"{a.variable} += {read}{by})" for a, (_, by) in pairs)
        return [
            f"for (int32_t line = 0; line < {count}; line++, lines++) {{",
            f"    int32_t {starts};",
            f"    for (int32_t rest = {read}count); rest > 0; rest--, {steps}) {{",
        ]

    @property
    def pixel(self) -> str:
        """The variable of the innermost loop."""
        return self.axes[-1].variable

    @property
    def closing(self) -> list[str]:
        return ["    " * depth + "}" for depth in reversed(range(self.depth))]

    def without(self, inner: int) -> Nest:
        """Return the loops around the innermost ones."""
        return replace(self, axes=self.axes[: len(self.axes) - inner])

    @property
    def inside(self) -> str:
        """The indentation of the body."""
        return "    " * self.depth

    def at(self, view: int) -> str:
        """C expression of the current element's offset in a view, in bytes."""
        if self.scattered[view]:
            return f"nn_element({self.begins[view]}, {self.scattered[view]})"
        return self.begin(view)

    def begin(self, view: int) -> str:
        """Return the same of elements that strides lead to."""
        steps = (product(axis.variable, axis.strides[view]) for axis in self.axes)
        return total(self.begins[view] or "0", *steps)


def nest(
    extents: Sequence[Value], strides: Sequence[Sequence[int]], views: Sequence[View] = (),
    ordered: bool = False, pixels: bool = False,
) -> tuple[Nest, dict[str, Value]]:  # fmt: skip
    """Return the loops, and how many steps each has, with other values that the offsets need.

    Args:
        extents: of each axis.
        strides: of each view, along each axis; 0 where a view stays.
        views: the first of them that have strides; missing axes are the first ones.
        ordered: pixels are in the order of lines.
        pixels: the last axis has a loop of its own.
    """
    kept = max((len(extents) - len(v.strides) + _found(v) for v in views), default=0)
    forced = min(2, len(extents)) if ordered else 0
    kept = max(kept, forced)
    rings = [(0,) * (len(extents) - len(view.rings)) + view.rings for view in views]
    merged: list[tuple[Value, tuple[int, ...]]] = []
    numbers, last = dict[int, int](), 0  # of each axis' loop; the axis of the last one
    for axis, extent in enumerate(extents):
        steps = tuple(
            0 if n < len(views) and rings[n][axis] else view[axis] for n, view in enumerate(strides)
        )
        alone = pixels and axis == len(extents) - 1
        needed = axis < forced or alone
        if extent.known and extent.const == 1 and not needed:
            continue
        if merged and extent.known and last >= kept and not alone:
            outer, outer_steps = merged[-1]
            if outer_steps == tuple(step * extent.const for step in steps):
                merged[-1] = (outer * extent.const, steps)
                continue
        numbers[axis], last = len(merged), axis
        merged.append((extent, steps))
    axes = tuple(Axis(name, steps) for name, (_, steps) in zip(VARIABLES, merged, strict=False))
    loops = {axis: VARIABLES[number] for axis, number in numbers.items()}
    begins = [_begins(view, len(extents), loops) for view in views]
    inner = loops.get(len(extents) - 1, "0")
    scattered = [
        f"{total(start(v, len(v.box) - 1), inner)}, {v.bytes}" if v.scattered else "" for v in views
    ]
    rest = [""] * (len(strides) - len(views))
    found = Nest(axes, (*begins, *rest), (*scattered, *rest), forced)
    counts = {axis.count: extent for axis, (extent, _) in zip(axes, merged, strict=True)}
    firsts = {start(v, axis): v.box[axis].start for v in views for axis in _counted(v)}
    return found, counts | {name: value for name, value in firsts.items() if not value.known}


def start(view: View, axis: int) -> str:
    """Return a view's corner along an axis: the number, or the name of the value that has it."""
    first = view.box[axis].start
    return str(first) if first.known else f"{view.name}_from_{axis}"


def _found(view: View) -> int:
    """Count the first axes that have loops of their own: to be looked up, or to go round."""
    rings = (axis + 1 for axis, ring in enumerate(view.rings) if ring)
    return max(view.lookup.axes if view.lookup else 0, *rings, 0)


def _counted(view: View) -> list[int]:
    """Axes whose indices count from 0, not from the corner."""
    scattered = [len(view.box) - 1] if view.scattered else []
    return scattered + [axis for axis, ring in enumerate(view.rings) if ring]


def _begins(view: View, axes: int, loops: Mapping[int, str]) -> str:
    if not _found(view):
        return ""
    missing, counted = axes - len(view.strides), _counted(view)
    followed = [*range(view.lookup.axes if view.lookup else 0), *counted]
    indices = ["0"] * len(view.box)
    for axis in followed:
        extent = view.box[axis].extent
        stays = extent.known and extent.const == 1
        index = "0" if stays else loops.get(axis + missing, "0")
        indices[axis] = total(start(view, axis), index) if axis in counted else index
    found = view.entry if view.scattered else view.at
    return found(indices, ["0"] * len(indices))
