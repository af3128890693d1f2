"""Weights as code: which small multiples of an activation to form so that all products are cheap.

On AVR adding a register to a 16-bit sum takes 2 cycles, and so does forming another multiple of
the activation a from two others (``mov``, ``add``). A product w a costs one addition if |w| a is at
hand and two if |w| is the sum or the difference of two multiples at hand; w = 0 costs nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

LARGEST = 8
"""|w| of a 4-bit weight; 8 times a 4-bit activation still fits a byte."""

CYCLES = 2
"""Cycles of an addition to a sum, and of forming a multiple."""

Parts = tuple[int, ...]
"""Multiples whose sum, with signs, is a number."""


@dataclass(frozen=True)
class Recipe:
    """
    Attributes:
        formed: (multiple, its two parts), each from multiples before it or 1.
        terms: for every |w| that occurs, the multiples to add.
        cycles: all in all.
    """

    formed: tuple[tuple[int, Parts], ...]
    terms: dict[int, Parts]
    cycles: int


@dataclass(frozen=True)
class TapCode:
    """
    Attributes:
        formed: (register, register it is copied from, register then added).
        added: (``add`` or ``sub``, lane, register).
    """

    formed: tuple[tuple[int, int, int], ...]
    added: tuple[tuple[str, int, int], ...]


def tap_code(weights: Sequence[int], activation: int, free: Sequence[int]) -> TapCode:
    """Add ``weights[lane] * a`` to every lane; a is in register ``activation``."""
    plan = recipe(weights, len(free))
    held = {1: activation}
    formed = []
    for (multiple, (first, second)), register in zip(plan.formed, free, strict=False):
        formed.append((register, held[first], held[second]))
        held[multiple] = register
    added = tuple(
        ("add" if (part > 0) == (weight > 0) else "sub", lane, held[abs(part)])
        for lane, weight in enumerate(weights)
        if weight
        for part in plan.terms[abs(weight)]
    )
    return TapCode(tuple(formed), added)


def recipe(weights: Sequence[int], registers: int) -> Recipe:
    """The cheapest way to add ``w a`` for each weight, with ``registers`` >= 2 beside that of a."""
    return _recipe(tuple(sorted(Counter(abs(w) for w in weights if w).items())), registers)


@cache
def _recipe(counts: tuple[tuple[int, int], ...], registers: int) -> Recipe:
    best: Recipe | None = None
    for size in range(min(registers, LARGEST - 1) + 1):
        for chosen in combinations(range(2, LARGEST + 1), size):
            order = _order(chosen)
            at_hand = (1, *chosen)
            terms = {w: _split(w, at_hand) for w, _ in counts}
            if order is None or not all(terms.values()):
                continue
            cycles = CYCLES * (size + sum(n * len(terms[w]) for w, n in counts))
            if best is None or cycles < best.cycles:
                best = Recipe(order, terms, cycles)
    assert best is not None, "with 2 and 4 at hand three terms reach everything"
    return best


def _order(chosen: Iterable[int]) -> tuple[tuple[int, Parts], ...] | None:
    """Form all chosen multiples, which rise, each from 1 and those before it; None: some can't."""
    formed = dict[int, Parts]()
    for multiple in chosen:
        formed[multiple] = _sum(multiple, {1, *formed})
    return tuple(formed.items()) if all(formed.values()) else None


def _sum(number: int, at_hand: set[int]) -> Parts:
    return next(((part, number - part) for part in sorted(at_hand) if number - part in at_hand), ())


def _split(number: int, at_hand: Sequence[int]) -> Parts:
    """Return at most three multiples that add up to ``number``; differences have a negative
    part."""
    if number in at_hand:
        return (number,)
    signed = [sign * part for part in at_hand for sign in (1, -1)]
    pairs = ((a, number - a) for a in signed if number - a in signed)
    triples = ((a, b, number - a - b) for a in signed for b in signed if number - a - b in signed)
    return next(pairs, ()) or next(triples, ())
