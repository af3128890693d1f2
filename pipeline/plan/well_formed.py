"""Does a plan mean anything? Looked at once, when it is made: types, names, ranks and sizes.

What is checked here holds for every ``Plan`` there is, so its readers need not: each name is of
something that exists, each slice has its buffer's rank, each loop variable is bound, a walk ends
soon, and memories are of a size that a computer can hold. Whether the plan is right is another
question (``verify``).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pipeline.errors import PlanError
from pipeline.plan.buffers import AHEAD, MOST_COPIES, PASSING, Buffer
from pipeline.plan.maps import Affine
from pipeline.plan.parts import Parts
from pipeline.plan.steps import (
    Compute,
    Finish,
    Index,
    Lin,
    Loop,
    Move,
    Signal,
    Slice,
    Statement,
    Step,
    Track,
    Wait,
    touched,
)
from pipeline.typed import misfit

MOST_STEPS = 4_000_000
"""Most steps of a plan, loops unrolled: seven times what VGG16 takes in tiles of 16 KiB."""

MOST_DEPTH = 32
"""Most levels of nested loops."""

MOST_BYTES = 1 << 31
"""Most bytes that the buffers of a plan reach, all memories together."""

MOST_ELEMENTS = 1 << 31
"""Most elements of a buffer: more than its memory holds if elements share cells, as in a ring."""

MOST_TRACKS = 16


def check(plan: Parts) -> None:
    """
    Raises:
        PlanError: the first thing that no reader of the plan could make sense of.
    """
    _size(plan)
    if problem := misfit(plan):
        raise PlanError(f"damaged plan: {problem}")
    _memories(plan)
    _buffers(plan)
    for track in plan.tracks:
        for step, scope in _scopes(track.steps, ()):
            _step(plan, step, scope)


def statements(plan: Parts) -> Iterator[Statement]:
    """Yield every step but loops, once, however often loops run it."""
    for track in plan.tracks:
        yield from (step for step, _ in _scopes(track.steps, ()))


def _size(plan: Parts) -> None:
    """Check the size of the walk: nothing else may follow a plan's loops before this."""
    known: dict[int, tuple[int, int]] = {}

    def size(steps: tuple[Step, ...], outer: int) -> tuple[int, int]:
        """Steps when unrolled, and depth of the loops among them."""
        number = depth = 0
        if type(steps) is not tuple:
            raise PlanError("damaged plan: the steps of a track or a loop are no tuple")
        for step in steps:
            if not isinstance(step, Loop):
                number += 1
                continue
            if outer >= MOST_DEPTH:
                raise PlanError(f"loops are nested more than {MOST_DEPTH} deep")
            if type(step.count) is not int or step.count < 1 or not step.body:
                raise PlanError(f"loop {step.var!r} runs nothing: count {step.count!r}")
            if id(step) not in known:
                known[id(step)] = size(step.body, outer + 1)
            inner, below = known[id(step)]
            number, depth = number + step.count * inner, max(depth, 1 + below)
            if number > MOST_STEPS or outer + depth > MOST_DEPTH:
                raise PlanError(
                    f"more than {MOST_STEPS} steps, or loops more than {MOST_DEPTH} deep: "
                    "larger tiles make fewer steps"
                )
        return number, depth

    if type(plan.tracks) is not tuple or not all(isinstance(t, Track) for t in plan.tracks):
        raise PlanError("damaged plan: its tracks are none")
    if len(plan.tracks) > MOST_TRACKS:
        raise PlanError(f"a plan has no more than {MOST_TRACKS} tracks, not {len(plan.tracks)}")
    if not 0 < sum(size(track.steps, 0)[0] for track in plan.tracks) <= MOST_STEPS:
        raise PlanError(f"a plan has 1 to {MOST_STEPS} steps")


def _memories(plan: Parts) -> None:
    _distinct("memory", [memory.name for memory in plan.memories])
    for memory in plan.memories:
        if memory.bytes < 0 or memory.granule_bytes < 1:
            raise PlanError(
                f"memory {memory.name} has {memory.bytes} B in granules of {memory.granule_bytes}"
            )


def _buffers(plan: Parts) -> None:
    _distinct("buffer", [buffer.name for buffer in plan.buffers])
    _distinct("track", [track.name for track in plan.tracks])
    _distinct("resident buffer", list(plan.resident))
    _distinct("output", list(plan.outputs))
    _distinct("state", list(plan.states))
    reach = dict.fromkeys(plan.memory, 0)
    for buffer in plan.buffers:
        if buffer.memory not in plan.memory:
            raise PlanError(f"buffer {buffer.name} is in an unknown memory {buffer.memory}")
        if prod(buffer.shape) > MOST_ELEMENTS:
            raise PlanError(f"buffer {buffer.name} has {prod(buffer.shape)} elements")
        low, high = buffer.extent
        if buffer.role in PASSING:
            if plan.memory[buffer.memory].kind != "ram":
                raise PlanError(f"scratch {buffer.name} is in {buffer.memory}, which is no RAM")
            if buffer.run(buffer.box) is None or buffer.held != buffer.box:
                raise PlanError(f"scratch {buffer.name} is not in one piece")
        line = 2 * plan.memory[buffer.memory].granule_bytes
        for other in plan.buffers if buffer.role == AHEAD else ():
            if other is not buffer and other.meets(buffer, line):
                raise PlanError(f"{other.name} lies where inputs are fed ahead, in {buffer.name}")
        reach[buffer.memory] = max(reach[buffer.memory], high, high - low, -low)
    if sum(reach.values()) > 2 * MOST_BYTES:
        raise PlanError(f"buffers reach more than {MOST_BYTES} B: addresses are wrong")
    if not 1 <= plan.frames <= MOST_COPIES:
        raise PlanError(f"a plan is for 1 to {MOST_COPIES} frames, not {plan.frames}")
    for name in (*plan.resident, *plan.outputs, *plan.states):
        buffer = _buffer(plan, name)
        if buffer.role not in ("activation", "constant"):
            raise PlanError(
                f"{buffer.role} buffer {name} is resident or an output, yet holds no elements"
            )
        if buffer.held != buffer.box:
            raise PlanError(f"buffer {name} is resident or an output, yet holds only a part")


def _distinct(what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise PlanError(f"there are two of {what} {twice}")


def _scopes(
    steps: tuple[Step, ...], scope: tuple[str, ...]
) -> Iterator[tuple[Statement, tuple[str, ...]]]:
    """Yield every step but loops, once, with the loop variables around it."""
    for step in steps:
        if not isinstance(step, Loop):
            yield step, scope
            continue
        if not step.var:
            raise PlanError("a loop's variable has no name")
        if step.var in scope:
            raise PlanError(f"loop {step.var} is inside of another loop {step.var}")
        yield from _scopes(step.body, (*scope, step.var))


def _step(plan: Parts, step: Statement, scope: tuple[str, ...]) -> None:
    if isinstance(step, Signal):
        return
    if isinstance(step, Wait):
        _bound(step.at_least, scope)
        return
    _bound(step.frame, scope)
    for piece in touched(step):
        _slice(plan, piece, scope)
        memory = plan.memory[plan.buffer[piece.buffer].memory]
        if memory.kind == "block" and not isinstance(step, Move):
            raise PlanError(f"{step.op} uses {piece.buffer} in {memory.name}: only moves can")
    if isinstance(step, Compute | Finish):
        unit, axes = step.unit, len(step.out.lo)
        if unit and (len(unit) != axes or min(unit) < 1):
            raise PlanError(f"units of {unit} do not divide the {axes} axes of {step.op}")
    if isinstance(step, Compute):
        if step.delay < 0 or (step.delay and step.partial):
            raise PlanError(f"{step.op} is delayed by {step.delay} units, partial={step.partial}")
        if any(len(origin) != len(step.out.lo) for origin in step.order):
            raise PlanError(f"the order of {step.op} names places that have not its axes")
        for n, name in enumerate(step.scratch):
            _scratch(plan, step, name)
            if any(plan.buffer[name].meets(plan.buffer[other]) for other in step.scratch[:n]):
                raise PlanError(f"scratch {name} of {step.op} lies on another scratch of it")


def _slice(plan: Parts, piece: Slice, scope: tuple[str, ...]) -> None:
    buffer = _buffer(plan, piece.buffer)
    if buffer.role in PASSING:
        raise PlanError(f"a slice of scratch {buffer.name}: scratch holds no elements")
    if not len(piece.lo) == len(piece.size) == len(buffer.shape):
        raise PlanError(f"a slice of {buffer.name} has not its {len(buffer.shape)} axes")
    if min(piece.size) < 0:
        raise PlanError(f"a slice of {buffer.name} has {min(piece.size)} indices along an axis")
    for index in (*piece.lo, piece.copy):
        _bound(index, scope)
    if isinstance(buffer.map, Affine) and buffer.map.held and all(piece.size):
        _in_part(buffer, piece)


def _in_part(buffer: Buffer, piece: Slice) -> None:
    """Check that a slice stays in the held part of its tensor, whatever loops run the step."""
    for low, size, (first, stop) in zip(piece.lo, piece.size, buffer.held, strict=True):
        if not isinstance(low, int) or low < first or low + size > stop:
            raise PlanError(f"a slice of {buffer.name} reaches beyond the part that it holds")


def _scratch(plan: Parts, step: Compute, name: str) -> None:
    buffer = _buffer(plan, name)
    if buffer.role not in PASSING or buffer.role == AHEAD:
        raise PlanError(f"{step.op} takes {buffer.role} buffer {name} for scratch")


def _buffer(plan: Parts, name: str) -> Buffer:
    buffer = plan.buffer.get(name)
    if buffer is None:
        raise PlanError(f"there is no buffer {name}")
    return buffer


def _bound(index: Index, scope: tuple[str, ...]) -> None:
    if isinstance(index, Lin):
        unknown = [name for name, _ in index.coef if name not in scope]
        if unknown:
            raise PlanError(f"there is no loop {unknown[0]} around a step that counts by it")
