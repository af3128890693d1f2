"""Inline assembly in the order in which a core with two pipelines issues most of it two at a time:
loads and what prepares their words between multiplications.

The rules are those of the cycle model (``firmware/simulators/cortex_m7_timing.h``, docs/
cycle-models.md): an instruction joins the one before it if it needs none of its results and both
are not of one unit, and what is loaded is used no sooner than the next but one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

UNITS = {
    **dict.fromkeys(("NN_LOAD", "NN_NEXT", "NN_FETCH"), "load"),
    **dict.fromkeys(("NN_EVEN", "NN_ODD"), "other"),
    **dict.fromkeys(("NN_BOTH", "NN_PAIR", "NN_LOW_HIGH", "NN_HIGH_LOW"), "multiply"),
}
"""What works on a macro's instruction."""

MOST = 400
"""Instructions that are put in order together: more are several times as many."""

RUN = re.compile(rf"(?:^ +(?:{'|'.join(UNITS)})\([^()]*\);\n){{2,{MOST}}}", re.MULTILINE)


class Instruction(NamedTuple):
    """
    Attributes:
        unit: what works on it: ``load``, ``multiply`` or ``other``.
        writes, reads: variables.
    """

    text: str
    unit: str
    writes: frozenset[str]
    reads: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Instruction:
        code, to, *rest = re.findall(r"\w+", text)
        unit = UNITS[code]
        adds = unit == "multiply" and code != "NN_BOTH"
        writes = {to, rest[0]} if code == "NN_NEXT" else {to}
        return cls(text, unit, frozenset(writes), frozenset([*rest, *[to] * adds]))

    def after(self, other: Instruction) -> bool:
        """Check whether it has to stay behind ``other``."""
        return bool(self.reads & other.writes or self.writes & (other.reads | other.writes))

    def late(self, before: Instruction) -> bool:
        """Check whether it waits for what ``before`` loads."""
        return before.unit == "load" and bool(self.reads & before.writes)

    def joins(self, before: Instruction) -> bool:
        shares = self.unit != "other" and self.unit == before.unit
        return not (shares or self.reads & before.writes)


def woven(source: str) -> str:
    """C with one macro a line."""
    return RUN.sub(lambda run: "".join(in_order(run[0].splitlines(keepends=True))), source)


def in_order(lines: list[str]) -> list[str]:
    """Return one after the other the one that takes fewest cycles; of several the one after which
    most has to follow."""
    given = list(map(Instruction.of, lines))
    behind = [
        {n for n, earlier in enumerate(given[:number]) if each.after(earlier)}
        for number, each in enumerate(given)
    ]
    paths = [1] * len(given)
    for number in reversed(range(len(given))):
        for n in behind[number]:
            paths[n] = max(paths[n], paths[number] + 1 + given[number].late(given[n]))
    found: list[Instruction] = []
    left, joined = dict.fromkeys(range(len(given))), True

    def cycles(each: Instruction) -> int:
        if not found:
            return 1
        return 0 if not joined and each.joins(found[-1]) else 1 + each.late(found[-1])

    while left:
        ready = [n for n in left if not any(m in left for m in behind[n])]
        best = min(ready, key=lambda n: (cycles(given[n]), -paths[n], n))
        joined = bool(found) and cycles(given[best]) == 0
        found.append(given[best])
        del left[best]
    return [each.text for each in found]
