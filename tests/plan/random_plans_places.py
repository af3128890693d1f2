"""Random places for the buffers of a draft whose steps are in a row: right for that row, and often
just so, but for an output that is laid over an input, a little higher or lower."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from pipeline.plan.vocabulary import Affine, Blocks, Buffer, Compute, Rows, Table, packed
from tests.plan.random_plans_steps import Draft, Place, Task

Span = tuple[int, int]


def placed(draft: Draft, row: list[Task], output: str) -> None:
    """Give every buffer a map. Some computations get scratch."""
    lives = _lives(draft, row, output)
    for name, buffer in draft.buffers.items():
        wrap: Place = ()
        if name not in (*draft.resident, output):
            wrap = _ring(draft, buffer, row) if draft.chance(0.3 + 0.4 * draft.streams) else ()
        draft.buffers[name] = _mapped(draft, buffer, wrap)
    _scratch(draft, row, lives)
    mode = draft.pick("apart", "lives", "lives", "lives", "lives", "loose", "loose")
    names = list(draft.buffers)
    if draft.chance(0.7):
        names = draft.shuffled(names)
    for n, name in enumerate(names):
        base = _base(draft, name, names[:n], lives, mode)
        draft.buffers[name] = _moved(draft.buffers[name], base)
    if draft.frames == 1 and draft.chance(0.4):
        _over_an_input(draft, row, lives)


def _moved(buffer: Buffer, by: int) -> Buffer:
    return replace(buffer, map=buffer.map.moved(by))


def _meet(a: Span, b: Span) -> bool:
    """Two lives, both ends included."""
    return a[0] <= b[1] and b[0] <= a[1]


def _lives(draft: Draft, row: list[Task], output: str) -> dict[str, Span]:
    """The first and the last step that touches each buffer."""
    lives: dict[str, Span] = {}
    for n, task in enumerate(row):
        for name, _, _ in task.needs | task.makes:
            lives[name] = (lives.get(name, (n, n))[0], n)
    for name in draft.resident:
        kept = draft.buffers[name].tensor in draft.graph.constants
        lives[name] = (-1, len(row) if kept else lives.get(name, (0, 0))[1])
    for name in draft.buffers:
        lives.setdefault(name, (0, len(row)))
    lives[output] = (lives[output][0], len(row))
    return lives


def _ring(draft: Draft, buffer: Buffer, row: list[Task]) -> Place:
    """A modulus along one axis with which no two indices are needed in one place at a time."""
    axis = 0 if draft.chance(0.6) else draft.below(len(buffer.shape))
    lives: dict[tuple[int, int], Span] = {}
    for n, task in enumerate(row):
        for name, copy, place in task.needs | task.makes:
            if name == buffer.name:
                key = (copy, place[axis])
                lives[key] = (lives.get(key, (n, n))[0], n)

    def right(ring: int) -> bool:
        return not any(
            a != b and a[0] == b[0] and a[1] % ring == b[1] % ring and _meet(lives[a], lives[b])
            for a, b in product(lives, lives)
        )

    ring = next((w for w in range(1, buffer.shape[axis]) if right(w)), buffer.shape[axis])
    ring += draft.chance(0.3)
    return tuple(ring if d == axis else 0 for d in range(len(buffer.shape)))


def _mapped(draft: Draft, buffer: Buffer, wrap: Place) -> Buffer:
    """``buffer`` with a map of its shape, its lowest nibble at 0."""
    shape, width = buffer.shape, buffer.bits // 4
    if buffer.memory == "stream":
        return replace(buffer, copy_stride=prod(shape) * width)
    if not wrap and draft.chance(0.2):
        make = _rows if draft.chance(0.5) else _table
        made = replace(buffer, map=make(draft, shape, width), copies=1)
    else:
        made = replace(buffer, map=_affine(draft, shape, wrap, width), copies=1)
    made = _moved(made, -made.extent[0])
    even = min(width, 2)
    stride = -(-made.extent[1] // even) * even + even * draft.pick(0, 0, 0, 1, 2)
    return replace(made, copies=buffer.copies, copy_stride=stride)


def _table(draft: Draft, shape: Place, width: int) -> Table:
    count = prod(shape)
    return Table(tuple(_anywhere(draft, count, width)))


def _anywhere(draft: Draft, count: int, each: int) -> list[int]:
    numbers = draft.rng.permutation(count + draft.below(4))[:count]
    return [each * int(n - min(numbers)) for n in numbers]


def _rows(draft: Draft, shape: Place, width: int) -> Rows | Blocks:
    """Each index of the first axis anywhere; the elements of one side by side, or in blocks."""
    if len(shape) == 3 and draft.chance(0.5):
        cells = _anywhere(draft, shape[0], prod(shape[1:]) * width)
        return Blocks(tuple(cells), 1 + draft.below(4), width)
    inner = _affine(draft, shape[1:], (), width) if len(shape) > 1 else Affine(0, ())
    low, high = inner.extent(shape[1:], width)
    cells = _anywhere(draft, shape[0], high - low)
    return Rows(tuple(cell - low for cell in cells), inner.strides)


def _affine(draft: Draft, shape: Place, wrap: Place, width: int) -> Affine:
    """The axes in some order, side by side or with gaps, some backwards."""
    extents = [min(n, w or n) for n, w in zip(shape, wrap or (0,) * len(shape), strict=True)]
    axes = list(reversed(range(len(shape))))
    if draft.chance(0.25):
        axes = draft.shuffled(axes)
    strides, step = [0] * len(shape), width
    for axis in axes:
        strides[axis] = -step if draft.chance(0.06) else step
        step *= extents[axis]
        if draft.chance(0.08):
            step += min(width, 2) * (1 + draft.below(2))
    return Affine(0, tuple(strides), wrap)


def _base(draft: Draft, name: str, done: list[str], lives: dict[str, Span], mode: str) -> int:
    """A base at which the buffer meets no placed one that lives at the same time."""
    buffer = draft.buffers[name]
    if buffer.memory == "stream":
        return 0
    beside = [draft.buffers[o] for o in done if draft.buffers[o].memory == buffer.memory]
    others = [b.extent for b in beside if mode == "apart" or _meet(lives[name], lives[b.name])]
    high, top = buffer.extent[1], max((b for _, b in others), default=0)
    free = [
        base
        for base in range(0, top + 8, min(buffer.bits // 4, 2))
        if not any(base < b and a < base + high for a, b in others)
    ]
    return int(draft.pick(*free[: 3 if mode == "loose" else 1]))


def _scratch(draft: Draft, row: list[Task], lives: dict[str, Span]) -> None:
    """A buffer for one or two computations."""
    computes = [n for n, task in enumerate(row) if isinstance(task.step, Compute)]
    if not computes or not draft.chance(0.25):
        return
    shape, bits = (1 + draft.below(4),), draft.pick(4, 8, 16)
    draft.buffers["scratch"] = Buffer(
        "scratch", "", draft.pick("sram", "other"), shape, bits, packed(shape, bits), "scratch"
    )
    users = sorted({draft.pick(*computes), draft.pick(*computes)})
    for n in users:
        row[n].step = replace(row[n].step, scratch=("scratch",))
    lives["scratch"] = (users[0], users[-1])


def _over_an_input(draft: Draft, row: list[Task], lives: dict[str, Span]) -> None:
    """Put the output of a step that makes all of a tensor over an input that it needs last,
    shifted by a little: whether that is right depends on the order of its units."""
    for n, task in enumerate(row):
        step = task.step
        if not isinstance(step, Compute) or step.partial:
            continue
        out = draft.buffers[step.out.buffer]
        dying = [
            buffer
            for buffer in (draft.buffers[piece.buffer] for piece in step.ins)
            if lives[buffer.name][1] == n and buffer.memory == out.memory
        ]
        if lives[out.name][0] == n and step.out.size == out.shape and dying:
            over = draft.pick(*dying)
            even = 2 if max(out.bits, over.bits) > 4 else 1
            shift = over.extent[0] - out.extent[0] + even * (draft.below(10) - 6)
            draft.buffers[out.name] = _moved(out, max(shift, -out.extent[0]))
            return
