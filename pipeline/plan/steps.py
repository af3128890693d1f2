"""Parts of a plan's tracks: slices of buffers, and the steps that compute, move and synchronise."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.graph.tensor import Box
from pipeline.plan.buffers import Buffer


@dataclass(frozen=True)
class Lin:
    """``const + sum(coef * variable)``, linear in loop variables."""

    const: int = 0
    coef: tuple[tuple[str, int], ...] = ()

    def __call__(self, env: dict[str, int]) -> int:
        total = self.const
        for variable, factor in self.coef:
            total += factor * env[variable]
        return total

    def __add__(self, other: Index) -> Lin:
        const, coef = (other, ()) if isinstance(other, int) else (other.const, other.coef)
        return Lin(self.const + const, (*self.coef, *coef))

    __radd__ = __add__

    def __mul__(self, factor: int) -> Lin:
        return Lin(self.const * factor, tuple((name, each * factor) for name, each in self.coef))


Index = int | Lin
"""A position that may depend on loop variables."""


def value(index: Index, env: dict[str, int]) -> int:
    return index if isinstance(index, int) else index(env)


@dataclass(frozen=True, slots=True)
class Slice:
    """The box ``lo … lo + size`` of a buffer, clipped to its shape.

    A step that writes an empty one has nothing to do; a step that reads one of size 0 is told that
    nothing is there, as in padding.
    ``copy`` (modulo the buffer's copies) says in which of its places.
    """

    buffer: str
    lo: tuple[Index, ...]
    size: tuple[int, ...]
    copy: Index = 0

    def box(self, shape: tuple[int, ...], env: dict[str, int]) -> Box:
        ranges = []
        for low, extent, limit in zip(self.lo, self.size, shape, strict=True):
            start = low if isinstance(low, int) else low(env)
            stop = start + extent
            if not 0 <= start <= stop <= limit:
                start = min(max(start, 0), limit)
                stop = max(start, min(stop, limit))
            ranges.append((start, stop))
        return tuple(ranges)


@dataclass(frozen=True, slots=True)
class Compute:
    """Compute the elements ``out`` of ``op`` from ``ins`` (activations and constants).

    Attributes:
        unit: the block of output elements whose inputs the kernel reads wholly before it writes
            any of it, read-ahead included; one extent an axis. Empty: one element at a time.
        order: block origins in the order they are computed, relative to ``out``'s low corner;
            empty: row-major.
        delay: a unit is written once the inputs of so many more units have been read; what it is
            made of is kept aside until then.
        partial: add to the accumulators in ``out``, which a ``Clear`` opened and a ``Finish`` ends.
        scratch: names of buffers whose contents the kernel destroys, those ``aside`` last.
        frame: whose activations all slices hold; as in every other step.
        kernel: which C runs it (``pipeline.kernels``); "": whatever the generator has that can.
    """

    op: str
    out: Slice
    ins: tuple[Slice, ...]
    unit: tuple[int, ...] = ()
    order: tuple[tuple[int, ...], ...] = ()
    partial: bool = False
    scratch: tuple[str, ...] = ()
    frame: Index = 0
    kernel: str = ""
    delay: int = 0


@dataclass(frozen=True)
class Clear:
    """Open the accumulators ``acc`` of ``op``: from here on they hold no contribution."""

    op: str
    acc: Slice
    frame: Index = 0


@dataclass(frozen=True)
class Finish:
    """Requantize complete accumulators ``acc`` to elements ``out``, reading ``ins`` (the bias)."""

    op: str
    acc: Slice
    out: Slice
    ins: tuple[Slice, ...] = ()
    unit: tuple[int, ...] = ()
    frame: Index = 0


@dataclass(frozen=True, slots=True)
class Move:
    """Copy elements of one tensor. All of ``src`` is read before any of ``dst`` is written.

    Between memories it is a transfer; within one, with overlapping cells, it is a permutation,
    which the generated code carries out in place along its cycles.
    """

    src: Slice
    dst: Slice
    frame: Index = 0


@dataclass(frozen=True)
class Signal:
    """Add one to a counter."""

    counter: str


@dataclass(frozen=True)
class Wait:
    """Go on once the counter is at least ``at_least``."""

    counter: str
    at_least: Index


@dataclass(frozen=True)
class Loop:
    """Run ``body`` with ``var`` = 0 … count - 1."""

    var: str
    count: int
    body: tuple[Step, ...]


Statement = Compute | Clear | Finish | Move | Signal | Wait
Step = Statement | Loop


@dataclass(frozen=True)
class Track:
    """Steps that one engine runs in order. Tracks run side by side; counters order them."""

    name: str
    steps: tuple[Step, ...]


def whole(buffer: Buffer) -> Slice:
    return Slice(buffer.name, (0,) * len(buffer.shape), buffer.shape)


def written(step: Step) -> Slice | None:
    """Return the slice a step writes."""
    match step:
        case Compute(out=piece) | Finish(out=piece) | Clear(acc=piece) | Move(dst=piece):
            return piece
    return None


def touched(step: Step) -> tuple[Slice, ...]:
    """Return the slices a step reads or writes."""
    match step:
        case Compute(out=out, ins=ins):
            return (out, *ins)
        case Clear(acc=acc):
            return (acc,)
        case Finish(acc=acc, out=out, ins=ins):
            return (acc, out, *ins)
        case Move(src=src, dst=dst):
            return (src, dst)
    return ()
