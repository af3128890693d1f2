"""C that adds some neighbouring pixels of a channel to all sums that they are in, depthwise 3x3, of
rows in blocks.

Rows 0 and 1 are multiplied together: a word of each is four pixels, PKHBT and PKHTB put one pixel
of either row side by side, and SMLAD multiplies that with weights one above the other. Row 2 is
used as SXTB16 leaves it: pixels p and p + 2 in one word, which SMLAD multiplies with weights 0 and
2, and SMLAxy with weight 1. Sums that the next unit adds to are carried on: no pixel is loaded
twice, and the output may lie over the input.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.by_row.depthwise import TAPS, Unit
from pipeline.kernels.cortex_m.by_row.layout import BLOCK, RowLayout

PAIRS, ENDS, MIDDLE = 4, 7, 8
"""Words of a channel's table: pairs of weights of rows 0 and 1, one a column; row 2's first and
last weight; its second. Before them is what sums begin with, and how they end."""
STARTS = {(): 0, (0,): 9, (2,): 10, (0, 2): 11}
"""Word that a sum begins with, by the columns of its window that are outside of the image."""
WORDS = 12


@dataclass(frozen=True)
class Code:
    """C for one unit.

    Attributes:
        signed: whether inputs are.
    """

    unit: Unit
    op: Conv2d
    source: RowLayout
    target: RowLayout
    signed: bool

    def window(self, out: int) -> range:
        left = out * self.op.stride[1] - self.op.padding[2]
        return range(left, left + TAPS)

    @cached_property
    def sums(self) -> list[int]:
        """Outputs that it adds to."""
        first, last = self.unit.pixels[0], self.unit.pixels[-1]
        windows = ((out, self.window(out)) for out in range(self.target.columns))
        return [out for out, (low, _, high) in windows if low <= last and high >= first]

    @property
    def carried_in(self) -> list[str]:
        first = self.unit.pixels[0]
        return [self._sum(out) for out in self.sums if max(self.window(out)[0], 0) < first]

    @property
    def carried_on(self) -> list[str]:
        return [self._sum(out) for out in self.sums if out not in self.unit.outs]

    @property
    def read_at(self) -> int:
        """Return where in channel 0 pointers into the input's rows point to."""
        first = self.unit.pixels[0]
        return self.source.at(first) if first < self.source.full else 0

    @property
    def made_at(self) -> int:
        return self.target.at(self.unit.outs.start)

    @cached_property
    def lines(self) -> list[str]:
        """Word by word what rows b0 and b1, side by side, give, then what b2 does: of stride 2, and
        where pixels are loaded one by one, sum by sum. Beyond a stop a compiler moves nothing that
        it has no register for."""
        there, words = dict.fromkeys(self.carried_in), self._words
        lines = [f"int32_t {name} = c{n};" for n, name in enumerate(there)]
        for first, pixels in words.items():
            lines += self._load((0, 1), first, pixels)
            for pixel in pixels:
                lines += self._paired(pixel, there)
            if first >= 0 or pixels[-1] == self.unit.pixels[-1]:
                lines.append(_stop(there))
        turns = [
            (first, out, found)
            for first, pixels in words.items()
            for out in self.sums
            if (found := [p for p in pixels if p in self.window(out)])
        ]
        by_sum = self.op.stride[1] == 2 or max(words) < 0
        if by_sum:
            turns.sort(key=lambda turn: turn[1])
        loaded = set[int]()
        for first, out, found in turns:
            if first not in loaded:
                lines += [] if by_sum or not loaded else [_stop(there)]
                lines += self._load((2,), first, words[first])
            loaded.add(first)
            lines += self._single(out, found)
        lines += [] if by_sum else [_stop(there)]
        return [*lines, *(f"c{n} = {name};" for n, name in enumerate(self.carried_on))]

    @property
    def stored(self) -> list[tuple[str, str]]:
        """Places, and the sums that go there."""
        return [(self._place(out), self._sum(out)) for out in self.unit.outs]

    def _place(self, out: int) -> str:
        target = self.target
        if not target.plane and target.pixels > 1 and out >= target.full:
            return f"last[{out - target.full}]"
        return f"t[{target.at(out) - self.made_at}]"

    def _sum(self, out: int) -> str:
        return f"a{out - self.sums[0]}"

    def _start(self, out: int) -> int:
        window, inside = self.window(out), range(self.source.columns)
        return STARTS[tuple(k for k, pixel in enumerate(window) if pixel not in inside)]

    @cached_property
    def _words(self) -> dict[int, list[int]]:
        """Pixels by the first one of the word to load for them; less than 0: of one by itself."""
        found = groupby(self.unit.pixels, key=self._word)
        return {first: list(same) for first, same in found}

    def _paired(self, pixel: int, there: dict[str, None]) -> list[str]:
        """Write C for rows 0 and 1 of a pixel."""
        (one, half), (two, _) = (self._half(row, pixel) for row in (0, 1))
        lines = [f"const uint32_t v{self._name(pixel)} = nn_{half}s({one}, {two});"]
        for out in self.sums:
            if pixel in (window := self.window(out)):
                weights = f"(uint32_t)q[{PAIRS + window.index(pixel)}]"
                name = self._sum(out)
                given = name if name in there else f"q[{self._start(out)}]"
                to = name if name in there else f"int32_t {name}"
                there[name] = None
                lines.append(f"{to} = nn_add_pair(v{self._name(pixel)}, {weights}, {given});")
        return lines

    def _single(self, out: int, pixels: list[int]) -> list[str]:
        """Write C for row 2."""
        ends, middle, lines = f"(uint32_t)q[{ENDS}]", f"(uint32_t)q[{MIDDLE}]", list[str]()
        name, window = self._sum(out), self.window(out)
        found = [(window.index(p), *self._half(2, p)) for p in pixels]
        if len(found) == TAPS and found[0][1:] == (found[2][1], "low"):
            lines.append(f"{name} = nn_add_pair({found[0][1]}, {ends}, {name});")
            found = found[1:2]
        for k, word, half in found:
            by, other = (middle, "low") if k == 1 else (ends, ("low", "", "high")[k])
            lines.append(f"{name} = nn_add_{half}_{other}({word}, {by}, {name});")
        return lines

    def _name(self, pixel: int) -> int:
        return pixel - self.unit.pixels[0]

    def _load(self, rows: tuple[int, ...], first: int, pixels: list[int]) -> list[str]:
        """A word of each of some rows, and what is used of it, widened."""
        kind, lines, used = "s8" if self.signed else "u8", [], {(p - first) % 2 for p in pixels}
        for row in rows if first >= 0 else ():
            name = f"r{row}_{self._name(first)}"
            parts = [f"{name}_{n} = nn_{('even', 'odd')[n]}_{kind}({name})" for n in sorted(used)]
            word = f"{name} = nn_load_word(b{row} + {self.source.at(first) - self.read_at})"
            lines.append(f"const uint32_t {', '.join([word, *parts])};")
        return lines

    def _half(self, row: int, pixel: int) -> tuple[str, str]:
        """A word with a pixel, and the half which that is."""
        source = self.source
        if (first := self._word(pixel)) >= 0:
            place = pixel - first
            return f"r{row}_{self._name(first)}_{place % 2}", ("low", "high")[place // 2]
        if pixel >= source.full:
            return f"(uint32_t)e{row}[{pixel - source.full}]", "low"
        return f"(uint32_t)b{row}[{source.at(pixel) - self.read_at}]", "low"

    def _word(self, pixel: int) -> int:
        """The first pixel of the word to load for ``pixel``; less than 0: no other that is needed
        is in that."""
        full, first = self.source.full, pixel - pixel % BLOCK
        used = sum(p in self.unit.pixels for p in range(first, first + BLOCK))
        return min(first, full - BLOCK) if pixel < full >= BLOCK and used > 1 else -1 - pixel


def _stop(sums: Iterable[str]) -> str:
    return f"""__asm__ volatile("" : {", ".join(f'"+r"({name})' for name in sums)});"""
