"""A plan in the making: buffers that have no address yet, and the steps over them.

Regions write their steps here; nothing else in the project makes steps (``lower`` says how a draft
becomes a plan). Every map begins at nibble 0 until placement.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import DType
from pipeline.hardware import Hardware, Memory
from pipeline.kernels import Form, Kernel, named, natural_unit, offers
from pipeline.kernels.gap import Gap
from pipeline.placement.constants import constants, stored
from pipeline.plan.maps import Map, Table
from pipeline.plan.vocabulary import (
    Affine,
    Blocks,
    Buffer,
    Clear,
    Compute,
    Finish,
    Move,
    Rows,
    Slice,
    Step,
    packed,
    whole,
)
from pipeline.schedules.bounds import Box, Needs, all_of, part
from pipeline.schedules.overwriting import Begins, bears, begins

Key = tuple[str, int]
"""A buffer's name and a row, or 0 where all of it lies in one piece."""


class MayOverlap(NamedTuple):
    """``over`` may share cells with ``under``, which it overwrites as that dies."""

    over: Key
    under: Key
    gap: Gap


@dataclass(frozen=True)
class Held:
    """
    Attributes:
        within: the variable of a loop; nothing of the buffer is needed from one pass to the next.
        over: the buffer whose place it takes, from its beginning on.
        placed: its map has addresses already.
        rows: each index of the first axis has a life of its own, and a place of its own but where
            they follow each other, ``in_one_piece``.
    """

    buffer: Buffer
    within: str = ""
    over: str = ""
    placed: bool = False
    rows: bool = False
    in_one_piece: bool = False

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Of what has to be placed: all of the buffer, or each of its rows."""
        name = self.buffer.name
        return tuple((name, row) for row in range(self.buffer.shape[0] if self.rows else 1))


class _Chosen(NamedTuple):
    """The fastest kernel for a form, "" without one, and what a step by it has.

    Attributes:
        gaps: of the inputs that it may write over.
    """

    kernel: str
    unit: tuple[int, ...]
    scratch_bytes: int = 0
    gaps: Mapping[str, Gap] = MappingProxyType({})

    @classmethod
    def of(cls, kernel: Kernel, form: Form) -> _Chosen:
        apart = replace(form, overlaps=frozenset())
        gaps = {name: gap for name in form.overlaps if (gap := kernel.overlap(apart, name))}
        return cls(kernel.name, kernel.unit(form), kernel.scratch_bytes(form), gaps)

    @property
    def aside_bytes(self) -> int:
        return max((gap.aside_bytes for gap in self.gaps.values()), default=0)

    @property
    def delay(self) -> int:
        return max((gap.delay for gap in self.gaps.values()), default=0)


@dataclass
class Draft:
    """
    Attributes:
        most_scratch: bytes of it, by the outputs of operators that may not have more.
        asked: kernels by name that steps have wherever they take them, by the outputs of operators.
        accumulator_bits: of sums that loops add to.
        held: buffers in memory that have to be placed, by name.
        home: for each tensor the name of the buffer that steps read it from.
        overlaps: what may lie over what it is made of.
        apart: pairs of those that do not after all, since placement put them apart.
        frames: that are in flight together.
        elsewhere: buffers that need no place, by name: the input where it comes in element by
            element, tensors on a card; ``memories``: those of them that the board does not have.
        beside: the steps of other tracks than the processor's, by the name of the track.
    """

    graph: Graph
    hardware: Hardware
    accumulator_bits: int = 32
    frames: int = 1
    apart: frozenset[tuple[Key, Key]] = frozenset()
    most_scratch: Mapping[str, int] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.held: dict[str, Held] = {}
        self.home: dict[str, str] = {}
        self.elsewhere: dict[str, Buffer] = {}
        self.memories: list[Memory] = []
        self.overlaps: list[MayOverlap] = []
        self.beside: dict[str, tuple[Step, ...]] = {}
        self.fixed = {b.name: b for b in constants(self.graph, self.hardware, 0)}
        self.home |= {name: name for name in self.fixed}
        self.chosen: dict[Hashable, _Chosen] = {}
        self.gaps: dict[tuple[str, str], Gap | None] = {}
        self.reads: dict[str, Needs] = {}
        self.slices: dict[tuple[str, Box], Slice] = {}
        self.alike: dict[Hashable, Compute] = {}

    def buffer(self, name: str) -> Buffer:
        if name in self.held:
            return self.held[name].buffer
        return self.elsewhere.get(name) or self.fixed[name]

    # --- what is held

    def hold(
        self,
        tensor: str,
        sizes: Sequence[int] = (),
        kind: str = "",
        *,
        within: str = "",
        over: str = "",
    ) -> Buffer:
        """``tensor`` in memory, or of each axis ``sizes`` indices at once: index i then lies at i
        modulo that. ``kind`` is a word for the buffer's name."""
        shape, bits = self.graph.tensors[tensor].shape, self.graph.tensors[tensor].dtype.bits
        place = packed(tuple(sizes) or shape, bits)
        if sizes and tuple(sizes) != shape:
            wrap = (n if n < extent else 0 for n, extent in zip(sizes, shape, strict=True))
            place = replace(place, wrap=tuple(wrap))
        name = self.graph.beside(tensor, kind) if kind else tensor
        buffer = Buffer(name, tensor, self.hardware.activation_memory, shape, bits, place)
        self.held[name] = Held(buffer, within, over)
        self.home[tensor] = name
        return buffer

    def hold_rows(self, tensor: str, whole: bool = False, pixels: int = 0) -> Buffer:
        """``tensor`` in memory row by row: each lies anywhere, or, ``whole``, after the other;
        ``pixels``: in blocks of so many."""
        shape, bits = self.graph.tensors[tensor].shape, self.graph.tensors[tensor].dtype.bits
        place: Map = packed(shape, bits)
        if pixels:
            place = Blocks((0,) * shape[0], pixels, max(1, bits // 4))
        elif not whole:
            place = Rows((0,) * shape[0], packed(shape, bits).strides[1:])
        buffer = Buffer(tensor, tensor, self.hardware.activation_memory, shape, bits, place)
        self.held[tensor] = Held(buffer, rows=True, in_one_piece=whole)
        self.home[tensor] = tensor
        return buffer

    def hold_part(self, tensor: str, box: Box, kind: str, over: str = "") -> Buffer:
        """No more than ``box`` of ``tensor`` in memory, side by side; ``kind``: which part that is,
        for the buffer's name; ``over``: the buffer whose place it takes."""
        shape, bits = self.graph.tensors[tensor].shape, self.graph.tensors[tensor].dtype.bits
        strides = packed(tuple(each.size for each in box), bits).strides
        held = tuple(each.ends for each in box)
        base = -sum(stride * low for stride, (low, _) in zip(strides, held, strict=True))
        place = Affine(base, strides, held=held)
        name = self.graph.beside(tensor, kind)
        buffer = Buffer(name, tensor, self.hardware.activation_memory, shape, bits, place)
        self.held[name] = Held(buffer, over=over)
        self.home[tensor] = name
        return buffer

    def put(self, buffer: Buffer) -> None:
        """``buffer`` has its address."""
        self.held[buffer.name] = Held(buffer, placed=True)
        self.home.setdefault(buffer.tensor, buffer.name)

    def arrives(self, buffer: Buffer, memory: Memory) -> Buffer:
        """The input comes in through ``buffer``, which needs no place."""
        self.elsewhere[buffer.name] = buffer
        self.home[buffer.tensor] = buffer.name
        self.memories.append(memory)
        return buffer

    def store(self, tensors: Iterable[str], memory: Memory) -> None:
        """``tensors`` lie in ``memory``, whole, activations once for each frame."""
        for buffer in stored(tensors, self.graph, memory, self.frames):
            self.elsewhere[buffer.name] = buffer
            self.home[buffer.tensor] = buffer.name

    def sums(self, tensor: str, rows: int = 0, bits: int = 0) -> Buffer:
        """Accumulators for ``tensor``; ``rows``: a ring of so many of the first axis."""
        shape, bits = self.graph.tensors[tensor].shape, bits or self.accumulator_bits
        place = packed((rows, *shape[1:]) if rows else shape, bits)
        if rows:
            strides = (0, *place.strides[1:]) if rows == 1 else place.strides
            place = replace(place, strides=strides, wrap=(rows, *([0] * (len(shape) - 1))))
        buffer = Buffer(
            self.graph.beside(tensor, "sums"), tensor, self.hardware.activation_memory, shape, bits,
            place, "accumulator", step_before_calibration(tensor, self.graph, bits),
        )  # fmt: skip
        self.held[buffer.name] = Held(buffer)
        return buffer

    # --- steps

    def compute(
        self,
        op: Operator,
        out: Buffer,
        made: Box | None = None,
        *,
        over: Collection[str] = (),
        part: str = "",
    ) -> Compute:
        """``op`` makes the box ``made`` (all) of its output in ``out``; ``over``: tensors whose
        cells that takes; ``part``: of a step that makes a row, which may keep some of it aside, a
        word for it among those of ``op``."""
        step = self._unnamed(op, out, made or all_of(out.shape))
        return self._with_kernel(op, step, frozenset(over), part)

    def gap(self, op: Operator, out: Buffer, made: Box, over: str) -> Gap | None:
        """Where the output of such a step, the same for all rows, may begin above ``over``, which
        dies with it (of a step that makes one row, above a row of that); None: they lie apart."""
        key = op.name, over
        if key not in self.gaps:
            form = self._form(self._unnamed(op, out, made), frozenset([over]), aside=True)
            self.gaps[key] = self._chosen(form).gaps.get(over)
        return self.gaps[key]

    def needs(self, op: Operator, made: Box) -> dict[str, Box]:
        """For each tensor that ``op`` reads the box that the outputs ``made`` need of it."""
        if op.name not in self.reads:
            self.reads[op.name] = Needs(op, self.graph.tensors)
        return self.reads[op.name](made)

    def _unnamed(self, op: Operator, out: Buffer, made: Box) -> Compute:
        read = self.needs(op, made)
        ins = [self._part(self.home[name], needed) for name, needed in read.items()]
        return Compute(op.name, part(out, made), tuple(ins))

    def _part(self, name: str, box: Box) -> Slice:
        """Once for all steps that read it, as most do of weights."""
        if (name, box) not in self.slices:
            self.slices[name, box] = part(self.buffer(name), box)
        return self.slices[name, box]

    def _form(self, step: Compute, overlaps: frozenset[str], aside: bool = False) -> Form:
        names = {step.out.buffer, *(piece.buffer for piece in step.ins)}
        buffers = {name: self.buffer(name) for name in names}
        out = self.held.get(step.out.buffer)
        over = out.over if out and overlaps else ""
        in_place = bool(over) and all(self.home[name] == over for name in overlaps)
        form = Form.of(step, buffers, self.graph, overlaps)
        return replace(form, aside=aside, in_place=in_place)

    def add(self, op: Operator, acc: Buffer, made: Box, read: dict[str, Box]) -> Compute:
        """Contributions of ``read`` to the sums ``made``."""
        ins = [part(self.buffer(self.home[name]), box) for name, box in read.items()]
        step = Compute(op.name, part(acc, made), tuple(ins), partial=True)
        return self._with_kernel(op, step, frozenset())

    def clear(self, op: Operator, acc: Slice) -> Clear:
        return Clear(op.name, acc)

    def finish(self, op: Operator, acc: Slice, out: Slice, unit: tuple[int, ...] = ()) -> Finish:
        """``unit`` empty: elements one by one, each lies no higher than the sums it is made of."""
        bias = (whole(self.buffer(o.tensor)) for o in op.completion(self.graph.tensors))
        return Finish(op.name, acc, out, tuple(bias), unit)

    def move(self, source: Buffer, target: Buffer, box: Box) -> Move:
        return Move(part(source, box), part(target, box))

    def _with_kernel(
        self, op: Operator, step: Compute, overlaps: frozenset[str], part: str = ""
    ) -> Compute:
        """The fastest kernel that takes the step, its unit, and its scratch beside it; where there
        is none the plan can still be made and proved, but no C of it."""
        kind = self._kind(step, overlaps, part)
        if kind and (known := self.alike.get(kind)):
            return replace(known, out=step.out, ins=step.ins)
        found: Begins = ()
        if overlaps and self.held[step.out.buffer].placed:
            found = begins(step, self.buffer, overlaps)
        chosen = self._chosen(self._form(step, overlaps, bool(part)), found)
        scratch = []
        if chosen.scratch_bytes:
            scratch.append(self._scratch(op.output, chosen.scratch_bytes))
        if chosen.aside_bytes:
            scratch.append(self._aside(op.output, part, chosen.aside_bytes))
        step = replace(step, kernel=chosen.kernel, unit=chosen.unit, delay=chosen.delay)
        step = replace(step, scratch=tuple(scratch)) if scratch else step
        return self.alike.setdefault(kind, step) if kind else step

    def _kind(self, step: Compute, overlaps: frozenset[str], part: str) -> Hashable:
        """Steps of one kind have one form: those of an output whose elements lie anywhere, by what
        they take of it and of inputs that are no rings; None: of others."""
        if step.partial or not isinstance(self.buffer(step.out.buffer).map, Table):
            return None
        taken = list[Hashable]()
        for piece in (step.out, *step.ins):
            if piece.buffer not in self.fixed:
                if any(self.buffer(piece.buffer).wrap):
                    return None
                sides = zip(piece.lo, piece.size, strict=True)
                begins = (isinstance(n, int) and (not size or n % size == 0) for n, size in sides)
                taken.append((piece.buffer, piece.size, *begins))
        return step.op, overlaps, part, *taken

    def _chosen(self, form: Form, found: Begins = ()) -> _Chosen:
        """Asked once for each form: patches and rows are many and alike."""
        edges = getattr(form.op, "padding", ())  # of a tile its own
        most = self.most_scratch.get(form.op.output, inf)
        ways = form.partial, form.overlaps, form.aside, form.in_place, found, most
        key = form.op.name, edges, *ways, *form.parts.items()
        if key not in self.chosen:
            able = (*self._asked(form), *offers(form, self.hardware))
            allowed = (k for k in able if k.scratch_bytes(form) <= most)
            kernel = next((k for k in allowed if bears(k, form, found)), None)
            self.chosen[key] = (
                _Chosen.of(kernel, form) if kernel else _Chosen("", natural_unit(form))
            )
        return self.chosen[key]

    def _asked(self, form: Form) -> list[Kernel]:
        name = self.asked.get(form.op.output, "")
        kernels = [named(name, form, self.hardware)] if name else []
        return [kernel for kernel in kernels if kernel.accepts(form)]

    def _scratch(self, tensor: str, size: int) -> str:
        """At one place for all steps that make some of ``tensor``."""
        memory, name = self.hardware.activation_memory, self.graph.beside(tensor, "scratch")
        known = self.held[name].buffer.shape[0] if name in self.held else 0
        shape = (max(size, known),)
        buffer = Buffer(name, "", memory, shape, 8, packed(shape, 8), "scratch")
        self.held[name] = Held(buffer)
        return name

    def _aside(self, tensor: str, part: str, size: int) -> str:
        """Anywhere, for one step."""
        name = self.graph.beside(tensor, f"aside{part}")
        memory, place = self.hardware.activation_memory, packed((size,), 8)
        self.held[name] = Held(Buffer(name, "", memory, (size,), 8, place, "aside"))
        return name


def step_before_calibration(tensor: str, graph: Graph, bits: int) -> int:
    """1, exact, where every sum fits an accumulator of ``bits``; else 0: to be chosen."""
    low, high = graph.producer(tensor).partial_sums(graph.tensors, graph.constants)
    width = DType(bits, signed=True)
    return 1 if width.minimum <= low and high <= width.maximum else 0
