"""Inline assembly in the order in which a core with two pipelines issues most of it two at a time:
loads and what prepares their words between multiplications.

The rules are those of the cycle model (``firmware/simulators/cortex_m7_timing.h``, docs/
cycle-models.md): an instruction joins the one before it if it needs none of its results and both
are not of one unit, and what is loaded is used no sooner than the next but one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CODE = re.compile(
    r"(?:(?P<load>ldr)|(?P<multiply>(?:smla(?!l)|smua|smml|mul|mla)\w*)"
    r"|(?P<other>[su]xta?b16|pkhbt|pkhtb|add|sub|mov)) "
)
"""Instructions that may change places, by what works on them: all but those with two results."""

MOST = 400
"""Instructions that are put in order together: more are several times as many."""

RUN = re.compile(rf'(?:^ +"{CODE.pattern}.*\\n"$\n?){{2,{MOST}}}', re.MULTILINE)
REGISTER = re.compile(r"%\[\w+\]|%\d+|\b(?:r\d+|ip|lr|sp)\b")
WRITTEN_BACK = re.compile(rf", *\[({REGISTER.pattern})(?:\], *\S|[^]]*\]!)")


@dataclass(frozen=True)
class Instruction:
    """
    Attributes:
        unit: what works on it: ``load``, ``multiply`` or ``other``.
        writes, reads: registers, as the text has them.
    """

    text: str
    unit: str
    writes: frozenset[str]
    reads: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Instruction | None:
        """None: it has to stay where it is."""
        found = CODE.match(text.strip(' "'))
        if found is None or found.lastgroup is None:
            return None
        to, *rest = REGISTER.findall(text)
        back = WRITTEN_BACK.search(text)
        writes = frozenset({to, *([back[1]] if back else [])})
        return cls(text, found.lastgroup, writes, frozenset(rest))

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
    """C whose inline assembly has one instruction a line."""

    def ordered(run: re.Match[str]) -> str:
        every = map(Instruction.of, run[0].splitlines(keepends=True))
        return "".join(each.text for each in in_order([each for each in every if each]))

    return RUN.sub(ordered, source)


def in_order(given: list[Instruction]) -> list[Instruction]:
    """One after the other the one that takes fewest cycles; of several the one after which most
    has to follow."""
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
    return found
