"""Work of a step, counted in what takes time, and what each of those takes."""

from collections.abc import Mapping
from math import prod

from pipeline.graph.families import Sliding
from pipeline.kernels.form import Form

Counts = Mapping[str, float]
"""Times that a kernel does something, by a word for it."""


def priced(counts: Counts, costs: Counts) -> float:
    """``costs``: cycles for each time; what they don't name takes none."""
    return sum(number * costs.get(word, 0.0) for word, number in counts.items())


def made(form: Form) -> int:
    """Elements of the output that a step makes, or adds to."""
    return prod(form.out.extents)


def positions(form: Form) -> tuple[int, int]:
    """Rows and columns of a kernel's window."""
    assert isinstance(form.op, Sliding)
    return form.op.window(form.graph.tensors)


def products(form: Form) -> float:
    """Products, or values that are compared or added, padding included; of a partial step the share
    that what it reads is of all that its outputs need."""
    op, tensors = form.op, form.graph.tensors
    number = float(made(form) * op.atoms(tensors))
    if not form.partial:
        return number
    out = tuple((0, extent) for extent in form.out.extents)
    needed = op.terms(tensors)[0].operands[0].region(out)
    for (low, high), extent, taken in zip(
        needed, form.source.shape, form.given.extents, strict=True
    ):
        number *= min(1.0, taken / min(extent, high - low))
    return number


END_BYTES = 16
"""Bytes of the table that ends a channel's sums: where they begin, multiplier, offset and shift."""


def weight_bytes(form: Form) -> float:
    """Return the bytes of weights that a step needs, and of what ends its sums; of the latter alone
    where weights lie in a window."""
    op, tensors = form.op, form.graph.tensors
    if not op.weighted:
        return 0.0
    weights, channels = tensors[op.parameters[0]], form.out.extents[-1]
    if weights.name in form.parts:
        return channels * END_BYTES
    share = channels / form.target.shape[-1]
    if form.partial:
        return weights.bytes * share * products(form) / (made(form) * op.atoms(tensors))
    return weights.bytes * share + channels * END_BYTES
