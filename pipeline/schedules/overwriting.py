"""Check whether a kernel may write over what it reads, where both have their places already."""

from collections.abc import Callable, Collection
from dataclasses import replace
from math import prod

from pipeline.kernels import Form, Kernel, natural_unit
from pipeline.plan.vocabulary import Affine, Buffer, Compute, Slice

Begins = tuple[tuple[str, int], ...]
"""Nibbles from what a step reads of a tensor to its output, by tensor."""


def begins(step: Compute, buffer: Callable[[str], Buffer], overlaps: Collection[str]) -> Begins:
    """Return them of the tensors ``overlaps`` that lie evenly, as the output does."""
    out = buffer(step.out.buffer).map
    if not isinstance(out, Affine):
        return ()
    pieces = [(buffer(piece.buffer), piece) for piece in step.ins]
    return tuple(
        (over.tensor, _first(out, step.out) - _first(over.map, piece))
        for over, piece in pieces
        if over.tensor in overlaps and isinstance(over.map, Affine)
    )


def may_overwrite(kernel: Kernel, form: Form, found: Begins) -> bool:
    """Check a kernel that reads more than a pixel needs before it writes, or has an order of its
    own; the verifier checks what others overwrite."""
    if kernel.follows and kernel.unit(form) == natural_unit(form):
        return True
    apart = replace(form, overlaps=frozenset())
    for name, begin in found:
        safe = kernel.overlap(apart, name)
        over, under = (prod(p.extents) * p.bits // 4 for p in (form.out, form.parts[name]))
        if safe is None or any(low < begin < high for low, high in safe.apart(over, under)):
            return False
    return True


def _first(place: Affine, piece: Slice) -> int:
    """Return the nibble at which a part of a buffer begins, in the first turn of all loops."""
    lows = (low if isinstance(low, int) else low.const for low in piece.lo)
    return place.base + sum(n * low for n, low in zip(place.strides, lows, strict=True))
