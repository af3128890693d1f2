"""C that makes some neighbouring outputs of a channel, depthwise 3x3, of rows in blocks.

Rows 0 and 1 are multiplied together: a word of each is four pixels, PKHBT and PKHTB put one pixel
of either row side by side, and SMLAD multiplies that with weights one above the other. Row 2 is
used as SXTB16 leaves it: pixels p and p + 2 in one word, which SMLAD multiplies with weights 0 and
2, and SMLAxy with weight 1. What the group to the right needs of this one's last pixel is kept,
since the output may lie over it. Each pixel is used up before the next one is loaded: the registers
are just enough for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pipeline.kernels.cortex_m.by_row.depthwise import TAPS
from pipeline.kernels.cortex_m.by_row.layout import BLOCK, RowLayout

PAIRS, ENDS, MIDDLE = 4, 7, 8
"""Words of a channel's table: pairs of weights of rows 0 and 1, one a column; row 2's first and
last weight; its second. Before them is what sums begin with, and how they end."""
STARTS = {(): 0, (0,): 9, (2,): 10, (0, 2): 11}
"""What a sum begins with, by the columns of its window that are outside of the image."""
WORDS = 12


@dataclass(frozen=True)
class Group:
    """Outputs ``first`` to ``first + count`` of the ``outputs`` of a row.

    Attributes:
        signed: whether inputs are.
    """

    first: int
    count: int
    outputs: int
    stride: int
    pad: int
    source: RowLayout
    signed: bool

    @property
    def outs(self) -> range:
        return range(self.first, self.first + self.count)

    def window(self, out: int) -> list[int | None]:
        """The pixels under the taps, None outside of the image."""
        left = out * self.stride - self.pad
        return [p if 0 <= p < self.source.columns else None for p in range(left, left + TAPS)]

    def start(self, out: int) -> int:
        """The word of the table that its sum begins with."""
        return STARTS[tuple(k for k, pixel in enumerate(self.window(out)) if pixel is None)]

    @property
    def kept(self) -> int | None:
        """The pixel that the group before has kept."""
        return self.first * self.stride - 1 if self.pad and self.first else None

    @property
    def keeps(self) -> int | None:
        """The pixel that the next group needs."""
        stop = self.first + self.count
        return stop * self.stride - 1 if self.pad and stop < self.outputs else None

    @cached_property
    def pixels(self) -> list[int]:
        """That it loads."""
        every = {p for out in self.outs for p in self.window(out) if p is not None}
        return sorted(every - {self.kept})

    @property
    def in_tail(self) -> bool:
        """Whether all of them are in the last block, which has fewer pixels than the others."""
        return not self.source.plane and min(self.pixels) >= self.source.full

    @property
    def base(self) -> int:
        """Where in channel 0 its pointers point to: they are those of the last block if it is all
        in there."""
        return 0 if self.in_tail else self.source.at(self.pixels[0] - self.pixels[0] % BLOCK)

    def apart(self, pixel: int) -> bool:
        """Whether it is in the last, smaller block and the pointers are not."""
        return not self.source.plane and not self.in_tail and pixel >= self.source.full

    def place(self, pixel: int) -> int:
        """Bytes from where the pointers point to."""
        if self.in_tail or self.apart(pixel):
            return pixel - self.source.full
        return self.source.at(pixel) - self.base

    @property
    def shape(self) -> tuple[object, ...]:
        """What the code depends on: groups that have it in common can share a loop."""
        windows = [list(map(self._known, self.window(out))) for out in self.outs]
        return self.count, windows, self.kept is None, self.keeps is None, self.in_tail

    def _known(self, pixel: int | None) -> tuple[bool, int] | str:
        if pixel is None:
            return ""
        return "kept" if pixel == self.kept else (self.apart(pixel), self.place(pixel))

    # --- C

    def sums(self) -> list[str]:
        """What adds to the sums a0, a1, …: pixel by pixel what rows b0 and b1, side by side, give,
        then output by output what b2 does."""
        lines, there = list[str](), set[tuple[int, int]]()

        def load(pixel: int, *rows: int) -> None:
            first = None if pixel == self.kept else self._word(pixel)
            if first is not None and (rows[0], first) not in there:
                lines.extend([self._stop] * (0 in rows and pixel != self.pixels[0]))
                there.add((rows[0], first))
                lines.extend(self._load(row, first) for row in rows)

        for pixel in self.pixels if self.kept is None else [self.kept, *self.pixels]:
            load(pixel, 0, 1)
            lines += self._paired(pixel)
        lines.append(self._stop)
        for n, out in enumerate(self.outs):
            window = [(k, p) for k, p in enumerate(self.window(out)) if p is not None]
            for _, pixel in window:
                load(pixel, 2)
            lines += self._single(f"a{n}", [(k, *self._half(2, p)) for k, p in window])
        if self.keeps is not None:
            word, half = self._half(2, self.keeps)
            lines.append(f"kept2 = (uint32_t)nn_{half}({word});")
        return lines

    @property
    def _stop(self) -> str:
        """Beyond this a compiler moves nothing that it has no register for."""
        return f"""__asm__ volatile("" : {", ".join(f'"+r"(a{n})' for n in range(self.count))});"""

    def _paired(self, pixel: int) -> list[str]:
        """Of rows 0 and 1."""
        lines, name = list[str](), "kept" if pixel == self.kept else f"v{pixel}"
        if pixel != self.kept:
            (one, half), (two, _) = (self._half(row, pixel) for row in (0, 1))
            lines.append(f"const uint32_t {name} = nn_{half}s({one}, {two});")
        for n, out in enumerate(self.outs):
            if pixel in (window := self.window(out)):
                weights = f"(uint32_t)q[{PAIRS + window.index(pixel)}]"
                lines.append(f"a{n} = nn_add_pair({name}, {weights}, a{n});")
        return lines + [f"kept = {name};"] * (pixel == self.keeps)

    def _single(self, total: str, found: list[tuple[int, str, str]]) -> list[str]:
        """Of row 2: the columns of a window that are inside, with words and halves of them."""
        ends, middle, lines = f"(uint32_t)q[{ENDS}]", f"(uint32_t)q[{MIDDLE}]", list[str]()
        if len(found) == TAPS and found[0][1:] == (found[2][1], "low"):
            lines.append(f"{total} = nn_add_pair({found[0][1]}, {ends}, {total});")
            found = found[1:2]
        for k, word, half in found:
            by, other = (middle, "low") if k == 1 else (ends, ("low", "", "high")[k])
            lines.append(f"{total} = nn_add_{half}_{other}({word}, {by}, {total});")
        return lines

    def _load(self, row: int, first: int) -> str:
        """A word of a row, and what is used of it, widened."""
        kind, name = "s8" if self.signed else "u8", f"r{row}_{first}"
        used = {(p - first) % 2 for p in self.pixels if self._word(p) == first}
        parts = [f"{name}_{n} = nn_{('even', 'odd')[n]}_{kind}({name})" for n in sorted(used)]
        word = f"{name} = nn_load_word(b{row} + {self.place(first)})"
        return f"const uint32_t {', '.join([word, *parts])};"

    def _half(self, row: int, pixel: int) -> tuple[str, str]:
        """A word with a pixel, and the half which that is."""
        if pixel == self.kept:
            return "kept2", "low"
        if (first := self._word(pixel)) is None:
            rows = "e" if self.apart(pixel) else "b"
            return f"(uint32_t){rows}{row}[{self.place(pixel)}]", "low"
        place = pixel - first
        return f"r{row}_{first}_{place % 2}", ("low", "high")[place // 2]

    def _word(self, pixel: int) -> int | None:
        """The first pixel of the word to load for ``pixel``; None: it is loaded alone, since no
        other that is needed is in that."""
        source, first = self.source, pixel - pixel % BLOCK
        whole = source.columns if source.plane else source.full
        used = sum(p in self.pixels for p in range(first, first + BLOCK))
        return min(first, whole - BLOCK) if pixel < whole >= BLOCK and used > 1 else None
