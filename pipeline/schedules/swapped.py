"""Tiles that come from a card and go back to it while others are computed.

Two tracks: one computes, one moves. Each is a list of jobs, and a counter says how many of them are
done; a job begins once the other track has done so many of its own. These counters are all that
keeps the tracks in step, so a plan is right whatever the times become.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, Self

from pipeline.graph.tensor import Tensor
from pipeline.plan.vocabulary import Buffer, Clear, Index, Signal, Step, Wait, packed
from pipeline.schedules.bounds import Box, Needs, Range, added
from pipeline.schedules.draft import Draft
from pipeline.schedules.roll import rolled

COMPUTING: Final = "cpu"
MOVING: Final = "io"
"""Tracks, and the counters of their jobs."""


@dataclass(frozen=True)
class Window:
    """A place for ``sizes`` neighbouring indices of each axis of ``tensor``, wherever they begin:
    an index lies at its remainder, so that a window that moves on needs no other place.

    Attributes:
        base_bytes: of the first of ``copies`` places, ``copy_bytes`` apart.
        bits: of an element; more than the tensor's are those of sums.
    """

    name: str
    tensor: Tensor
    base_bytes: int
    sizes: tuple[int, ...]
    bits: int = 8
    copies: int = 1
    copy_bytes: int = 0

    def box(self, ranges: Sequence[tuple[int, int]]) -> Box:
        """Return a box: from where to where along each axis. A tile at the tensor's end gets the
        size of the others, though it is cut off there: then it is one more turn of their loop."""
        axes = zip(ranges, self.sizes, self.tensor.shape, strict=True)
        return tuple(
            Range(low, size if size < extent == high else high - low)
            for (low, high), size, extent in axes
        )

    def buffer(self, memory: str) -> Buffer:
        shape = self.tensor.shape
        rings = tuple(0 if n >= extent else n for n, extent in zip(self.sizes, shape, strict=True))
        held = tuple(min(n, extent) for n, extent in zip(self.sizes, shape, strict=True))
        place = replace(packed(held, self.bits, 2 * self.base_bytes), wrap=rings)
        return Buffer(
            self.name, self.tensor.name, memory, shape, self.bits, place,
            "activation" if self.bits == self.tensor.dtype.bits else "accumulator",
            copies=self.copies, copy_stride=2 * self.copy_bytes if self.copies > 1 else 0,
        )  # fmt: skip


Kind = Literal["load", "store", "make", "clear", "add", "finish"]


class Act(NamedTuple):
    """A track's action on the elements ``box`` of the tensor in copy ``copy`` of a window.

    Attributes:
        kind: ``load`` them from the card or ``store`` them there, ``make`` them, or ``clear`` sums
            of them, ``add`` to these and ``finish`` them.
        frame: whose they are; of constants 0.
        op: the operator's name; of a transfer "".
        given: the windows, each with its copy, that it reads what it needs from.
        some: what is added goes over these indices of the last axis of each operand.
    """

    kind: Kind
    window: str
    copy: Index
    box: Box
    frame: Index = 0
    op: str = ""
    given: tuple[tuple[str, Index], ...] = ()
    some: Range | None = None

    @property
    def shape(self) -> tuple[Any, ...]:
        """All but its ``positions``."""
        some = self.some and self.some.size
        sizes, names = [size for _, size in self.box], [name for name, _ in self.given]
        return self.kind, self.window, self.op, some, len(sizes), *sizes, *names

    @property
    def positions(self) -> tuple[Any, ...]:
        some = (self.some.low,) if self.some else ()
        lows, copies = (low for low, _ in self.box), (copy for _, copy in self.given)
        return self.frame, self.copy, *lows, *copies, *some

    @classmethod
    def at(cls, shape: tuple[Any, ...], positions: Sequence[Index]) -> Self:
        """Make an act that has that shape and these positions."""
        (kind, window, op, some, axes, *rest), (frame, copy, *at) = shape, positions
        box = tuple(map(Range, at, rest[:axes]))
        given = tuple(zip(rest[axes:], at[axes:], strict=False))
        return cls(
            kind, window, copy, box, frame, op, given=given, some=some and Range(at[-1], some)
        )


class Job(NamedTuple):
    """``acts`` one after the other, once the other track has done ``after`` jobs."""

    after: int
    acts: tuple[Act, ...]


@dataclass(frozen=True)
class Swapped:
    """
    Attributes:
        stored: tensors that lie on the card, activations once for each frame.
        fixed: constants that stay in the program's memory.
        windows: what is there of them, and of sums, in memory.
        computing, moving: the jobs of the two tracks, made as they are asked for: all acts at once
            may be a million objects.
        bytes: of memory that the windows lie in.
    """

    stored: tuple[str, ...]
    fixed: tuple[str, ...]
    windows: tuple[Window, ...]
    computing: Callable[[], Iterable[Job]]
    moving: Callable[[], Iterable[Job]]
    bytes: int = 0

    def steps(self, draft: Draft) -> list[Step]:
        storage = draft.hardware.storage
        assert storage is not None
        draft.store(self.stored, storage)
        draft.store(self.fixed, next(m for m in draft.hardware.memories if m.kind == "rom"))
        homes = dict(draft.home)
        for window in self.windows:
            draft.put(window.buffer(draft.hardware.activation_memory))
        draft.beside[MOVING] = self._track(self.moving(), COMPUTING, MOVING, draft)
        steps = self._track(self.computing(), MOVING, COMPUTING, draft)
        draft.home |= homes
        return list(steps)

    def _track(self, jobs: Iterable[Job], other: str, own: str, draft: Draft) -> tuple[Step, ...]:
        items, tensors = list[tuple[Hashable, tuple[int, ...]]](), draft.graph.tensors
        reads = {op.name: Needs(op, tensors) for op in draft.graph.operators}
        for job in jobs:
            items += [("wait", (job.after,))] * bool(job.after)
            for act in job.acts:
                # no turn of a loop: it reads padding alone, or none of a part that is joined
                read = reads[act.op](act.box).values() if act.op else ()
                alone = any(not each.size for box in read for each in box)
                items.append(((act.positions * alone, *act.shape), act.positions))
            items.append(("signal", ()))

        def step(shape: Any, positions: Sequence[Index]) -> Step:
            if isinstance(shape, str):
                return Wait(other, *positions) if positions else Signal(own)
            return _step(Act.at(shape[1:], positions), draft)

        return rolled(items, step)


def _step(act: Act, draft: Draft) -> Step:
    """``act``, whose positions may depend on loop variables."""
    buffer, box = draft.buffer(act.window), act.box
    draft.copies = {act.window: act.copy, **dict(act.given)}
    draft.home |= {draft.buffer(name).tensor: name for name, _ in act.given}
    if act.op:
        op, made = draft.graph.operator(act.op), draft.part(buffer, box)
    step: Any
    match act.kind:
        case "load" | "store":
            stored = draft.elsewhere[buffer.tensor]
            draft.copies[stored.name] = act.frame
            ends = (stored, buffer) if act.kind == "load" else (buffer, stored)
            step = draft.move(*ends, box)
        case "make":
            step = draft.compute(op, buffer, box)
        case "add":
            assert act.some is not None
            step = draft.add(op, buffer, box, added(op, draft.graph.tensors, box, act.some))
        case "clear":
            step = Clear(op.name, made)
        case "finish":
            ((sums, _),) = act.given
            step = draft.finish(op, draft.part(draft.buffer(sums), box), made)
    found: Step = replace(step, frame=act.frame)
    return found
