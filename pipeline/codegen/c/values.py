"""Integers in generated C: numbers, or linear expressions of loop variables, and their range."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd

from pipeline.plan.vocabulary import Index


@dataclass(frozen=True)
class Atom:
    """Part of a linear expression: a loop variable or a C expression in parentheses."""

    text: str
    low: int
    high: int


@dataclass(frozen=True)
class Value:
    """``const + sum(coef * atom)``."""

    const: int = 0
    terms: tuple[tuple[Atom, int], ...] = ()

    @property
    def low(self) -> int:
        return self.const + sum(min(c * a.low, c * a.high) for a, c in self.terms)

    @property
    def high(self) -> int:
        return self.const + sum(max(c * a.low, c * a.high) for a, c in self.terms)

    @property
    def known(self) -> bool:
        return not self.terms

    def __add__(self, other: Value | int) -> Value:
        if isinstance(other, int):
            return Value(self.const + other, self.terms)
        coefs = dict(self.terms)
        for atom, coef in other.terms:
            coefs[atom] = coefs.get(atom, 0) + coef
        kept = tuple((atom, coef) for atom, coef in coefs.items() if coef)
        return Value(self.const + other.const, kept)

    def __mul__(self, factor: int) -> Value:
        if not factor:
            return Value()
        return Value(self.const * factor, tuple((atom, c * factor) for atom, c in self.terms))

    def __sub__(self, other: Value | int) -> Value:
        return self + other * -1

    def __floordiv__(self, divisor: int) -> Value:
        """Divide values that are not negative."""
        if self.const % divisor == 0 and all(coef % divisor == 0 for _, coef in self.terms):
            terms = tuple((atom, coef // divisor) for atom, coef in self.terms)
            return Value(self.const // divisor, terms)
        if self.known:
            return Value(self.const // divisor)
        return atom(f"({self}) / {divisor}", self.low // divisor, self.high // divisor)

    def __mod__(self, ring: int) -> Value:
        """Reduce values that are not negative modulo ``ring``."""
        if all(coef % ring == 0 for _, coef in self.terms):
            return Value(self.const % ring)
        if self.low // ring == self.high // ring:
            return self - self.low // ring * ring
        return atom(f"({self}) % {ring}", 0, ring - 1)

    def stays_in(self, ring: int, extent: int) -> bool:
        """Check whether ``extent`` positions from this one never go around a ring of ``ring``."""
        step = ring
        for found, coef in self.terms:
            step = gcd(step, coef) if found.high > found.low else step
        return self.const % step + extent <= step

    def __str__(self) -> str:
        parts = [f"{coef} * {a.text}" if coef != 1 else a.text for a, coef in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts).replace("+ -", "- ")


def atom(text: str, low: int, high: int) -> Value:
    return Value(0, ((Atom(f"({text})", low, high), 1),))


Loops = Mapping[str, tuple[str, int]]
"""C name and count of each loop variable in scope."""


def of(index: Index, loops: Loops) -> Value:
    if isinstance(index, int):
        return Value(index)
    total = Value(index.const)
    for variable, coef in index.coef:
        name, count = loops[variable]
        total = total + Value(0, ((Atom(name, 0, count - 1), 1),)) * coef
    return total


def least(a: Value, b: Value) -> Value:
    return _end(a - b, a, b, min)


def greatest(a: Value, b: Value) -> Value:
    return _end(b - a, a, b, max)


def _end(over: Value, a: Value, b: Value, end: Callable[[int, int], int]) -> Value:
    """``a`` where ``over`` is surely not above 0, ``b`` where it is surely not below."""
    if over.high <= 0:
        return a
    if over.low >= 0:
        return b
    return atom(f"nn_{end.__name__}({a}, {b})", end(a.low, b.low), end(a.high, b.high))


@dataclass(frozen=True)
class Span:
    """``start`` to ``stop`` (exclusive) along one axis.

    Its extent is ``fewest`` or more, and ``largest`` or less where that is known.
    """

    start: Value
    stop: Value
    fewest: int = 0
    largest: int | None = None

    @property
    def extent(self) -> Value:
        return self.stop - self.start

    @property
    def most(self) -> int:
        """The largest extent that it can have."""
        high = max(0, self.extent.high)
        return high if self.largest is None else min(self.largest, high)

    def covers(self, other: Span) -> bool:
        """Check whether it surely holds all of ``other``."""
        return (other.start - self.start).low >= 0 and (self.stop - other.stop).low >= 0

    def within(self, other: Span) -> Span:
        start = greatest(self.start, other.start)
        stop = least(self.stop, other.stop)
        return Span(start, stop, 0, min(self.most, other.most))


def whole(extent: int) -> Span:
    return Span(Value(0), Value(extent), extent)


def span(lo: Index, size: int, limit: int, loops: Loops) -> Span:
    """``lo … lo + size`` inside ``0 … limit``. It may be empty: then stop <= start."""
    start = of(lo, loops)
    # concave in the start, so least at one of its ends
    fewest = min(min(low + size, limit) - max(low, 0) for low in (start.low, start.high))
    return Span(greatest(start, Value(0)), least(start + size, Value(limit)), fewest, size)
