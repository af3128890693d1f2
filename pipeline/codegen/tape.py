"""Calls that no loop leads to, as a table in flash and a function that runs it.

Of each step the tape has the number of what is called, then the arguments that differ from call to
call: each as a multiple, from the least one on, of what all of them are apart by. Arguments that
move together have one entry; what is too wide for one has several. The function is a switch of
direct calls: the bound of the stack knows no calls by pointer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from math import gcd
from typing import NamedTuple

from pipeline.codegen.render import render
from pipeline.codegen.statements import PLACE, Argument, Call, Line

CALL_BYTES, ARGUMENT_BYTES = 4, 4
"""Bytes of code, in a statement; on an AVR up to 9 for an argument. These and what follows: about
what GCC makes of rows on demand for a Cortex-M4, an M0+ and an AVR."""

CASE_BYTES, COLUMN_BYTES = 20, 25
"""Bytes of code for a case of the switch besides its arguments, and for an entry looked up."""

FRAME_BYTES = 64
"""Bytes of the function but for its cases."""

WIDTHS = (8, 16)
"""Bits that entries may have."""

LEAST_GAIN_BYTES = 256
"""A tape that saves less is not worth its cycles, nor that nn_invoke cannot be read."""

FEWEST = 4
"""Calls in a row that are worth a statement that runs them from the tape."""

Entries = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """Case of the switch: calls of one function.

    Attributes:
        resumes: it is none, but a wait for the input.
        columns: of each entry of a step what it is in all calls.
        arguments: in C, where ``NN_ENTRY(n)`` is the step's entry n.
    """

    function: str
    resumes: bool
    columns: tuple[Entries, ...]
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, calls: Sequence[Call], bits: int) -> Case:
        """``bits``: of an entry."""
        columns: dict[Entries, int] = {}
        arguments = []
        for given in zip(*(call.arguments for call in calls), strict=True):
            arguments.append(_argument(given, columns, bits))
        first = calls[0]
        return cls(first.function, first.resumes > 0, tuple(columns), tuple(arguments))

    @property
    def size(self) -> int:
        """Entries of a step."""
        return 1 + len(self.columns)


class Stretch(NamedTuple):
    """Lines ``lines`` of nn_invoke are the entries ``entries``, both from the first to the last
    (exclusive)."""

    lines: slice
    entries: slice


@dataclass(frozen=True)
class Tape:
    """``bits``: of an entry."""

    bits: int = WIDTHS[0]
    cases: tuple[Case, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    entries: Entries = ()

    @cached_property
    def code_bytes(self) -> int:
        """About, table and function, on any core."""
        each = (
            CASE_BYTES + ARGUMENT_BYTES * len(case.arguments) + COLUMN_BYTES * len(case.columns)
            for case in self.cases
        )
        return FRAME_BYTES + sum(each) + len(self.entries) * self.bits // 8

    def code(self) -> str:
        """C of the table and of what runs it; "" without any steps."""
        if not self.cases:
            return ""
        waits = any(case.resumes for case in self.cases)
        return render("frame/tape.c.j2", tape=self, type=f"uint{self.bits}_t", waits=waits)


def tape(lines: Sequence[Line]) -> Tape:
    """Make a tape of all stretches of calls; empty where they take no more as they are."""
    found = list(_stretches(lines))
    calls = [_call(line) for stretch in found for line in lines[stretch]]
    if not calls:
        return Tape()
    every = (_tape(found, calls, bits) for bits in WIDTHS)
    able = (made for made in every if len(made.cases) <= 1 << made.bits)
    best = min(able, key=lambda made: made.code_bytes)
    written = sum(CALL_BYTES + ARGUMENT_BYTES * len(call.arguments) for call in calls)
    return best if written - best.code_bytes >= LEAST_GAIN_BYTES else Tape()


def statements(lines: Sequence[Line], tape: Tape) -> list[str]:
    """Return the body of nn_invoke, in which a line for each stretch runs it."""
    found, done = list[str](), 0
    for stretch in tape.stretches:
        found += map(str, lines[done : stretch.lines.start])
        resumes = (_call(line).resumes for line in lines[stretch.lines])
        place = next(filter(None, resumes), 0)
        first, stop = stretch.entries.start, stretch.entries.stop
        runs = f"NN_STEPS({place}, {first}, {stop});"
        plain = f"nn_steps(&nn_tape[{first}], &nn_tape[{stop}]);"
        found.append(str(Line(0, runs if place else plain)))
        done = stretch.lines.stop
    return found + list(map(str, lines[done:]))


def _call(line: Line) -> Call:
    assert isinstance(line.content, Call)
    return line.content


def _stretches(lines: Sequence[Line]) -> Iterator[slice]:
    def straight(numbered: tuple[int, Line]) -> bool:
        _, line = numbered
        return not line.depth and isinstance(line.content, Call) and line.content.known

    for is_straight, group in groupby(enumerate(lines), straight):
        numbers = [number for number, _ in group]
        if is_straight and len(numbers) >= FEWEST:
            yield slice(numbers[0], numbers[-1] + 1)


def _tape(stretches: Sequence[slice], calls: Sequence[Call], bits: int) -> Tape:
    alike: dict[object, list[int]] = {}
    for number, key in enumerate(_keys(calls)):
        alike.setdefault(key, []).append(number)
    cases, steps = list[Case](), [Entries()] * len(calls)
    for numbers in alike.values():
        case = Case.of([calls[n] for n in numbers], bits)
        for n, *entries in zip(numbers, *case.columns, strict=True):
            steps[n] = (len(cases), *entries)
        cases.append(case)
    found, entries, rest = list[Stretch](), list[int](), iter(steps)
    for lines in stretches:
        first = len(entries)
        for step in islice(rest, lines.stop - lines.start):
            entries += step
        found.append(Stretch(lines, slice(first, len(entries))))
    return Tape(bits, tuple(cases), tuple(found), tuple(entries))


def _keys(calls: Sequence[Call]) -> Iterator[object]:
    """Equal for calls that one case can make: an argument of theirs has one text with a number in
    it, or one without besides."""
    texts: dict[tuple[str, int], set[str]] = {}
    for call in calls:
        for position, argument in enumerate(call.arguments):
            texts.setdefault((call.function, position), set()).add(argument.text)
    many = {function for (function, _), held in texts.items() if not _one_case(held)}
    for call in calls:
        apart = (a.text for a in call.arguments) if call.function in many else ()
        yield call.function, *apart


def _one_case(texts: set[str]) -> bool:
    numbered = sum(PLACE in text for text in texts)
    return numbered <= 1 and len(texts) - numbered <= 1


def _argument(given: Sequence[Argument], columns: dict[Entries, int], bits: int) -> str:
    """C of an argument; what differs from call to call is in ``columns``, from now on.

    An entry of 0 is the text without a number, where there is one.
    """
    texts = dict.fromkeys(argument.text for argument in given)
    numbered = [a.value.const for a in given if PLACE in a.text]
    if len(texts) == 1 and len(set(numbered)) <= 1:
        return str(given[0])
    low, extra = min(numbered), len(texts) - 1
    unit = gcd(*(number - low for number in numbered)) or 1
    entries = tuple((a.value.const - low) // unit + extra if PLACE in a.text else 0 for a in given)
    entry = _entry(entries, columns, bits)
    first = low - extra * unit
    wide = low < 0 or max(numbered) >= 1 << 15  # than an int of 16 bits
    factor = f"{unit} * " if unit > 1 else ""
    number = f"{factor}{'(int32_t)' if wide else ''}{entry}{f' + {first}' if first else ''}"
    text = next(text for text in texts if PLACE in text).replace(PLACE, number.replace("+ -", "- "))
    other = next((text for text in texts if PLACE not in text), "")
    return f"{entry} ? {text} : {other}" if other else text


def _entry(values: Entries, columns: dict[Entries, int], bits: int) -> str:
    """C of what a step has for a number of ``values``: digits to the base 2**``bits``, the last one
    first."""
    digits, factor, left = list[str](), 1, values
    while not digits or any(left):
        column = columns.setdefault(tuple(n % (1 << bits) for n in left), len(columns) + 1)
        suffix = "u" if factor < 1 << 16 else "ul"
        digits.append(f"{factor}{suffix} * NN_ENTRY({column})" if digits else f"NN_ENTRY({column})")
        factor, left = factor << bits, tuple(n >> bits for n in left)
    return f"({' + '.join(digits)})" if len(digits) > 1 else digits[0]
