"""State while a plan becomes C: names, constants, kernels, and the statements so far."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from pipeline.codegen.c import values
from pipeline.codegen.c.kernel import Kernel, Use, stride_name
from pipeline.codegen.c.order import Line as OrderLine
from pipeline.codegen.c.order import Lines
from pipeline.codegen.c.places import Places
from pipeline.codegen.c.values import Span, Value
from pipeline.codegen.c.views import FRAME, View
from pipeline.codegen.constants import Constants, Names, variable
from pipeline.codegen.int4.windows import Windows
from pipeline.codegen.permutations import Permutations
from pipeline.codegen.render import KERNELS, comment
from pipeline.codegen.statements import Call, Line
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import LPM_BYTES, Hardware
from pipeline.plan.repair import Repair
from pipeline.plan.vocabulary import Buffer, Plan, Slice, Step

ARENA = "nn_arena"

MOVES = "permutations"
"""Name in a report for the steps that only move data."""

HEADERS = {"avr": "nn_avr.h", "cortex_m": "nn_dsp.h", "thumb": "nn_thumb.h"}
"""Headers that the kernels of a core's own include."""


@dataclass(frozen=True)
class Take:
    """A piece of the input on its way into the arena, byte by byte or nibble by nibble.

    Attributes:
        cell: C expression of where its first one goes, in nibbles of the arena.
        step: nibbles from one to the next.
        count: C expression of how many there are.
        bits: of each where it lies.
        shift: to the right, before it goes there.
        adds: how many pixels side by side, of how many channels, are added to sums there; or ().
    """

    cell: Value
    step: int
    count: Value
    bits: int
    shift: int = 0
    adds: tuple[int, ...] = ()


@dataclass
class Program:
    """
    Attributes:
        kernels: C functions over views, by what they have in common.
        windows: C functions that find their pixels through lines and tables.
        lines: the body of ``nn_invoke``, said once all calls are known.
        steps: the operator that each call of ``nn_invoke`` is part of; None: it also has lines
            that are no such calls.
        loops: of the plan, around what is being written: C name and count by variable.
        headers: of ours that the program includes.
        takes: where it waits for a piece of the input: places of the arena, see ``streamed``.
        resting: C names of loop variables that outlive such a wait.
        counters: their numbers by name, where another track runs beside this one.
        repair: the places from which an inference goes on, for a card that is checked.
        stepped: ``nn_stepped`` is called after each step.
    """

    graph: Graph
    plan: Plan
    hardware: Hardware
    stepped: bool = False

    def __post_init__(self) -> None:
        self.operators = {op.name: op for op in self.graph.operators}
        self.names = Names()
        self.names.used |= _reserved()
        self.constants = Constants(
            self.names, self.hardware.core == "avr", self.hardware.flash_bytes > LPM_BYTES
        )
        self.kernels: dict[str, Kernel] = {}
        self.windows = Windows(self.graph, self.plan, self.hardware)
        self.permutations = self.windows.permutations
        self.lines: list[Callable[[], Line]] = []
        self.steps: list[str] | None = []
        self.loops: dict[str, tuple[str, int]] = {}
        self.headers: set[str] = set()
        self.takes: list[Take] = []
        self.resting: dict[str, str] = {}
        self.counters: dict[str, int] = {}
        self.repair = Repair(self.plan, self.graph)
        self.places = Places()
        self.orders = Lines()
        self._apart: dict[tuple[object, ...], bool] = {}

    @property
    def tables(self) -> tuple[Places, Lines, Permutations]:
        """Return the tables that steps over bytes share besides constants and kernels."""
        return self.places, self.orders, self.permutations

    def buffer(self, piece: Slice) -> Buffer:
        """Return the place that a slice lies in; where a loop chooses among several, the first,
        with all the others: ``shift`` says how far the chosen one lies behind it."""
        buffer = self.plan.buffer[piece.buffer]
        return buffer.at(piece.copy) if isinstance(piece.copy, int) else buffer

    def array(self, buffer: Buffer) -> str:
        """Name what ``buffer`` lies in: the arena, or the input outside of it."""
        return FRAME if self.plan.memory[buffer.memory].kind == "frame" else ARENA

    @property
    def input_buffers(self) -> list[Buffer]:
        """Those that hold the inputs before the first step, in the graph's order."""
        found = {self.plan.buffer[name].tensor: self.plan.buffer[name] for name in self.plan.inputs}
        if missing := [name for name in self.graph.inputs if name not in found]:
            raise ThimbleError(
                f"generated code takes {missing[0]} into one place, the plan has none"
            )
        return [found[name] for name in self.graph.inputs]

    @property
    def input_buffer(self) -> Buffer:
        """The one that holds the only input before the first step."""
        (only,) = self.input_buffers
        return only

    def shift(self, piece: Slice) -> Value:
        """Bytes from where its ``buffer`` begins."""
        if isinstance(piece.copy, int):
            return Value()
        buffer = self.plan.buffer[piece.buffer]
        number = values.of(piece.copy, self.loops) % buffer.copies
        return number * (buffer.copy_stride // 2)

    def box(self, piece: Slice) -> tuple[Span, ...]:
        shape = self.buffer(piece).shape
        parts = zip(piece.lo, piece.size, shape, strict=True)
        return tuple(values.span(lo, size, limit, self.loops) for lo, size, limit in parts)

    def line(self, content: str | Call | Callable[[], Call]) -> None:
        self.steps = None
        self._line(content)

    def run(self, owner: str, say: Callable[[], Call]) -> None:
        """A call of a function that stays one, for the operator ``owner``."""
        if self.steps is not None:
            self.steps.append(owner)
        self._line(say)

    def permute(self, source: IntArray, target: IntArray, nibbles: int, comment: str = "") -> None:
        """Elements of ``nibbles``, (…, channels), go from where they are to other places."""
        taken, given = (side.reshape(-1, side.shape[-1]) for side in (source, target))
        if call := self.permutations.call(taken, given, nibbles, comment):
            self.run(MOVES, lambda: call)

    def _line(self, content: str | Call | Callable[[], Call]) -> None:
        depth = len(self.loops)
        self.lines.append(lambda: Line(depth, content() if callable(content) else content))

    @contextmanager
    def loop(self, name: str, count: int, rests: bool = False) -> Iterator[str]:
        """Statements inside are in the body of a C loop.

        Args:
            rests: whether the program waits for input inside, and goes on from there.
        """
        taken = {other for other, _ in self.loops.values()}
        if rests:
            found = self.resting.setdefault(name, "") or self.names.fresh(name, "loop")
            self.resting[name] = found  # loops of one variable are never within each other
            self.line(f"for ({found} = 0; {found} < {count}; {found}++) {{")
        else:
            found = variable(name)
            while found in taken:
                found += "_"
            self.line(f"for (int32_t {found} = 0; {found} < {count}; {found}++) {{")
        self.loops[name] = (found, count)
        yield found
        del self.loops[name]
        self.line("}")

    @contextmanager
    def unless_there(self, step: Step) -> Iterator[None]:
        """Statements inside are left out where the inference goes on behind what ``step`` is for;
        what the last part makes never is."""
        places = self.repair.places
        part = self.repair.part(self.repair.operator(step)) if places else 0
        if part < len(places):
            self.line(f"if (nn_card.from <= {part}) {{")
        yield
        if part < len(places):
            self.line("}")

    def call(
        self, owner: str, template: str, about: str, views: Mapping[str, View],
        ranges: Mapping[str, Value], apart: bool = True, kind: str = "",
        order: Sequence[OrderLine] = (), any_strides: bool = False,
        most: Mapping[str, int] = MappingProxyType({}), **shared: Any,
    ) -> None:  # fmt: skip
        """A statement that runs a kernel; calls that differ in addresses and ranges share one.

        Args:
            owner: what the kernel is called after.
            kind: a word for its name, where one owner has several.
            order: of the pixels, where it is not row by row.
            any_strides: calls whose views differ in strides, but for the last axis, share one, too.
            most: as ``shared``, but what is the most of all calls is right for each of them.
        """
        if any_strides:
            ranges = {**ranges, **strides(views)}
        if order:
            ranges = {**ranges, "line_count": Value(len(order))}
        looks = [
            (
                n, v.strides[-1:] if any_strides else v.strides, v.rings, v.bits, v.signed, v.type,
                v.step, v.lookup and (v.lookup.extents, v.scattered),
            )
            for n, v in views.items()
        ]  # fmt: skip
        shared = {**shared, "ordered": bool(order)}
        key = repr((owner, template, kind, about, looks, sorted(shared.items()), list(most)))
        if key not in self.kernels:
            name = self.names.fresh(owner, kind)
            self.kernels[key] = Kernel(name, template, comment(about), dict(shared))
        kernel = self.kernels[key]
        kernel.shared |= {name: max(n, kernel.shared.get(name, n)) for name, n in most.items()}
        lines = self.orders.add(order) if order else None
        kernel.calls.append(Use(views, ranges, apart, lines))
        self.headers |= {"nn_int8.h", HEADERS.get(template.split("/")[0], "nn_int8.h")}
        number = len(kernel.calls) - 1
        self.line(lambda: kernel.call(number))

    def parts_apart(self, one: Slice, other: Slice) -> bool:
        """Check whether two slices share no byte, in any round of the loops that they are in."""
        first, second = self.buffer(one), self.buffer(other)
        if self.apart(first, second):
            return True
        if max(first.copies, second.copies) > 1:
            return False
        boxes = [
            [(part.start.low, part.stop.high) for part in self.box(piece)] for piece in (one, other)
        ]
        written, read = (b.cells(tuple(x)) for b, x in zip((first, second), boxes, strict=True))
        return not bool(np.isin(written, read).any())

    def apart(self, one: Buffer, other: Buffer) -> bool:
        """Check whether two buffers share no byte."""
        if one.memory != other.memory or "constant" in (one.role, other.role):
            return True
        key = (one.name, one.extent, other.name, other.extent)
        if key not in self._apart:
            disjoint = not one.meets(other)
            if not disjoint and one.copies == other.copies == 1:
                shared = np.isin(one.cells(one.held), other.cells(other.held))
                disjoint = not bool(shared.any())
            self._apart[key] = disjoint
        return self._apart[key]


def strides(views: Mapping[str, View]) -> dict[str, Value]:
    """Name the strides of all axes but the last one, as arguments of a kernel."""
    return {
        stride_name(name, axis): Value(stride)
        for name, view in views.items()
        for axis, stride in enumerate(view.strides[:-1])
        if not (view.lookup and axis < view.lookup.axes)
    }


@cache
def _reserved() -> frozenset[str]:
    """Names that no operator's function or table may take: those of headers and templates."""
    texts = (file.read_text() for file in KERNELS.rglob("*.*") if file.is_file())
    return frozenset(name for text in texts for name in re.findall(r"\bnn_\w+", text))
