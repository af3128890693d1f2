"""A plan in the making: buffers that have no address yet, and the steps over them.

Regions write their steps here; nothing else in the project makes steps (``lower`` says how a draft
becomes a plan). Every map begins at nibble 0 until placement.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import DType, IntArray
from pipeline.hardware import Hardware, Memory
from pipeline.kernels import Form, Kernel, named, natural_unit, offers
from pipeline.kernels.safe_offset import SafeOffset
from pipeline.placement.constants import constants, stored
from pipeline.plan.buffers import Role
from pipeline.plan.maps import Map
from pipeline.plan.vocabulary import (
    Affine,
    Blocks,
    Buffer,
    Compute,
    Finish,
    Index,
    Move,
    Rows,
    Slice,
    Step,
    packed,
    whole,
)
from pipeline.schedules.bounds import Box, Needs, all_of, part
from pipeline.schedules.overwriting import Begins, begins, may_overwrite


class Overlaps:
    """Pairs of numbers, as in ``Held``: ``over`` may share cells with ``under``, which it
    overwrites as that dies, at its ``safe``."""

    def __init__(self) -> None:
        self.over, self.under, self.offsets = array("i"), array("i"), list[SafeOffset]()

    def __iter__(self) -> Iterator[tuple[int, int, SafeOffset]]:
        return zip(self.over, self.under, self.offsets, strict=True)


@dataclass(frozen=True, slots=True)
class Held:
    """
    Attributes:
        numbers: of what has to be placed: all of it, or each of its rows.
        within: the variable of a loop; nothing of the buffer is needed from one pass to the next.
        over: the buffer whose place it takes, from ``at`` nibbles behind its beginning on.
        placed: its map has addresses already.
        rows: each index of the first axis has a life of its own, and a place of its own but where
            they follow each other, ``in_one_piece``.
    """

    buffer: Buffer
    numbers: range
    within: str = ""
    over: str = ""
    at: int = 0
    placed: bool = False
    rows: bool = False
    in_one_piece: bool = False

    @property
    def first(self) -> int:
        return self.numbers.start


class _Chosen(NamedTuple):
    """The fastest kernel for a form, "" without one, and what a step by it has.

    Attributes:
        offsets: of the inputs that it may write over.
    """

    kernel: str
    unit: tuple[int, ...]
    scratch_bytes: int = 0
    aside_bytes: int = 0
    delay: int = 0
    offsets: Mapping[str, SafeOffset] = MappingProxyType({})

    @classmethod
    def of(cls, kernel: Kernel, form: Form) -> _Chosen:
        apart = replace(form, overlaps=frozenset())
        offsets = {name: safe for name in form.overlaps if (safe := kernel.overlap(apart, name))}
        aside = max((safe.aside_bytes for safe in offsets.values()), default=0)
        delay = max((safe.delay for safe in offsets.values()), default=0)
        scratch = kernel.scratch_bytes(form)
        return cls(kernel.name, kernel.unit(form), scratch, aside, delay, offsets)


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
        known: from where to where each of what is held lay before, (2, numbers): what lies apart
            there does not overlap after all.
        frames: that are in flight together.
        copies: which of its places the next steps use, of buffers that have several.
        elsewhere: buffers that need no place, by name: the input where it comes in element by
            element, tensors on a card; ``memories``: those of them that the board does not have.
        reads, chosen: what is known of operators and kernels; drafts of one graph may share them.
        numbers: of what is held, by name, the same in drafts that share them.
        beside: the steps of other tracks than the processor's, by the name of the track.
    """

    graph: Graph
    hardware: Hardware
    accumulator_bits: int = 32
    frames: int = 1
    known: IntArray | None = None
    most_scratch: Mapping[str, int] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    reads: dict[str, Needs] = field(default_factory=dict, repr=False)
    chosen: dict[Hashable, _Chosen] = field(default_factory=dict, repr=False)
    numbers: dict[str, range] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.held: dict[str, Held] = {}
        self.home: dict[str, str] = {}
        self.elsewhere: dict[str, Buffer] = {}
        self.memories: list[Memory] = []
        self.overlaps = Overlaps()
        self.beside: dict[str, tuple[Step, ...]] = {}
        self.fixed = {b.name: b for b in constants(self.graph, self.hardware, 0)}
        self.home |= {name: name for name in self.fixed}
        self.offsets: dict[tuple[str, str], SafeOffset | None] = {}
        self.copies: dict[str, Index] = {}

    @property
    def count(self) -> int:
        """Count the numbers."""
        return next((some.stop for some in reversed(self.numbers.values())), 0)

    def buffer(self, name: str) -> Buffer:
        if name in self.held:
            return self.held[name].buffer
        return self.elsewhere.get(name) or self.fixed[name]

    # --- what is held

    def hold(self, tensor: str, sizes: Sequence[int] = (), kind: str = "", **how: str) -> Buffer:
        """``tensor`` in memory, or of each axis ``sizes`` indices at once: index i then lies at i
        modulo that. ``kind`` is a word for the buffer's name; ``how``: see ``Held``."""
        shape, bits = self.graph.tensors[tensor].shape, self.graph.tensors[tensor].dtype.bits
        place = packed(tuple(sizes) or shape, bits)
        if sizes and tuple(sizes) != shape:
            wrap = (n if n < extent else 0 for n, extent in zip(sizes, shape, strict=True))
            place = replace(place, wrap=tuple(wrap))
        return self.hold_at(tensor, place, kind, **how)

    def hold_rows(self, tensor: str, whole: bool = False, pixels: int = 0) -> Buffer:
        """``tensor`` in memory row by row: each lies anywhere, or, ``whole``, after the other;
        ``pixels``: in blocks of so many. A vector is one row."""
        if self.graph.tensors[tensor].shape[:-2] in ((), (1,)):
            return self.hold(tensor)
        shape, bits = self.graph.tensors[tensor].shape, self.graph.tensors[tensor].dtype.bits
        place: Map = packed(shape, bits)
        if pixels:
            place = Blocks((0,) * shape[0], pixels, max(1, bits // 4))
        elif not whole:
            place = Rows((0,) * shape[0], packed(shape, bits).strides[1:])
        return self.hold_at(tensor, place, rows=True, in_one_piece=whole)

    def hold_part(self, tensor: str, box: Box, kind: str, columns: int = 0) -> Buffer:
        """Hold no more than ``box`` of ``tensor`` in memory, side by side; ``kind``: which part
        that is, for the buffer's name; ``columns``: of an image's rows so many at once."""
        bits = self.graph.tensors[tensor].dtype.bits
        sizes = [each.size for each in box]
        wrap: tuple[int, ...] = ()
        if 0 < columns < sizes[1]:
            sizes[1], wrap = columns, (0, columns, 0)
        strides, held = packed(tuple(sizes), bits).strides, tuple(each.ends for each in box)
        base = -sum(stride * low for stride, (low, _) in zip(strides, held, strict=True))
        return self.hold_at(tensor, Affine(base, strides, wrap, held), kind)

    def sums(self, tensor: str, rows: int = 0, bits: int = 0) -> Buffer:
        """Accumulators for ``tensor``; ``rows``: a ring of so many of the first axis."""
        shape, bits = self.graph.tensors[tensor].shape, bits or self.accumulator_bits
        place = packed((rows, *shape[1:]) if rows else shape, bits)
        if rows:
            strides = (0, *place.strides[1:]) if rows == 1 else place.strides
            place = replace(place, strides=strides, wrap=(rows, *([0] * (len(shape) - 1))))
        buffer = Buffer(
            self.graph.beside(tensor, "sums"), tensor, self.hardware.activation_memory, shape, bits,
            place, role="accumulator", step=step_before_calibration(tensor, self.graph, bits),
        )  # fmt: skip
        self._put(buffer)
        return buffer

    def hold_at(self, tensor: str, place: Map, kind: str = "", **how: Any) -> Buffer:
        """``tensor`` in memory, its elements where ``place`` says; ``kind``, ``how``: as above."""
        of, name = self.graph.tensors[tensor], self.graph.beside(tensor, kind) if kind else tensor
        memory = self.hardware.activation_memory
        buffer = Buffer(name, tensor, memory, of.shape, of.dtype.bits, place)
        self.home[tensor] = name
        self._put(buffer, **how)
        return buffer

    def _put(self, buffer: Buffer, **how: Any) -> None:
        """``how``: see ``Held``."""
        new = range(self.count, self.count + (buffer.shape[0] if how.get("rows") else 1))
        self.held[buffer.name] = Held(buffer, self.numbers.setdefault(buffer.name, new), **how)

    def base(self, name: str, needs: Callable[[int], bool] = lambda _: True) -> tuple[str, int]:
        """Return the buffer whose place ``name`` takes, itself if it has one of its own, and the
        nibbles from that one's beginning to it; ``needs``: whether any step needs a number."""
        at = 0
        while (held := self.held[name]).over and needs(self.held[held.over].first):
            name, at = held.over, at + held.at
        return name, at

    def join(self, name: str, first: str, at: int) -> None:
        """Put the buffer of the tensor ``name`` ``at`` nibbles behind where that of ``first``
        begins."""
        home = self.home[name]
        self.held[home] = replace(self.held[home], over=self.home[first], at=at)

    def put(self, buffer: Buffer) -> None:
        """``buffer`` has its address."""
        self._put(buffer, placed=True)
        self.home.setdefault(buffer.tensor, buffer.name)

    def store(self, tensors: Iterable[str], memory: Memory) -> None:
        """``tensors`` lie in ``memory``, whole, activations once for each frame."""
        for buffer in stored(tensors, self.graph, memory, self.frames):
            self.elsewhere[buffer.name] = buffer
            self.home[buffer.tensor] = buffer.name

    def overlap(self, over: int, under: int, safe: SafeOffset) -> bool:
        """Let them, unless placement put them apart; return whether it did not."""
        if self.known is not None:
            begins, ends = self.known
            if ends[over] <= begins[under] or ends[under] <= begins[over]:
                return False
        self.overlaps.over.append(over)
        self.overlaps.under.append(under)
        self.overlaps.offsets.append(safe)
        return True

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

    def safe(self, op: Operator, out: Buffer, made: Box, over: str) -> SafeOffset | None:
        """Return where the output of such a step, the same for all rows, may begin above ``over``,
        which dies with it (if it makes one row, above a row of that); None: they lie apart."""
        key = op.name, over
        if key not in self.offsets:
            form = self._form(self._unnamed(op, out, made), frozenset([over]), aside=True)
            self.offsets[key] = self._chosen(form).offsets.get(over)
        return self.offsets[key]

    def needs(self, op: Operator, made: Box) -> dict[str, Box]:
        """Return for each tensor that ``op`` reads the box that the outputs ``made`` need of it."""
        if op.name not in self.reads:
            self.reads[op.name] = Needs(op, self.graph.tensors)
        return self.reads[op.name](made)

    def _unnamed(self, op: Operator, out: Buffer, made: Box) -> Compute:
        read = self.needs(op, made)
        ins = [self.part(self.buffer(self.home[name]), needed) for name, needed in read.items()]
        return Compute(op.name, self.part(out, made), tuple(ins))

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
        ins = [self.part(self.buffer(self.home[name]), box) for name, box in read.items()]
        step = Compute(op.name, self.part(acc, made), tuple(ins), partial=True)
        return self._with_kernel(op, step, frozenset())

    def finish(self, op: Operator, acc: Slice, out: Slice, unit: tuple[int, ...] = ()) -> Finish:
        """``unit`` empty: elements one by one, each lies no higher than the sums it is made of."""
        bias = (whole(self.buffer(o.tensor)) for o in op.completion(self.graph.tensors))
        return Finish(op.name, acc, out, tuple(bias), unit)

    def move(self, source: Buffer, target: Buffer, box: Box) -> Move:
        return Move(self.part(source, box), self.part(target, box))

    def part(self, buffer: Buffer, box: Box) -> Slice:
        return part(buffer, box, self.copies.get(buffer.name, 0))

    def _with_kernel(
        self, op: Operator, step: Compute, overlaps: frozenset[str], part: str = ""
    ) -> Compute:
        """Return the fastest kernel that takes the step, its unit, and its scratch beside it; where
        there is none the plan can still be made and proved, but no C of it."""
        found: Begins = ()
        if overlaps and self.held[step.out.buffer].placed:
            found = begins(step, self.buffer, overlaps)
        chosen = self._chosen(self._form(step, overlaps, bool(part)), found)
        extras: list[tuple[Role, str, int]]
        extras = [("scratch", "", chosen.scratch_bytes), ("aside", part, chosen.aside_bytes)]
        scratch = (self._extra(op.output, *each) for each in extras if each[2])
        return replace(
            step, kernel=chosen.kernel, unit=chosen.unit, delay=chosen.delay, scratch=tuple(scratch)
        )

    def _chosen(self, form: Form, found: Begins = ()) -> _Chosen:
        """Asked once for each form: patches and rows are many and alike."""
        edges = getattr(form.op, "padding", ())  # of a tile its own
        most = self.most_scratch.get(form.op.output, inf)
        ways = form.partial, form.overlaps, form.aside, form.in_place, found, most
        key = form.op.name, edges, *ways, *form.parts.items()
        if key not in self.chosen:
            asked = self.asked.get(form.op.output)
            able = [named(asked, form, self.hardware)] if asked else []
            able += offers(form, self.hardware)
            allowed = (k for k in able if k.accepts(form) and k.scratch_bytes(form) <= most)
            kernel = next((k for k in allowed if may_overwrite(k, form, found)), None)
            self.chosen[key] = (
                _Chosen.of(kernel, form) if kernel else _Chosen("", natural_unit(form))
            )
        return self.chosen[key]

    def _extra(self, tensor: str, role: Role, part: str, size: int) -> str:
        """Scratch: at one place for all steps that make some of ``tensor``; what is kept aside:
        anywhere, for the one that makes ``part`` of it."""
        name, shape = self.graph.beside(tensor, role + part), (size,)
        if name not in self.held or self.held[name].buffer.shape < shape:
            memory = self.hardware.activation_memory
            self._put(Buffer(name, "", memory, shape, 8, packed(shape, 8), role))
        return self.held[name].buffer.name  # the one name for all steps


def step_before_calibration(tensor: str, graph: Graph, bits: int) -> int:
    """1, exact, where every sum fits an accumulator of ``bits``; else 0: to be chosen."""
    low, high = graph.producer(tensor).partial_sums(graph.tensors, graph.constants)
    width = DType(bits, signed=True)
    return 1 if width.minimum <= low and high <= width.maximum else 0
