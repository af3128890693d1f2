"""Regions to a plan: their steps, then lifetimes, then addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.placement.blocks import WORD, Interference, load, round_up
from pipeline.placement.constants import constants
from pipeline.placement.fit import NOWHERE, first_fit
from pipeline.placement.place import EFFORT, place
from pipeline.plan.vocabulary import Blocks, Buffer, Compute, Move, Plan, Rows, Step, Track
from pipeline.schedules.bounds import all_of
from pipeline.schedules.draft import Draft, Held
from pipeline.schedules.lifetimes import cells_of, to_next_row, to_place

PROCESSOR = "cpu"
"""The track of what computes."""

Notes = tuple[tuple[str, bool | int | float | str], ...]


class Region(Protocol):
    """A part of a network, in one form: each form is one file of this package."""

    def steps(self, draft: Draft) -> Iterable[Step]:
        """Return the steps that run it; add what it holds to ``draft``."""


@dataclass(frozen=True)
class Laid:
    """Regions as steps, and an address for all that they hold.

    Attributes:
        cells: nibbles of the arena; ``bound``: the most that is held at once, no arena is smaller.
        begins: the address of each buffer, or row of one, by its number; below 0 for none.
    """

    draft: Draft
    regions: Sequence[Region]
    body: tuple[Step, ...]
    cells: int
    bound: int
    begins: IntArray

    @cached_property
    def spans(self) -> IntArray:
        """From where to where each lies, (2, numbers)."""
        spans = np.stack([self.begins, self.begins])
        for held in self.draft.held.values():
            spans[1, held.first : held.numbers.stop] += cells_of(held)
        return spans

    @property
    def rows(self) -> int:
        """Nibbles without scratch."""
        held = (each for each in self.draft.held.values() if each.buffer.role != "scratch")
        return max(int(self.spans[1, each.first : each.numbers.stop].max()) for each in held)

    def plan(self, strategy: str, notes: Notes = ()) -> Plan:
        draft, graph, hardware = self.draft, self.draft.graph, self.draft.hardware
        fixed = constants(graph, hardware, self.cells, draft.elsewhere)
        held = [self._placed(each) for each in draft.held.values()]
        elsewhere = tuple(draft.elsewhere.values())
        first = {b.tensor: b for b in reversed((*elsewhere, *held)) if b.tensor in graph.starts}
        images = [first[name] for name in graph.starts]
        resident = (*images, *(b for b in elsewhere if b.role == "constant"), *fixed)
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
            outputs=tuple(draft.home[name] for name in graph.outputs),
            states=tuple(draft.home[each.made] for each in graph.states),
            notes=notes,
            frames=draft.frames,
        )

    def _turned(self, step: Step) -> Step:
        """Go from the last pixel on, where it overwrites an input that it begins above."""
        if not isinstance(step, Compute):
            return step
        held = self.draft.held.get(step.out.buffer)
        row = step.out.lo[0] if held and held.rows else 0
        if not held or not isinstance(row, int) or held.numbers[row] not in self._backwards:
            return step
        columns = range(0, step.out.size[1], step.unit[1])
        return replace(step, order=tuple((0, x, 0) for x in reversed(columns)))

    @cached_property
    def _backwards(self) -> set[int]:
        """Find the numbers of outputs that begin above an input that they overwrite."""
        found = set[int]()
        begins, ends = self.spans
        for over, under, safe in self.draft.overlaps:
            begin, size = begins[over] - begins[under], ends[under] - begins[under]
            if safe.forwards < begin < size and begin not in safe.at:
                found.add(over)
        return found

    def _placed(self, held: Held) -> Buffer:
        """Place what is held, at 0 if nothing needs it: its readers' windows lie in padding."""
        place, begins = held.buffer.map, self.begins[held.first : held.numbers.stop]
        if isinstance(place, Rows | Blocks):
            cells = tuple(np.maximum(begins, 0).tolist())
            return replace(held.buffer, map=replace(place, cells=cells))
        step = to_next_row(held.buffer, self.draft.hardware) if held.in_one_piece else 0
        by = next((int(at) - n * step for n, at in enumerate(begins) if at >= 0), 0)
        return replace(held.buffer, map=place.moved(by)) if by else held.buffer


def lay(
    regions: Sequence[Region],
    draft: Draft,
    *,
    keep_input: bool = False,
    effort: int = EFFORT,
    cells: float | None = None,
    others: Iterable[Sequence[Region]] = (),
    enough: int = 0,
) -> Laid:
    """``regions`` one after the other, in drafts like ``draft``, that share what it knows.

    Where something may lie over what it is made of, kernels have their scratch last, where it is
    left: then it is known what did end up over it, and few kernels, and not the fastest, work so.

    Args:
        keep_input: the input is there until the end.
        effort: of the placement's exact search; see ``place``.
        cells: nibbles; where they don't suffice kernels have less scratch, at the same addresses
            or, where such kernels could not write over what dies there, at others. If not said, the
            board's room.
        others: regions that compute the same, one after the other in place of ``regions`` until
            some take ``enough`` nibbles, scratch apart; those that take least are laid.
    """
    limit = room(draft.graph, draft.hardware) if cells is None else cells
    found = _laid(draft, (regions, *others), keep_input, effort, enough)
    last = found.draft.known is not None
    while found.cells > limit and (crowded := _crowded(found, limit, last)):
        draft = replace(draft, most_scratch={**found.draft.most_scratch, **crowded})
        begun = replace(draft, known=found.spans)
        same = _settled(begun, found.regions, found.bound, keep_input, True) if last else None
        found = same or _laid(draft, (found.regions,), keep_input, effort)
    return found


def _laid(
    draft: Draft, ways: Iterable[Sequence[Region]], keep_input: bool, effort: int, enough: int = 0
) -> Laid:
    best: Laid | None = None
    for regions in ways:
        if best is None or best.rows > enough:
            found = _placed(replace(draft), regions, keep_input, effort)
            best = min(best or found, found, key=lambda laid: laid.rows)
    assert best is not None
    if not best.draft.overlaps.offsets:
        return best
    begun, regions, bound = replace(best.draft, known=best.spans), best.regions, best.bound
    del best, found  # of a large network much of what is held
    settled = _settled(begun, regions, bound, keep_input)
    assert settled, "kernels write over what dies as they were said to"
    return settled


def _placed(draft: Draft, regions: Sequence[Region], keep_input: bool, effort: int) -> Laid:
    """Place without steps, and scratch, where something may overlap."""
    body = list[Step]()
    blocks = to_place(draft, _noted(_steps(regions, draft), draft, body), keep_input, but=True)
    placed = place(blocks.profiles, blocks.overlaps, effort)
    begins = blocks.begins(placed.addresses)
    return Laid(draft, regions, tuple(body), placed.cells, placed.bound, begins)


def _steps(regions: Iterable[Region], draft: Draft) -> Iterator[Step]:
    for region in regions:
        yield from region.steps(draft)
    yield from _kept(draft)


def _kept(draft: Draft) -> Iterator[Move]:
    """Move each state that was not made in the place of the one that was read."""
    for state in draft.graph.states:
        read, made = draft.home[state.read], draft.home[state.made]
        if draft.base(made) != (read, 0):
            source, place = draft.buffer(made), draft.buffer(read).map
            target = draft.hold_at(state.made, place, "kept", over=read)
            yield draft.move(source, target, all_of(source.shape))


def _noted(steps: Iterable[Step], draft: Draft, body: list[Step]) -> Iterator[Step]:
    for step in steps:
        body.append(step)
        if draft.overlaps.offsets:
            body.clear()
        yield step


def _settled(
    draft: Draft, regions: Sequence[Region], bound: int, keep_input: bool, slower: bool = False
) -> Laid | None:
    """Return the addresses that the ``draft`` knows, but for scratch, with kernels for what does
    lie over what it is made of; None where ``slower`` ones may not."""
    assert draft.known is not None
    body = tuple(_steps(regions, draft))
    blocks = to_place(draft, body, keep_input)
    fixed = blocks.addresses(draft.known[0])
    conflicts = Interference(blocks.profiles, blocks.overlaps)
    placed = first_fit(conflicts, np.flatnonzero(fixed == NOWHERE).tolist(), fixed)
    if slower and conflicts.met(placed):
        return None
    cells = int((placed + blocks.profiles.size).max())
    return Laid(draft, regions, body, cells, bound, blocks.begins(placed))


def _crowded(laid: Laid, cells: float, last: bool = True) -> dict[str, int]:
    """Operators whose scratch is too much for ``cells``, by output: the bytes that are left for it
    where it was placed ``last``; else none, for all of them."""
    draft, found = laid.draft, dict[str, int]()
    for op in draft.graph.operators:
        scratch = draft.held.get(draft.graph.beside(op.output, "scratch"))
        if scratch and (not last or laid.spans[1, scratch.first] > cells):
            left = int(cells) - int(laid.begins[scratch.first]) if last else 0
            found[op.output] = max(0, left) // 2
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
        body = tuple(_steps(regions, draft))
        top, size, begins = round_up(cells, WORD), cells, np.zeros(draft.count, dtype=int)
        for name, held in draft.held.items():
            if held.buffer.role == "scratch":
                begins[held.first], size = top, max(size, top + cells_of(held))
            elif not held.placed:
                begins[held.first] = at[name]
        found = Laid(draft, regions, body, size, cells, begins)
        if size <= limit:
            return found
        most |= _crowded(found, limit)


def load_of(regions: Sequence[Region], graph: Graph, hardware: Hardware) -> int:
    """Nibbles that ``regions`` hold at most; no scratch."""
    draft = Draft(graph, hardware, most_scratch={op.output: 0 for op in graph.operators})
    blocks = to_place(draft, _steps(regions, draft), keep_input=False)
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
    """Return the operators that the outputs depend on, in the graph's order.

    Raises:
        ThimbleError: where there are none.
    """
    if not {*graph.starts, *graph.constants}.isdisjoint(graph.ends):
        raise ThimbleError(f"{graph.name} has nothing to compute, its output is given: try another")
    wanted, result = set(graph.ends), list[Operator]()
    for op in reversed(graph.operators):
        if op.output in wanted:
            wanted.update(op.inputs)
            result.append(op)
    return result[::-1]
