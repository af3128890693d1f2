"""Random places for the buffers of a draft whose steps are in a row: right for that row when
nothing slips, and often just so."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from pipeline.plan.vocabulary import Affine, Blocks, Buffer, Compute, Rows, Table, packed
from tests.plan.random_plans_draft import Draft, Place, Task
from tests.plan.random_plans_over import Span, extent, meet, moved, over_inputs


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
    if draft.slip(0.08):
        mode = "anywhere"
    names = list(draft.buffers)
    if draft.chance(0.7):
        names = draft.shuffled(names)
    for n, name in enumerate(names):
        base = _base(draft, name, names[:n], lives, mode)
        draft.buffers[name] = moved(draft.buffers[name], base)
    if draft.chance(0.4):
        over_inputs(draft, row, lives)


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
            a != b and a[0] == b[0] and a[1] % ring == b[1] % ring and meet(lives[a], lives[b])
            for a, b in product(lives, lives)
        )

    ring = next((w for w in range(1, buffer.shape[axis]) if right(w)), buffer.shape[axis])
    ring += draft.chance(0.3)
    if ring > 1:
        ring -= draft.slip(0.1)
    if ring < buffer.shape[axis]:
        draft.features.add("ring")
    return tuple(ring if d == axis else 0 for d in range(len(buffer.shape)))


def _mapped(draft: Draft, buffer: Buffer, wrap: Place) -> Buffer:
    """``buffer`` with a map of its shape, its lowest nibble at 0."""
    shape, width = buffer.shape, buffer.bits // 4
    if buffer.memory == "stream":
        return replace(buffer, copy_stride=prod(shape) * width)
    if not wrap and draft.chance(0.2):
        if draft.chance(0.5):
            made = replace(buffer, map=_rows(draft, shape, width))
        else:
            made = replace(buffer, map=_table(draft, prod(shape), width))
    else:
        made = replace(buffer, map=_affine(draft, shape, wrap, width), copies=1)
        made = replace(moved(made, -extent(made)[0]), copies=buffer.copies)
    if buffer.copies > 1:
        even = min(width, 2)
        stride = -(-extent(replace(made, copies=1))[1] // even) * even
        stride += even * draft.pick(0, 0, 0, 1, 2) - even * draft.slip(0.05)
        made = replace(made, copy_stride=stride)
        draft.features.add("copies")
    return made


def _table(draft: Draft, count: int, width: int) -> Table:
    cells = [width * int(n) for n in draft.rng.permutation(count + draft.below(4))[:count]]
    if draft.slip(0.04):
        cells[0] = cells[-1]
    draft.features.add("table")
    return Table(tuple(cell - min(cells) for cell in cells))


def _rows(draft: Draft, shape: Place, width: int) -> Rows | Blocks:
    """Each index of the first axis anywhere; the elements of one side by side, or in blocks."""
    if len(shape) == 3 and draft.chance(0.5):
        each = prod(shape[1:]) * width
        numbers = draft.rng.permutation(shape[0] + draft.below(3))[: shape[0]]
        draft.features.add("blocks")
        return Blocks(
            tuple(each * int(n - min(numbers)) for n in numbers), 1 + draft.below(4), width
        )
    inner = _affine(draft, shape[1:], (), width) if len(shape) > 1 else Affine(0, ())
    low, high = inner.extent(shape[1:], width)
    each = high - low
    cells = [each * int(n) for n in draft.rng.permutation(shape[0] + draft.below(3))[: shape[0]]]
    if draft.slip(0.04):
        cells[0] = cells[-1] + width
    draft.features.add("rows")
    least = min(cells) + low
    return Rows(tuple(cell - least for cell in cells), inner.strides)


def _affine(draft: Draft, shape: Place, wrap: Place, width: int) -> Affine:
    """The axes in some order, side by side or with gaps, some backwards."""
    extents = [min(n, w or n) for n, w in zip(shape, wrap or (0,) * len(shape), strict=True)]
    axes = list(reversed(range(len(shape))))
    if draft.chance(0.25):
        axes = draft.shuffled(axes)
    strides, step, even = [0] * len(shape), width, min(width, 2)
    for axis in axes:
        strides[axis] = -step if draft.chance(0.06) else step
        step *= extents[axis]
        if draft.chance(0.08):
            step += even * (1 + draft.below(2))
    if draft.slip(0.03):
        strides[draft.below(len(shape))] += draft.pick(-1, 1) * even
    return Affine(0, tuple(strides), wrap)


def _base(draft: Draft, name: str, done: list[str], lives: dict[str, Span], mode: str) -> int:
    """A base at which the buffer meets no placed one that lives at the same time."""
    buffer = draft.buffers[name]
    even = min(buffer.bits // 4, 2)
    if buffer.memory == "stream":
        return 0
    if name == "scratch" and draft.slip(0.3):
        mode = "anywhere"
    if mode == "anywhere" and buffer.role != "constant":
        return even * draft.below(24)
    first, last = lives[name]
    if draft.slip(0.06):
        first, last = first + draft.below(2), last - draft.below(2)
    beside = [draft.buffers[o] for o in done if draft.buffers[o].memory == buffer.memory]
    others = [extent(b) for b in beside if mode == "apart" or meet((first, last), lives[b.name])]
    high, top = extent(buffer)[1], max((b for _, b in others), default=0)
    free = [
        base
        for base in range(0, top + 8, even)
        if not any(base < b and a < base + high for a, b in others)
    ]
    return int(draft.pick(*free[: 3 if mode == "loose" else 1]))


def _scratch(draft: Draft, row: list[Task], lives: dict[str, Span]) -> None:
    """A buffer for one or two computations."""
    computes = [n for n, task in enumerate(row) if isinstance(task.step, Compute)]
    if not computes or not draft.chance(0.25):
        return
    memory = draft.pick("flash", "card") if draft.slip(0.02) else draft.pick("sram", "other")
    shape, bits = (1 + draft.below(4),), draft.pick(4, 8, 16)
    draft.buffers["scratch"] = Buffer(
        "scratch", "", memory, shape, bits, packed(shape, bits), "scratch"
    )
    users = sorted({draft.pick(*computes), draft.pick(*computes)})
    for n in users:
        step = row[n].step
        assert isinstance(step, Compute)
        name = draft.pick(*draft.buffers) if draft.slip(0.02) else "scratch"
        row[n].step = replace(step, scratch=(name,) * (1 + draft.slip(0.02)))
    lives["scratch"] = (users[0], users[-1])
    draft.features.add("scratch")
