"""How much a step does, counted in what takes time, and what each of those takes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from pipeline.kernels.form import Form

Counts = Mapping[str, float]
"""How often a kernel does what, by a word for it."""


def priced(counts: Counts, costs: Counts) -> float:
    """``costs``: cycles for each time."""
    return sum(number * costs[word] for word, number in counts.items())


def made(form: Form) -> int:
    """Elements of the output that a step makes, or adds to."""
    return prod(form.out.extents)


def positions(form: Form) -> tuple[int, int]:
    """Rows and columns of a kernel's window."""
    if form.op.weighted:
        _, rows, columns, _ = form.graph.tensors[form.op.parameters[0]].shape
        return rows, columns
    rows, columns = getattr(form.op, "kernel")  # noqa: B009
    return rows, columns


def products(form: Form) -> int:
    """Products, or values that are compared or added, padding included."""
    op, tensors = form.op, form.graph.tensors
    atoms = op.atoms(tensors)
    if form.partial and op.weighted:
        reads = op.terms(tensors)[0].operands[0].windows
        for window, extent in zip(reads, form.given.extents, strict=True):
            if window.axis is None or window is reads[-1]:  # of these a step may read a part
                atoms = atoms // window.count * min(window.count, extent)
    return made(form) * atoms
