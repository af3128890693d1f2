"""Inline assembly, and the same in C for other cores and compilers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    """An instruction, in assembly and in C: that may be empty, where the next one's says both."""

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
        turn: those, ``rounds`` times, or as often as C says; ``rest``: after them.
        held: types and registers of variables that are changed; ``made``: those that lines set
            before they read them; ``given``: those that are read, in no register of their own
            with the constraint of an operand instead of one.
        scratch: registers of words that lines use, or "", by name.
        before: C in front of the assembly.
        stop: compares, so that another round is ``again``.
    """

    turn: Sequence[Line]
    rest: Sequence[Line] = ()
    rounds: int | str = 1
    held: Mapping[str, tuple[str, str]]
    made: Collection[str] = ()
    given: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    scratch: Mapping[str, str]
    before: Sequence[str] = ()
    stop: Sequence[str] = ()
    again: str = "bne"

    def code(self, indent: int) -> str:
        loops = self.rounds != 1
        assembly = [line.assembly for line in self.turn]
        if loops:
            assembly = ["1:", *assembly, *self.stop, f"{self.again} 1b"]
        assembly += [line.assembly for line in self.rest]
        own = {**self.held, **{n: at for n, at in self.given.items() if at[1][1:].isdecimal()}}
        changed = [f'[{n}] "{"=&" if n in self.made else "+"}r"({n}_in)' for n in self.held]
        changed += [f'[{name}] "=&r"({name})' for name in self.scratch]
        given = (
            f'[{name}] "r"({name}_in)' if name in own else f'[{name}] "{place}"({name})'
            for name, (_, place) in self.given.items()
        )  # fmt: skip
        lines = [
            "#if NN_DSP",
            *(
                f'register uint32_t {name} __asm__("{place}");' if place else f"uint32_t {name};"
                for name, place in self.scratch.items()
            ),
            *self.before,
            *(
                f'register {kind}{name}_in __asm__("{place}")'
                + ("" if name in self.made else f" = {name}")
                + ";"
                for name, (kind, place) in own.items()
            ),
            "__asm__ volatile(",
            *(f'"{line}\\n"' for line in assembly),
            f": {', '.join(changed)}",
            f": {', '.join(given)}",
            ': "cc", "memory");',
            *(f"{name} = {name}_in;" for name in self.held),
            "#else",
            *(f"uint32_t {name};" for name in self.scratch),
            *[f"for (int32_t n = 0; n < {self.rounds}; n++) {{"] * loops,
            *(line.c for line in self.turn if line.c),
            *["}"] * loops,
            *(line.c for line in self.rest if line.c),
            "#endif",
        ]
        s = " " * indent
        text = (line if line[0] == "#" else f"{s}    {line}" for line in lines)
        return "\n".join([f"{s}{{", *text, f"{s}}}\n"])
