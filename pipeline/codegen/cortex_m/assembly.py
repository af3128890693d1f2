"""Inline assembly, and the same in C for other cores and compilers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """An instruction, in assembly and in C."""

    assembly: str
    c: str


def load(to: str, pointer: str, at: int = 0, move: int = 0, size: int = 4) -> Line:
    """The word ``at`` elements of ``size`` bytes from a pointer, or at it, which then moves on."""
    if move:
        code, c = f"[%[{pointer}]], #{size * move}", f"({pointer} += {move})[{-move}]"
    else:
        code, c = f"[%[{pointer}], #{size * at}]", f"{pointer}[{at}]"
    return Line(f"ldr %[{to}], {code}", f"{to} = nn_load_word(&{c});")


ADDS = {"smlad": "pair", "smlabt": "low_high", "smlatb": "high_low"}
"""Which halves of two words are multiplied by an instruction, in the names of nn_dsp.h."""


def add(total: str, a: str, b: str, code: str = "smlad", *, first: bool = False) -> Line:
    """Products of two words' halves, added to a sum, or its ``first``, both."""
    c = f"{total} = nn_add_{ADDS[code]}({a}, {b}, {'0' if first else total});"
    if first:
        return Line(f"smuad %[{total}], %[{a}], %[{b}]", c)
    return Line(f"{code} %[{total}], %[{a}], %[{b}], %[{total}]", c)


@dataclass(frozen=True, kw_only=True)
class Block:
    """Lines of which some run several times.

    Attributes:
        turn: those, ``rounds`` times; ``rest``: after them.
        held: types and registers of variables that are changed; ``made``: those that lines set
            before they read them; ``scratch``: registers of words that lines use, or "", by name.
        before: C in front of the assembly; ``given``: operands that it reads.
        stop: compares, so that "not equal" is another round.
    """

    turn: Sequence[Line]
    rest: Sequence[Line] = ()
    rounds: int = 1
    held: Mapping[str, tuple[str, str]]
    made: Collection[str] = ()
    scratch: Mapping[str, str]
    before: Sequence[str] = ()
    given: Sequence[str] = ()
    stop: Sequence[str] = ()

    def code(self, indent: int) -> str:
        loops = self.rounds > 1
        assembly = [line.assembly for line in self.turn]
        if loops:
            assembly = ["1:", *assembly, *self.stop, "bne 1b"]
        assembly += [line.assembly for line in self.rest]
        words = [
            f'register uint32_t {name} __asm__("{place}");' if place else f"uint32_t {name};"
            for name, place in self.scratch.items()
        ]
        changed = [
            f'[{name}] "{"=&" if name in self.made else "+"}r"({name}_in)' for name in self.held
        ]
        changed += [f'[{name}] "=&r"({name})' for name in self.scratch]
        lines = [
            "#if NN_DSP",
            *words,
            *self.before,
            *(
                f'register {kind}{name}_in __asm__("{place}")'
                + ("" if name in self.made else f" = {name}")
                + ";"
                for name, (kind, place) in self.held.items()
            ),
            "__asm__ volatile(",
            *(f'"{line}\\n"' for line in assembly),
            f": {', '.join(changed)}",
            f": {', '.join(self.given)}",
            ': "cc", "memory");',
            *(f"{name} = {name}_in;" for name in self.held),
            "#else",
            *(f"uint32_t {name};" for name in self.scratch),
            *[f"for (int32_t n = 0; n < {self.rounds}; n++) {{"] * loops,
            *(line.c for line in self.turn),
            *["}"] * loops,
            *(line.c for line in self.rest),
            "#endif",
        ]
        s = " " * indent
        text = (line if line[0] == "#" else f"{s}    {line}" for line in lines)
        return "\n".join([f"{s}{{", *text, f"{s}}}\n"])
