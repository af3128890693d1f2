"""Regions to a plan: their steps, then lifetimes, then addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.kernels.gap import Gap
from pipeline.placement.blocks import WORD, Interference, load, round_up
from pipeline.placement.constants import constants
from pipeline.placement.fit import first_fit
from pipeline.placement.place import EFFORT, Placed, place
from pipeline.plan.vocabulary import Blocks, Buffer, Compute, Loop, Plan, Rows, Step, Track
from pipeline.schedules.draft import Draft, Held, Key
from pipeline.schedules.lifetimes import nibbles, row_nibbles, to_next_row, to_place

PROCESSOR = "cpu"
"""The track of what computes."""

Notes = tuple[tuple[str, bool | int | float | str], ...]


class Region(Protocol):
    """A part of a network, in one form: each form is one file of this package."""

    def steps(self, draft: Draft) -> list[Step]:
        """What runs it; what it holds is added to ``draft``."""


@dataclass(frozen=True)
class Laid:
    """Regions as steps, and an address for all that they hold.

    Attributes:
        cells: nibbles of the arena; ``bound``: the most that is held at once, no arena is smaller.
    """

    draft: Draft
    body: tuple[Step, ...]
    placed: Placed
    addresses: dict[Key, int]

    @property
    def cells(self) -> int:
        return self.placed.cells

    @property
    def rows(self) -> int:
        """Nibbles without scratch."""
        held = self.draft.held
        keys = (key for key in self.addresses if held[key[0]].buffer.role != "scratch")
        return max(self.taken(key).stop for key in keys)

    def taken(self, key: Key) -> range:
        """The nibbles of a buffer or a row of it."""
        held, first = self.draft.held[key[0]], self.addresses[key]
        if not held.rows:
            return range(first, first + nibbles(held.buffer))
        if held.in_one_piece:
            first += key[1] * to_next_row(held.buffer, self.draft.hardware)
        return range(first, first + row_nibbles(held.buffer))

    @property
    def bound(self) -> int:
        return self.placed.bound

    def plan(self, strategy: str, notes: Notes = ()) -> Plan:
        draft, graph, hardware = self.draft, self.draft.graph, self.draft.hardware
        fixed = constants(graph, hardware, self.cells, draft.elsewhere)
        held = [self._placed(each) for each in draft.held.values()]
        elsewhere = tuple(draft.elsewhere.values())
        image = next(b for b in (*elsewhere, *held) if b.tensor == graph.input)
        resident = (image, *(b for b in elsewhere if b.role == "constant"), *fixed)
        return Plan(
            graph.name,
            strategy,
            (*hardware.memories, *draft.memories),
            (*elsewhere, *held, *fixed),
            (
                Track(PROCESSOR, tuple(map(self._turned, self.body))),
                *(Track(*each) for each in draft.beside.items()),
            ),
            tuple(buffer.name for buffer in resident),
            draft.home[graph.output],
            notes,
            draft.frames,
        )

    def _turned(self, step: Step) -> Step:
        """From the last pixel on, where it overwrites an input that it begins above."""
        key = self._key(step)
        for under, gap in self._overlaps.get(key, ()):
            below = self.taken(under)
            begin = self.taken(key).start - below.start
            if gap.forwards < begin < len(below) and begin not in gap.at:
                assert isinstance(step, Compute)
                columns = range(0, step.out.size[1], step.unit[1])
                return replace(step, order=tuple((0, x, 0) for x in reversed(columns)))
        return step

    def _key(self, step: Step) -> Key:
        """Of what it makes."""
        if not isinstance(step, Compute) or step.out.buffer not in self.draft.held:
            return "", 0
        row = step.out.lo[0]
        rows = self.draft.held[step.out.buffer].rows
        return step.out.buffer, row if rows and isinstance(row, int) else 0

    @cached_property
    def _overlaps(self) -> dict[Key, list[tuple[Key, Gap]]]:
        found: dict[Key, list[tuple[Key, Gap]]] = {}
        for over, under, gap in self.draft.overlaps:
            found.setdefault(over, []).append((under, gap))
        return found

    def _placed(self, held: Held) -> Buffer:
        """What nothing needs, because its readers' windows lie in the padding, is at 0."""
        place, known = held.buffer.map, self.addresses
        if isinstance(place, Rows | Blocks):
            cells = (self.taken(key).start if key in known else 0 for key in held.keys)
            return replace(held.buffer, map=replace(place, cells=tuple(cells)))
        by = next((known[key] for key in held.keys if key in known), 0)
        return replace(held.buffer, map=place.moved(by)) if by else held.buffer


def lay(
    regions: Sequence[Region],
    graph: Graph,
    hardware: Hardware,
    *,
    accumulator_bits: int = 32,
    keep_input: bool = False,
    scratch: bool = True,
    effort: int = EFFORT,
    most_scratch: Mapping[str, int] = MappingProxyType({}),
    asked: Mapping[str, str] = MappingProxyType({}),
) -> Laid:
    """``regions`` one after the other.

    Where something may lie over what it is made of, kernels have their scratch last, where it is
    left: then it is known what did end up over it, and few kernels, and not the fastest, work so.

    Args:
        keep_input: the input is there until the end.
        scratch: kernels may have scratch; see ``with_room``.
        effort: of the placement's exact search; see ``place``.
        most_scratch, asked: see ``Draft``.
    """
    draft = Draft(
        graph, hardware, scratch, accumulator_bits, most_scratch=most_scratch, asked=asked
    )
    found = _placed(draft, _body(regions, draft), keep_input, effort)
    if not draft.overlaps:
        return found
    begun, addresses, bound = _anew(found), found.addresses, found.bound
    del draft, found  # of a large network half of what is held
    return _settled(begun, addresses, bound, regions, keep_input)


def _body(regions: Iterable[Region], draft: Draft) -> tuple[Step, ...]:
    return tuple(step for region in regions for step in region.steps(draft))


def _anew(found: Laid, most_scratch: Mapping[str, int] | None = None) -> Draft:
    """A draft of the same, in which what lies apart does not overlap; ``most_scratch``: see
    ``Draft``; as before, if not said."""
    before = found.draft
    draft = Draft(
        before.graph, before.hardware, before.scratch, before.accumulator_bits,
        apart=before.apart | _apart(found),
        most_scratch=before.most_scratch if most_scratch is None else most_scratch,
        asked=before.asked,
    )  # fmt: skip
    draft.reads, draft.chosen = before.reads, {} if most_scratch else before.chosen
    return draft


def _settled(
    draft: Draft,
    known: Mapping[Key, int],
    bound: int,
    regions: Sequence[Region],
    keep_input: bool = False,
) -> Laid:
    """The ``known`` addresses, but for scratch, with kernels for what does lie over what it is made
    of."""
    body = _body(regions, draft)
    blocks = to_place(draft, body, keep_input)
    fixed = {n: known[key] for key, n in blocks.number.items() if key in known}
    left = [n for n in range(len(blocks.profiles)) if n not in fixed]
    conflicts = Interference(blocks.profiles, blocks.overlaps)
    placed = first_fit(blocks.profiles, conflicts, left, fixed)
    cells = max(at + blocks.profiles[n].size for n, at in placed.items())
    addresses = {key: placed[n] for key, n in blocks.number.items()}
    return Laid(draft, body, Placed((), cells, bound), addresses)


def squeezed(found: Laid, regions: Sequence[Region], cells: int, effort: int) -> Laid:
    """On slower kernels, with less scratch, for the operators whose scratch does not fit ``cells``:
    at the same addresses or, where those kernels could not write over what dies there, at others.

    Args:
        regions: those that were laid, with ``effort``.
    """
    while found.cells > cells and (crowded := _crowded(found, cells)):
        draft, most = found.draft, {**found.draft.most_scratch, **crowded}
        again = _settled(_anew(found, most), found.addresses, found.bound, regions)
        if not _borne(found, again):
            again = lay(regions, draft.graph, draft.hardware, effort=effort, most_scratch=most)
        found = again
    return found


def _crowded(laid: Laid, cells: int) -> dict[str, int]:
    """Operators whose scratch ends above ``cells``, by output: the bytes below that."""
    held, scratch = laid.draft.held, dict[str, int]()
    for step in _computing(laid.body):
        for name in step.scratch:
            if held[name].buffer.role == "scratch" and laid.taken((name, 0)).stop > cells:
                output = laid.draft.graph.operator(step.op).output
                scratch[output] = max(0, cells - laid.addresses[name, 0]) // 2
    return scratch


def _computing(steps: Iterable[Step]) -> Iterator[Compute]:
    """Those of ``steps``, and in their loops, that compute."""
    for step in steps:
        if isinstance(step, Loop):
            yield from _computing(step.body)
        elif isinstance(step, Compute):
            yield step


def _borne(before: Laid, after: Laid) -> bool:
    """Whether the kernels of ``after`` write over what dies as it lies in ``before``."""
    gaps = {(each.over, each.under): each.gap for each in after.draft.overlaps}
    times = Counter(over for over, _ in gaps)
    for each in before.draft.overlaps:
        over, under = before.taken(each.over), before.taken(each.under)
        gap, begin = gaps.get((each.over, each.under)), over.start - under.start
        if over.stop <= under.start or under.stop <= over.start:
            continue
        if gap is None:
            return False
        walls = gap.apart(len(over), len(under), backwards=times[each.over] == 1)
        if any(low < begin < high for low, high in walls):
            return False
    return True


def laid_at(
    regions: Sequence[Region],
    graph: Graph,
    hardware: Hardware,
    cells: int,
    at: Mapping[str, int],
    frames: int = 1,
    kept: int = 0,
) -> Laid:
    """``regions`` whose buffers have their places: in ``cells`` nibbles, those that have no address
    of their own where ``at`` says. Kernels have their scratch above that, as far as there is room,
    of which ``kept`` nibbles are for others."""
    most, limits = room(graph, hardware) - kept, dict[str, int]()
    while True:
        draft = Draft(graph, hardware, cells <= most, frames=frames, most_scratch=limits)
        body = _body(regions, draft)
        top, size, addresses = round_up(cells, WORD), cells, dict[Key, int]()
        for name, held in draft.held.items():
            if held.buffer.role == "scratch":
                addresses[name, 0], size = top, max(size, top + nibbles(held.buffer))
            else:
                addresses[name, 0] = 0 if held.placed else at[name]
        found = Laid(draft, body, Placed((), size, cells), addresses)
        if size <= max(cells, most):
            return found
        limits |= _crowded(found, most)


def with_room(laid: Callable[[bool], Laid]) -> Laid:
    """On the fastest kernels, or, where the board has no room for their scratch, on those that need
    none.

    Args:
        laid: given whether kernels may have scratch.
    """
    found = laid(True)
    draft = found.draft
    crowded = found.cells > room(draft.graph, draft.hardware)
    has_scratch = any(held.buffer.role == "scratch" for held in draft.held.values())
    return laid(False) if crowded and has_scratch else found


def load_of(regions: Sequence[Region], graph: Graph, hardware: Hardware) -> int:
    """Nibbles that ``regions`` hold at most; no scratch."""
    draft = Draft(graph, hardware, scratch=False)
    body = [step for region in regions for step in region.steps(draft)]
    blocks = to_place(draft, body, keep_input=False)
    return load(blocks.profiles, blocks.overlaps)


def _apart(laid: Laid) -> frozenset[tuple[Key, Key]]:
    """What may share cells, and does not."""

    pairs = ((laid.taken(each.over), laid.taken(each.under), each) for each in laid.draft.overlaps)
    return frozenset(
        (each.over, each.under)
        for over, under, each in pairs
        if over.stop <= under.start or under.stop <= over.start
    )


def _placed(
    draft: Draft,
    body: tuple[Step, ...],
    keep_input: bool,
    effort: int,
) -> Laid:
    blocks = to_place(draft, body, keep_input, but=bool(draft.overlaps))
    placed = place(blocks.profiles, blocks.overlaps, effort)
    return Laid(draft, body, placed, {key: placed.addresses[n] for key, n in blocks.number.items()})


def room(graph: Graph, hardware: Hardware, but: Collection[str] = ()) -> int:
    """Nibbles that the board leaves to the arena; ``but``: constants that lie elsewhere."""
    name = hardware.activation_memory
    held = next(memory.bytes for memory in hardware.memories if memory.name == name)
    weights = 0.0
    if hardware.weight_memory == name:
        weights = graph.weight_bytes - sum(graph.tensors[each].bytes for each in but)
    stack = hardware.stack_reserve_bytes if hardware.stack_memory == name else 0
    return 2 * int(held - stack - weights)


def needed(graph: Graph) -> list[Operator]:
    """The operators that the output depends on, in the graph's order."""
    wanted, result = {graph.output}, list[Operator]()
    for op in reversed(graph.operators):
        if op.output in wanted:
            wanted.update(op.inputs)
            result.append(op)
    return result[::-1]
