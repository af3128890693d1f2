"""Which instructions make some neighbouring outputs of a channel, depthwise 3x3, of rows in blocks.

Rows 0 and 1 are multiplied together: a word of each is four pixels, PKHBT and PKHTB put one pixel
of either row side by side, and SMLAD multiplies that with weights one above the other. Row 2 is
used as SXTB16 leaves it: pixels p and p + 2 in one word, which SMLAD multiplies with weights 0 and
2, and SMLAxy with weight 1. What the group to the right needs of this one's last pixel is kept,
since the output may lie over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pipeline.codegen.cortex_m.by_row.registers import Assembly
from pipeline.kernels.cortex_m.by_row.depthwise import TAPS
from pipeline.kernels.cortex_m.by_row.layout import BLOCK, RowLayout

REGISTERS = 14
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

    def byte(self, row: int, pixel: int) -> str:
        """C of a pixel that it loads."""
        return f"{'e' if self.apart(pixel) else 'b'}{row}[{self.place(pixel)}]"

    def pair(self, pixel: int) -> str:
        """C of that pixel of rows 0 and 1."""
        if pixel == self.kept:
            return "kept"
        return f"nn_lows((uint32_t){self.byte(0, pixel)}, (uint32_t){self.byte(1, pixel)})"

    def third(self, pixel: int) -> str:
        """C of that pixel of row 2."""
        return "kept2" if pixel == self.kept else self.byte(2, pixel)

    # --- assembly

    @cached_property
    def vertical(self) -> Assembly:
        """Rows 0 and 1: operands q (the table), b0 and b1, e0 and e1 in memory, kept, and sums."""
        carried = self.kept is not None or self.keeps is not None
        asm = Assembly(REGISTERS - self.count - 3 - carried)
        where = {} if self.kept is None else {self.kept: "kept"}
        for number, part in enumerate(self._parts(asm.temporaries)):
            reads: set[int | None] = {*part, *([] if number else [self.kept])}
            uses = [
                [(o, p) for o in self.outs if (p := self.window(o)[k]) in reads and p is not None]
                for k in range(TAPS)
            ]
            loaded = set(where)
            for k, each in enumerate(uses):
                if not each:
                    continue
                for _, pixel in each:
                    if pixel not in where:
                        self._load_pair(asm, where, pixel, reads - loaded)
                        loaded |= set(where)
                weights = asm.take()
                asm.load("ldr", weights, "q", 4 * (PAIRS + k))
                for out, pixel in each:
                    total = f"a{out - self.first}"
                    asm("smlad", total, where[pixel], weights, total)
                asm.give(weights)
                later = {p for those in uses[k + 1 :] for _, p in those} | {self.keeps}
                for pixel in [p for p in where if p not in later]:
                    asm.give(where.pop(pixel))
        if self.keeps is not None:
            asm("mov", "kept", where[self.keeps])
        return asm

    def _parts(self, registers: int) -> list[list[int]]:
        """The pixels in parts that so many are enough for, words whole: taking one apart needs five
        registers, a pixel alone one more than it stays in, as weights do."""
        found: list[list[int]] = [[]]
        words: dict[int, list[int]] = {}
        for pixel in self.pixels:
            words.setdefault(pixel // BLOCK, []).append(pixel)
        for word in words.values():
            if len(found[-1]) + (5 if len(word) > 2 else len(word) + 1) > registers:
                found.append([])
            found[-1] += word
        return found

    def _word(self, pixel: int, wanted: set[int | None]) -> int | None:
        """The first pixel of the word to load for ``pixel``; None: it is loaded alone, since few
        of ``wanted`` are in that."""
        source = self.source
        if (source.plane and source.columns < BLOCK) or (not source.plane and pixel >= source.full):
            return None
        first = min(pixel, source.columns - BLOCK) if source.plane else pixel - pixel % BLOCK
        return first if sum(p in wanted for p in range(first, first + BLOCK)) > 2 else None

    @property
    def _letter(self) -> str:
        return "s" if self.signed else "u"

    def _load_byte(self, asm: Assembly, to: str, row: int, pixel: int) -> None:
        base = f"b{row}"
        if self.apart(pixel):
            asm.lines.append(f"ldr %[{to}], %[e{row}]")
            base = to
        asm.load("ldrsb" if self.signed else "ldrb", to, base, self.place(pixel))

    def _load_pair(
        self, asm: Assembly, where: dict[int, str], pixel: int, wanted: set[int | None]
    ) -> None:
        """``pixel`` of rows 0 and 1, and what of ``wanted`` comes with it."""
        first = self._word(pixel, wanted)
        a, b = asm.take(), asm.take()
        if first is None:
            self._load_byte(asm, a, 0, pixel)
            self._load_byte(asm, b, 1, pixel)
            asm("pkhbt", a, a, b, "lsl #16")
            asm.give(b)
            where[pixel] = a
            return
        even_a, even_b, extra = asm.take(), asm.take(), asm.take()
        asm.load("ldr", a, "b0", self.place(first))
        asm.load("ldr", b, "b1", self.place(first))
        for word, even in ((a, even_a), (b, even_b)):
            asm(f"{self._letter}xtb16", even, word)
            asm(f"{self._letter}xtb16", word, word, "ror #8")
        # each result goes where its last source was
        for number, (code, to, low, high, shift) in enumerate(
            (
                ("pkhbt", extra, even_a, even_b, "lsl #16"),
                ("pkhtb", even_b, even_b, even_a, "asr #16"),
                ("pkhbt", even_a, a, b, "lsl #16"),
                ("pkhtb", b, b, a, "asr #16"),
            )
        ):
            pixel = first + (0, 2, 1, 3)[number]
            if pixel in wanted and pixel not in where:
                asm(code, to, low, high, shift)
                where[pixel] = to
            else:
                asm.give(to)
        asm.give(a)

    @cached_property
    def single(self) -> Assembly:
        """Row 2: operands q, b2, e2 in memory, kept2, and sums."""
        carried = self.kept is not None or self.keeps is not None
        asm = Assembly(REGISTERS - self.count - 2 - carried)
        where = {} if self.kept is None else {self.kept: ("kept2", "b")}
        owned: dict[str, set[int]] = {}
        ends, middle = asm.take(), asm.take()
        asm.load("ldr", ends, "q", 4 * ENDS)
        asm.load("ldr", middle, "q", 4 * MIDDLE)
        last = {p: max(o for o in self.outs if p in self.window(o)) for p in self.pixels}
        if self.keeps is not None:
            last[self.keeps] = self.outputs
        for out in self.outs:
            window = self.window(out)
            missing = [p for p in window if p is not None and p not in where]
            wanted: set[int | None] = {p for p in self.pixels if p not in where}
            for pixel in sorted(missing, key=lambda p: self._word(p, wanted) is not None):
                if pixel not in where:
                    self._load_single(asm, where, owned, pixel, wanted)
            self._add_single(asm, where, out, ends, middle)
            for register, held in list(owned.items()):
                if all(last[p] <= out for p in held):
                    del owned[register]
                    asm.give(register)
        if self.keeps is not None:
            register, half = where[self.keeps]
            asm("mov" if half == "b" else "asr", "kept2", register, *["#16"] * (half == "t"))
        return asm

    def _load_single(
        self, asm: Assembly, where: dict[int, tuple[str, str]], owned: dict[str, set[int]],
        pixel: int, wanted: set[int | None],
    ) -> None:  # fmt: skip
        first = self._word(pixel, wanted)
        even = asm.take()
        if first is None:
            self._load_byte(asm, even, 2, pixel)
            where[pixel], owned[even] = (even, "b"), {pixel}
            return
        odd = asm.take()
        asm.load("ldr", even, "b2", self.place(first))
        asm(f"{self._letter}xtb16", odd, even, "ror #8")
        asm(f"{self._letter}xtb16", even, even)
        owned[even], owned[odd] = set(), set()
        for n in range(BLOCK):
            if first + n in wanted and first + n not in where:
                register = (even, odd)[n % 2]
                where[first + n] = register, "bt"[n // 2]
                owned[register].add(first + n)

    def _add_single(
        self, asm: Assembly, where: dict[int, tuple[str, str]], out: int, ends: str, middle: str
    ) -> None:
        total = f"a{out - self.first}"
        left, center, right = (None if p is None else where[p] for p in self.window(out))
        if left and right and left[0] == right[0] and left[1] + right[1] == "bt":
            asm("smlad", total, left[0], ends, total)
        else:
            for found, half in ((left, "b"), (right, "t")):
                if found:
                    asm(f"smla{found[1]}{half}", total, found[0], ends, total)
        assert center is not None, "kernels with nothing in the middle are not taken"
        asm(f"smla{center[1]}b", total, center[0], middle, total)
