"""Random places for the buffers of a draft whose steps are in a row: right for that row, and often
just so, but for an output that is laid over an input, a little higher or lower."""

from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.placement.blocks import Block, Interference, Profile, Profiles
from pipeline.placement.fit import NOWHERE, first_fit
from pipeline.plan.vocabulary import Affine, Blocks, Buffer, Compute, Rows, Table, packed
from tests.plan.mutations import Dice
from tests.plan.reference import Footprint
from tests.plan.reference_steps import Action

Place = tuple[int, ...]
Span = tuple[int, int]
LiveIntervals = dict[tuple[str, int, Place], Span]
"""By buffer, copy and element the first and the last step that touches it."""


@dataclass(frozen=True)
class Draft(Dice):
    """
    Attributes:
        streams: every operator row by row, as soon as it can.
        chains: the buffers that each tensor is moved through; where it is made, and where read.
        kept: by what a state is made as, the buffer in the place of what is read of it.
    """

    graph: Graph
    frames: int
    streams: bool
    buffers: dict[str, Buffer] = field(default_factory=dict)
    chains: dict[str, list[str]] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)

    @property
    def resident(self) -> tuple[str, ...]:
        return tuple(self.chains[n][0] for n in (*self.graph.starts, *self.graph.constants))

    @property
    def output(self) -> str:
        return self.chains[self.graph.output][-1]

    def copy(self, tensor: str, frame: int) -> int:
        return 0 if tensor in self.graph.constants else frame

    def buffer(
        self, name: str, tensor: str, memory: str, bits: int | None = None, **options: Any
    ) -> None:
        """A new buffer of a tensor, beside all others."""
        kind, known = self.graph.tensors[tensor], self.buffers.values()
        bits = bits or kind.dtype.bits
        top = max([0, *(b.extent[1] for b in known if b.memory == memory)])
        size, place = kind.size * bits // 4, packed(kind.shape, bits, top + top % 2)
        options |= {"map": place, "copy_stride": size + size % 2}
        self.buffers[name] = Buffer(name, tensor, memory, kind.shape, bits, **options)


def placed(draft: Draft, row: list[Action], feet: list[Footprint]) -> list[Action]:
    """Give every buffer a map. Some computations get scratch."""
    elements, end = lives_of(draft, feet), len(row)
    ends = {draft.kept[of.made]: draft.chains[of.read][0] for of in draft.graph.states}
    lives = dict.fromkeys(draft.buffers, (0, end))
    for name in {name for name, *_ in elements}:
        spans = [span for (other, *_), span in elements.items() if other == name]
        lives[name] = min(a for a, _ in spans), max(b for _, b in spans)
    for name in draft.resident:
        kept = draft.buffers[name].tensor in draft.graph.constants or name in ends.values()
        lives[name] = (-1, end if kept else lives[name][1])
    for name in (draft.output, *ends):
        lives[name] = (lives[name][0], end)
    for name, buffer in draft.buffers.items():
        wrap: Place = ()
        if name not in (*draft.resident, draft.output, *ends):
            wrapped = draft.chance(0.3 + 0.4 * draft.streams)
            wrap = _ring(draft, buffer, elements) if wrapped else ()
        draft.buffers[name] = _mapped(draft, buffer, wrap)
    row = _with_scratch(draft, row, lives)
    apart, loose = draft.pick((1, 0), *[(0, 0)] * 4, *[(0, 1)] * 2)
    for memory in {b.memory for b in draft.buffers.values()} - {"stream"}:
        every = [buffer for buffer in draft.buffers.values() if buffer.memory == memory]
        held = [buffer for buffer in every if buffer.name not in ends]
        blocks = []
        for each in held:
            first, last = (-1, end) if apart else lives[each.name]
            size = each.extent[1] + loose * draft.pick(0, 0, 2, 4)
            blocks.append(Profile((Block(size, first, last),), min(each.bits // 4, 2)))
        served = draft.shuffled([*range(len(held))]) if draft.chance(0.7) else range(len(held))
        bases = first_fit(Interference(Profiles(blocks)), served, np.full(len(held), NOWHERE))
        for n, buffer in enumerate(held):
            draft.buffers[buffer.name] = _moved(buffer, int(bases[n]))
    for name, read in ends.items():
        like = draft.buffers[read]
        draft.buffers[name] = replace(like, name=name, tensor=draft.buffers[name].tensor)
    if draft.frames == 1 and draft.chance(0.4):
        _over_an_input(draft, row, lives)
    return row


def lives_of(draft: Draft, feet: list[Footprint]) -> LiveIntervals:
    owners = {
        (buffer.memory, int(cell) + copy * buffer.copy_stride): (buffer.name, copy, place)
        for buffer in draft.buffers.values()
        for place, cell in np.ndenumerate(buffer.addresses(buffer.box))
        for copy in range(buffer.copies)
    }
    found: LiveIntervals = {}
    for n, foot in enumerate(feet):
        for key in {owners[cell] for cell in foot if cell in owners}:
            found[key] = (found.get(key, (n, n))[0], n)
    return found


def _moved(buffer: Buffer, by: int) -> Buffer:
    return replace(buffer, map=buffer.map.moved(by))


def _ring(draft: Draft, buffer: Buffer, elements: LiveIntervals) -> Place:
    """A modulus along one axis with which no two indices are needed in one place at a time."""
    axis, lives = 0 if draft.chance(0.6) else draft.below(len(buffer.shape)), dict[Span, Span]()
    for (name, copy, place), (first, last) in elements.items():
        if name == buffer.name:
            a, b = lives.get((copy, place[axis]), (first, last))
            lives[copy, place[axis]] = min(a, first), max(b, last)

    def right(ring: int) -> bool:
        return not any(
            one != other and one[0] == other[0] and (one[1] - other[1]) % ring == 0
            and a <= d and c <= b
            for (one, (a, b)), (other, (c, d)) in product(lives.items(), lives.items())
        )  # fmt: skip

    ring = next((w for w in range(1, buffer.shape[axis]) if right(w)), buffer.shape[axis])
    ring += draft.chance(0.3)
    return tuple(ring if d == axis else 0 for d in range(len(buffer.shape)))


def _mapped(draft: Draft, buffer: Buffer, wrap: Place) -> Buffer:
    """``buffer`` with a map of its shape, its lowest nibble at 0: in the order of its axes or of
    others, each index of the first axis anywhere, in blocks, or each element anywhere."""
    shape, width = buffer.shape, buffer.bits // 4
    if buffer.memory == "stream":
        return replace(buffer, copy_stride=prod(shape) * width)
    place: Any = _affine(draft, shape, wrap, width)
    kind = draft.pick("table", "table", "rows", "blocks" if len(shape) == 3 else "rows")
    if not wrap and draft.chance(0.2):
        inner = _affine(draft, shape[1:], (), width)
        low, high = inner.extent(shape[1:], width)
        if kind == "table":
            place = Table(_anywhere(draft, prod(shape), width))
        elif kind == "rows":
            cells = _anywhere(draft, shape[0], high - low)
            place = Rows(tuple(cell - low for cell in cells), inner.strides)
        else:
            cells = _anywhere(draft, shape[0], prod(shape[1:]) * width)
            place = Blocks(cells, 1 + draft.below(4), width)
    made = replace(buffer, map=place, copies=1)
    made, even = _moved(made, -made.extent[0]), min(width, 2)
    stride = -(-made.extent[1] // even) * even + even * draft.pick(0, 0, 0, 1, 2)
    return replace(made, copies=buffer.copies, copy_stride=stride)


def _anywhere(draft: Draft, count: int, each: int) -> Place:
    numbers = draft.rng.permutation(count + draft.below(4))[:count]
    return tuple(each * int(n - min(numbers)) for n in numbers)


def _affine(draft: Draft, shape: Place, wrap: Place, width: int) -> Affine:
    """The axes in some order, side by side or with gaps, some backwards."""
    extents = [min(n, w or n) for n, w in zip(shape, wrap or (0,) * len(shape), strict=True)]
    axes = list(reversed(range(len(shape))))
    strides, step = [0] * len(shape), width
    for axis in draft.shuffled(axes) if draft.chance(0.25) else axes:
        strides[axis] = -step if draft.chance(0.06) else step
        step *= extents[axis]
        if draft.chance(0.08):
            step += min(width, 2) * (1 + draft.below(2))
    return Affine(0, tuple(strides), wrap)


def _with_scratch(draft: Draft, row: list[Action], lives: dict[str, Span]) -> list[Action]:
    """A buffer for one or two computations."""
    computes = [n for n, step in enumerate(row) if isinstance(step, Compute)]
    if not computes or not draft.chance(0.25):
        return row
    shape, bits, memory = (1 + draft.below(4),), draft.pick(4, 8, 16), draft.pick("sram", "other")
    place = packed(shape, bits)
    draft.buffers["scratch"] = Buffer("scratch", "", memory, shape, bits, place, "scratch")
    users = sorted({draft.pick(*computes), draft.pick(*computes)})
    lives["scratch"] = (users[0], users[-1])
    return [
        replace(step, scratch=("scratch",)) if n in users else step  # type: ignore[call-arg]
        for n, step in enumerate(row)
    ]


def _over_an_input(draft: Draft, row: list[Action], lives: dict[str, Span]) -> None:
    """Put the output of a step that makes all of a tensor over an input that it needs last,
    shifted by a little: whether that is right depends on the order of its units."""
    for n, step in enumerate(row):
        if not isinstance(step, Compute) or step.partial:
            continue
        out, ins = draft.buffers[step.out.buffer], [draft.buffers[s.buffer] for s in step.ins]
        dying = [b for b in ins if lives[b.name][1] == n and b.memory == out.memory]
        free = out.name not in draft.kept.values()
        if free and lives[out.name][0] == n and step.out.size == out.shape and dying:
            over = draft.pick(*dying)
            even = 2 if max(out.bits, over.bits) > 4 else 1
            shift = over.extent[0] - out.extent[0] + even * (draft.below(10) - 6)
            draft.buffers[out.name] = _moved(out, max(shift, -out.extent[0]))
            return
