"""Regions to a plan: their steps, then lifetimes, then addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.placement.blocks import WORD, Interference, load, round_up
from pipeline.placement.constants import constants
from pipeline.placement.fit import first_fit
from pipeline.placement.place import EFFORT, place
from pipeline.plan.vocabulary import Blocks, Buffer, Compute, Index, Plan, Rows, Step, Track
from pipeline.schedules.draft import Draft, Held, Key
from pipeline.schedules.lifetimes import nibbles, row_nibbles, to_next_row, to_place

PROCESSOR = "cpu"
"""The track of what computes."""

Notes = tuple[tuple[str, bool | int | float | str], ...]


class Region(Protocol):
    """A part of a network, in one form: each form is one file of this package."""

    def steps(self, draft: Draft) -> list[Step]:
        """Return the steps that run it; add what it holds to ``draft``."""


@dataclass(frozen=True)
class Laid:
    """Regions as steps, and an address for all that they hold.

    Attributes:
        cells: nibbles of the arena; ``bound``: the most that is held at once, no arena is smaller.
    """

    draft: Draft
    body: tuple[Step, ...]
    cells: int
    bound: int
    addresses: dict[Key, int]

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
            tracks=(
                Track(PROCESSOR, tuple(map(self._turned, self.body))),
                *(Track(*each) for each in draft.beside.items()),
            ),
            resident=tuple(buffer.name for buffer in resident),
            output=draft.home[graph.output],
            notes=notes,
            frames=draft.frames,
        )

    def _turned(self, step: Step) -> Step:
        """From the last pixel on, where it overwrites an input that it begins above."""
        if not isinstance(step, Compute):
            return step
        held, row = self.draft.held.get(step.out.buffer), step.out.lo[0]
        if (step.out.buffer, row if held and held.rows else 0) not in self._backwards:
            return step
        columns = range(0, step.out.size[1], step.unit[1])
        return replace(step, order=tuple((0, x, 0) for x in reversed(columns)))

    @cached_property
    def _backwards(self) -> set[tuple[str, Index]]:
        """Find outputs that begin above an input that they overwrite."""
        found = set[tuple[str, Index]]()
        for over, under, gap in self.draft.overlaps:
            below = self.taken(under)
            begin = self.taken(over).start - below.start
            if gap.forwards < begin < len(below) and begin not in gap.at:
                found.add(over)
        return found

    def _placed(self, held: Held) -> Buffer:
        """Place what is held, at 0 if nothing needs it: its readers' windows lie in padding."""
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
    effort: int = EFFORT,
    asked: Mapping[str, str] = MappingProxyType({}),
    cells: float | None = None,
    alike: Draft | None = None,
) -> Laid:
    """``regions`` one after the other.

    Where something may lie over what it is made of, kernels have their scratch last, where it is
    left: then it is known what did end up over it, and few kernels, and not the fastest, work so.

    Args:
        keep_input: the input is there until the end.
        effort: of the placement's exact search; see ``place``.
        asked: see ``Draft``.
        cells: nibbles; where they don't suffice kernels have less scratch, at the same addresses
            or, where such kernels could not write over what dies there, at others. If not said, the
            board's room.
        alike: a draft of the same graph; what it knows of operators is used.
    """
    limit = room(graph, hardware) if cells is None else cells
    draft = Draft(graph, hardware, accumulator_bits, asked=asked)
    if alike:
        draft = replace(draft, reads=alike.reads, chosen=alike.chosen)
    found = _laid(replace(draft), regions, keep_input, effort)
    last = bool(found.draft.overlaps or found.draft.apart)
    while found.cells > limit and (crowded := _crowded(found, limit, last)):
        known, begun = found.addresses, _anew(found, {**found.draft.most_scratch, **crowded})
        draft = replace(draft, most_scratch=begun.most_scratch)
        same = _settled(begun, known, found.bound, regions, keep_input, True) if last else None
        found = same or _laid(replace(draft), regions, keep_input, effort)
    return found


def _laid(draft: Draft, regions: Sequence[Region], keep_input: bool, effort: int) -> Laid:
    body = _body(regions, draft)
    blocks = to_place(draft, body, keep_input, but=bool(draft.overlaps))
    placed = place(blocks.profiles, blocks.overlaps, effort)
    addresses = {key: placed.addresses[n] for key, (n, _) in blocks.at.items()}
    found = Laid(draft, body, placed.cells, placed.bound, addresses)
    if not draft.overlaps:
        return found
    begun = _anew(found, draft.most_scratch)
    del draft, body, blocks, found  # of a large network half of what is held
    settled = _settled(begun, addresses, placed.bound, regions, keep_input)
    assert settled, "kernels write over what dies as they were said to"
    return settled


def _body(regions: Iterable[Region], draft: Draft) -> tuple[Step, ...]:
    found = tuple(step for region in regions for step in region.steps(draft))
    draft.reads.clear()  # of many layers much of what is held
    return found


def _anew(found: Laid, most_scratch: Mapping[str, int]) -> Draft:
    """A draft of the same, in which what lies apart does not overlap."""
    before = found.draft
    pairs = ((found.taken(each.over), found.taken(each.under), each) for each in before.overlaps)
    apart = frozenset(
        (each.over, each.under)
        for over, under, each in pairs
        if over.stop <= under.start or under.stop <= over.start
    )
    return replace(before, apart=before.apart | apart, most_scratch=most_scratch)


def _settled(
    draft: Draft,
    known: Mapping[Key, int],
    bound: int,
    regions: Sequence[Region],
    keep_input: bool,
    slower: bool = False,
) -> Laid | None:
    """The ``known`` addresses, but for scratch, with kernels for what does lie over what it is made
    of; None where ``slower`` ones may not."""
    body = _body(regions, draft)
    blocks = to_place(draft, body, keep_input)
    fixed = {n: known[key] for key, (n, _) in blocks.at.items() if key in known}
    left = [n for n in range(len(blocks.profiles)) if n not in fixed]
    conflicts = Interference(blocks.profiles, blocks.overlaps)
    placed = first_fit(blocks.profiles, conflicts, left, fixed)
    if slower and conflicts.met(placed):
        return None
    cells = max(at + blocks.profiles[n].size for n, at in placed.items())
    addresses = {key: placed[n] for key, (n, _) in blocks.at.items()}
    return Laid(draft, body, cells, bound, addresses)


def _crowded(laid: Laid, cells: float, last: bool = True) -> dict[str, int]:
    """Operators whose scratch is too much for ``cells``, by output: the bytes that are left for it
    where it was placed ``last``; else none, for all of them."""
    draft, found = laid.draft, dict[str, int]()
    for op in draft.graph.operators:
        key = draft.graph.beside(op.output, "scratch"), 0
        if key[0] in draft.held and (not last or laid.taken(key).stop > cells):
            found[op.output] = max(0, int(cells) - laid.addresses[key]) // 2 if last else 0
    return found


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
    limit, most = max(cells, room(graph, hardware) - kept), dict[str, int]()
    while True:
        draft = Draft(graph, hardware, frames=frames, most_scratch=most)
        body = _body(regions, draft)
        top, size, addresses = round_up(cells, WORD), cells, dict[Key, int]()
        for name, held in draft.held.items():
            if held.buffer.role == "scratch":
                addresses[name, 0], size = top, max(size, top + nibbles(held.buffer))
            else:
                addresses[name, 0] = 0 if held.placed else at[name]
        found = Laid(draft, body, size, cells, addresses)
        if size <= limit:
            return found
        most |= _crowded(found, limit)


def load_of(regions: Sequence[Region], graph: Graph, hardware: Hardware) -> int:
    """Nibbles that ``regions`` hold at most; no scratch."""
    draft = Draft(graph, hardware, most_scratch={op.output: 0 for op in graph.operators})
    blocks = to_place(draft, _body(regions, draft), keep_input=False)
    return load(blocks.profiles, blocks.overlaps)


def room(graph: Graph, hardware: Hardware, but: Collection[str] = ()) -> int:
    """Nibbles that the board leaves to the arena; ``but``: constants that lie elsewhere."""
    name = hardware.activation_memory
    held = hardware.bytes_of(name)
    weights = 0.0
    if hardware.weight_memory == name:
        weights = graph.weight_bytes - sum(graph.tensors[each].bytes for each in but)
    stack = hardware.stack_reserve_bytes if hardware.stack_memory == name else 0
    return 2 * int(held - stack - weights)


def needed(graph: Graph) -> list[Operator]:
    """The operators that the output depends on, in the graph's order.

    Raises:
        ThimbleError: where there are none.
    """
    if graph.output == graph.input or graph.output in graph.constants:
        raise ThimbleError(f"{graph.name} has nothing to compute, its output is given: try another")
    wanted, result = {graph.output}, list[Operator]()
    for op in reversed(graph.operators):
        if op.output in wanted:
            wanted.update(op.inputs)
            result.append(op)
    return result[::-1]
