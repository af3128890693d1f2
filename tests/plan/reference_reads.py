"""What an output element is made of, atom by atom, from the operators' declarations.

Part of the reference verifier (``reference.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from pipeline.graph.access import Operand, Term
from pipeline.graph.tensor import Box
from tests.plan.reference_places import Place

Given = Mapping[str, Box]
"""The part of each tensor that is at hand; of others, nothing."""


def window(operand: Operand, place: Place) -> Iterator[Place]:
    """The elements that the output at ``place`` reads, padding included, in the atoms' order."""
    lines = []
    for axis in operand.windows:
        first = 0 if axis.axis is None else place[axis.axis] // axis.divide * axis.stride
        lines.append([first + axis.offset + t * axis.dilation for t in range(axis.count)])
    return product(*lines)


def within(place: Place, box: Box) -> bool:
    return all(start <= i < stop for i, (start, stop) in zip(place, box, strict=True))


def has(given: Given, tensor: str, place: Place) -> bool:
    return tensor in given and within(place, given[tensor])


def atoms(terms: tuple[Term, ...], place: Place, given: Given) -> frozenset[tuple[int, int]]:
    """(term, atom) of the output at ``place`` whose operands' elements are all at hand."""
    found = set()
    for t, term in enumerate(terms):
        met = zip(*(window(operand, place) for operand in term.operands), strict=True)
        for a, elements in enumerate(met):
            pairs = zip(term.operands, elements, strict=True)
            if all(has(given, operand.tensor, element) for operand, element in pairs):
                found.add((t, a))
    return frozenset(found)
