"""The track that moves as a program for ``firmware/kernels/frame/card.c.j2``, a byte or some a
number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod

from pipeline.codegen.card.image import Image
from pipeline.errors import ThimbleError
from pipeline.plan.repair import Repair
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Index,
    Lin,
    Loop,
    Move,
    Plan,
    Signal,
    Slice,
    Step,
    Wait,
)

MOST_AXES = 4
BYTE = 2
"""Nibbles."""


class Code(IntEnum):
    END = 0
    LOAD = 1
    STORE = 2
    WAIT = 3
    SIGNAL = 4
    LOOP = 5
    TURN = 6


@dataclass(frozen=True)
class Held:
    """A window of the arena and the tensor on the card that it holds a part of, in bytes.

    Attributes:
        card: where the tensor begins there; that of each frame ``card_copy`` behind the one before.
        arena: where the window's first place begins, ``copies`` of them ``arena_copy`` apart.
        extents: of the tensor; ``held``: how many indices of each axis have a place. Missing axes
            are the first.
    """

    card: int
    card_copy: int
    arena: int
    copies: int
    arena_copy: int
    extents: tuple[int, ...]
    held: tuple[int, ...]


@dataclass
class Transfers:
    """
    Attributes:
        counters: their numbers by name.
        repair: whose parts the transfers are of, where there are several.
        loops: the variables of the loops around what is being written.
        depth: the most loops in each other.
    """

    image: Image
    counters: dict[str, int]
    repair: Repair
    windows: list[Held] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    depth: int = 1

    @property
    def plan(self) -> Plan:
        return self.image.plan

    def code(self, steps: Sequence[Step]) -> bytes:
        return b"".join(map(number, (*self._steps(steps), Code.END)))

    def _steps(self, steps: Sequence[Step]) -> Iterator[int]:
        for step in steps:
            match step:
                case Loop(var=var, count=count, body=body):
                    yield from (Code.LOOP, count)
                    self.loops.append(var)
                    self.depth = max(self.depth, len(self.loops))
                    yield from self._steps(body)
                    self.loops.pop()
                    yield Code.TURN
                case Wait(counter=counter, at_least=at_least):
                    yield from (Code.WAIT, self.counters[counter], *self._position(at_least))
                case Signal(counter=counter):
                    yield from (Code.SIGNAL, self.counters[counter])
                case Move(src=src, dst=dst):
                    loads = src.buffer in self.plan.on_card
                    near, far = (dst, src) if loads else (src, dst)
                    yield Code.LOAD if loads else Code.STORE
                    yield from self._move(near, far)
                    if self.repair.places:
                        yield self.repair.part(self.repair.operator(step))

    def _move(self, near: Slice, far: Slice) -> Iterator[int]:
        if (near.lo, near.size) != (far.lo, far.size):
            raise ThimbleError(
                f"a transfer of {near.buffer} has another box on the card than in the arena"
            )
        yield self._window(near.buffer, far.buffer)
        yield from self._position(near.copy)
        if self.plan.frames > 1:
            yield from self._position(far.copy)
        missing = MOST_AXES - len(near.lo)
        for low, size in zip((*[0] * missing, *near.lo), (*[1] * missing, *near.size), strict=True):
            yield from (*self._position(low), size)

    def _position(self, index: Index) -> Iterator[int]:
        at = index if isinstance(index, Lin) else Lin(index)
        coefs = dict(at.coef)
        yield at.const
        yield from (coefs.get(name, 0) for name in self.loops)

    def _window(self, near: str, far: str) -> int:
        found = held(self.plan.buffer[near], self.plan.buffer[far], self.image)
        if found not in self.windows:
            self.windows.append(found)
        return self.windows.index(found)


def held(window: Buffer, stored: Buffer, image: Image) -> Held:
    """
    Raises:
        ThimbleError: for elements that are no bytes, or lie otherwise than side by side.
    """
    shape, sizes = stored.shape, _sizes(window)
    packed = _packed(stored, shape) and _packed(window, sizes)
    if not packed or {window.bits, stored.bits} != {8} or len(shape) > MOST_AXES:
        raise ThimbleError(
            f"{window.name}: generated code moves bytes that lie side by side on the card and in "
            "a window of the arena"
        )
    assert isinstance(window.map, Affine)
    missing, at = (1,) * (MOST_AXES - len(shape)), image.at[stored.name]
    return Held(
        at, stored.copy_stride // BYTE, window.map.base // BYTE, window.copies,
        window.copy_stride // BYTE, (*missing, *shape), (*missing, *sizes),
    )  # fmt: skip


def _sizes(buffer: Buffer) -> tuple[int, ...]:
    """Indices of each axis that have a place."""
    return tuple(min(n, ring or n) for n, ring in zip(buffer.shape, buffer.wrap, strict=True))


def _packed(buffer: Buffer, sizes: tuple[int, ...]) -> bool:
    """Check whether ``sizes`` indices lie row-major side by side."""
    if not isinstance(buffer.map, Affine) or buffer.map.base % BYTE or buffer.copy_stride % BYTE:
        return False
    wanted = [buffer.nibbles * prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    axes = zip(sizes, buffer.map.strides, wanted, strict=True)
    return all(size == 1 or stride == want for size, stride, want in axes)


def number(value: int) -> bytes:
    """Seven bits a byte, least significant first, the sign in the lowest bit of all."""
    rest, found = value * 2 if value >= 0 else -value * 2 - 1, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*found, rest))
