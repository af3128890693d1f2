"""Pieces in which the tensors on a card are sealed: each has a tag, and blocks of its own.

A piece is read whole, with one command. So pieces end wherever any transfer does that moves bytes
which lie side by side on the card and in the arena (``nn_card_piece`` in
firmware/kernels/frame/card.c.j2 makes the same runs); those of feature maps are cut further.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import prod

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.plan.unrolled import unroll
from pipeline.plan.vocabulary import Buffer, Move, Plan, Slice
from pipeline.sealing import TAG_BYTES, piece_bytes

Run = tuple[int, int]
"""The first byte of a tensor and the one after the last."""


@dataclass(frozen=True)
class Pieces:
    """
    Attributes:
        block_bytes: of the card.
        ends: of each buffer on the card the bytes where pieces begin or end, ascending: 0, …, its
            size.
    """

    block_bytes: int
    ends: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, plan: Plan) -> Pieces:
        """
        Raises:
            ThimbleError: where a byte of a feature map is written twice: its number would be, too;
                and of several frames.
        """
        if plan.frames > 1:
            raise ThimbleError(
                f"{plan.frames} frames in flight are not sealed: security=unchecked, or "
                "strategy.frames=1"
            )
        memory = next(m for m in plan.memories if m.kind == "block")
        stored = plan.on_card
        found = {name: {0, _bytes(buffer)} for name, buffer in stored.items()}
        written = dict.fromkeys(stored, 0)
        for far, loads, run in transferred(plan):
            found[far] |= set(run)
            written[far] += 0 if loads else run[1] - run[0]
        for name, size in written.items():
            if size > _bytes(stored[name]):
                raise ThimbleError(
                    f"{name}: some of it is written to the card twice, which is not sealed: "
                    "security=unchecked, or another strategy"
                )
        most = piece_bytes(memory.granule_bytes)
        return cls(
            memory.granule_bytes,
            {
                name: tuple(sorted(ends) if stored[name].role == "constant" else _cut(ends, most))
                for name, ends in found.items()
            },
        )

    def sizes(self, buffer: str, run: Run) -> Iterator[int]:
        """Bytes of each piece in a run."""
        ends = self.ends[buffer]
        first, last = bisect_left(ends, run[0]), bisect_left(ends, run[1])
        return (after - before for before, after in pairwise(ends[first : last + 1]))

    def blocks(self, size: int) -> int:
        """Count the card's blocks that a piece of ``size`` bytes takes."""
        return -(-(size + TAG_BYTES) // self.block_bytes)

    @cached_property
    def count(self) -> int:
        return sum(len(ends) - 1 for ends in self.ends.values())


def runs(near: Buffer, far: Buffer, moved: Slice, env: Mapping[str, int]) -> Iterator[Run]:
    """Bytes of ``far``, on the card, that lie side by side there and in the window ``near``, of
    what is ``moved``, in the order in which they pass."""
    shape, box = far.shape, moved.box(far.shape, dict(env))
    if any(a >= b for a, b in box):
        return
    low, stop = zip(*box, strict=True)
    held = [min(n, ring or n) for n, ring in zip(shape, near.wrap, strict=True)]
    axis = len(shape) - 1
    while axis and (low[axis], stop[axis]) == (0, shape[axis]) and held[axis] == shape[axis]:
        axis -= 1
    each = prod(shape[axis + 1 :])
    for outer in product(*(range(low[n], stop[n]) for n in range(axis))):
        row = 0
        for n, index in enumerate(outer):
            row = row * shape[n] + index
        at = low[axis]
        while at < stop[axis]:
            count = min(stop[axis] - at, held[axis] - at % held[axis])
            start = (row * shape[axis] + at) * each
            yield start, start + count * each
            at += count


def check(plan: Plan, hardware: Hardware) -> None:
    """
    Raises:
        ThimbleError: where security is asked for a plan of which nothing leaves the chip.
    """
    if hardware.card.keyed and not plan.on_card:
        raise ThimbleError(
            f"security={hardware.card.security}: in the plan of strategy {plan.strategy} nothing "
            "leaves the chip: security=unchecked, or strategy=swap"
        )


def transferred(plan: Plan) -> Iterator[tuple[str, bool, Run]]:
    """(buffer on the card, whether it is read, run) of all transfers, track by track."""
    stored = plan.on_card
    for track in plan.tracks:
        for step, env in unroll(track.steps, {}):
            if not isinstance(step, Move) or (step.src.buffer in stored) == (
                step.dst.buffer in stored
            ):
                continue
            loads = step.src.buffer in stored
            near, far = (step.dst, step.src) if loads else (step.src, step.dst)
            for run in runs(plan.buffer[near.buffer], stored[far.buffer], far, env):
                yield far.buffer, loads, run


def _cut(ends: set[int], most: int) -> Iterator[int]:
    """``ends`` and, evenly between two that are further apart than ``most``, others."""
    ordered = sorted(ends)
    yield ordered[0]
    for low, high in pairwise(ordered):
        parts = -(-(high - low) // most)
        yield from (low + (high - low) * n // parts for n in range(1, parts + 1))


def _bytes(buffer: Buffer) -> int:
    return prod(buffer.shape) * buffer.nibbles // 2
