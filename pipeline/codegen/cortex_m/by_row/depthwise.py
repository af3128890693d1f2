"""Depthwise of a row in blocks, channel by channel: C that adds some neighbouring pixels of a
channel to all sums that they are in.

SXTB16 leaves pixels p and p + 2 of a word of four in one word: SMLAD multiplies that with weights k
and k + 2, SMLAxy with one of them. The first two rows of 3x3 are multiplied together: PKHBT and
PKHTB put one pixel of either row side by side, and SMLAD multiplies that with weights one above the
other. Sums that the next unit adds to are carried on: no pixel is loaded twice, and the output may
lie over the input.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from pipeline.codegen.constants import wrapped
from pipeline.codegen.cortex_m.by_row.rows import Alike, input_rows
from pipeline.codegen.cortex_m.ending import End, end
from pipeline.codegen.cortex_m.weights import in_words
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import layouts, out_row
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.by_row import BLOCK, RowLayout
from pipeline.kernels.cortex_m.depthwise import PAIRED, RowDepthwise, Unit
from pipeline.kernels.work import positions

HEAD = 4
"""Words of a channel's table before its weights: what sums begin with, and how they end."""


@dataclass(frozen=True)
class Layer:
    """Kernel of ``rows`` and ``columns``; ``type``: of inputs.

    Of a channel's table the weights are those of a pair of rows, one above the other, by column; of
    every other row k and k + 2, for the first ``singles`` k; then there is what sums begin with
    whose windows have columns outside of the image: one word for each of ``edges``.
    """

    op: Conv2d
    rows: int
    columns: int
    source: RowLayout
    target: RowLayout
    type: str

    @property
    def paired(self) -> bool:
        """Check whether the first two rows are multiplied together."""
        return (self.rows, self.columns) == PAIRED

    def window(self, out: int) -> range:
        left = out * self.op.stride[1] - self.op.padding[2]
        return range(left, left + self.columns)

    def outside(self, out: int) -> tuple[int, ...]:
        """Columns of the window that are outside of the image."""
        inside = range(self.source.columns)
        return tuple(k for k, pixel in enumerate(self.window(out)) if pixel not in inside)

    @cached_property
    def edges(self) -> list[tuple[int, ...]]:
        return sorted({self.outside(out) for out in range(self.target.columns)} - {()})

    @property
    def singles(self) -> int:
        return max(self.columns - 2, min(self.columns, 2))

    @property
    def first(self) -> int:
        """The first of the rows by themselves."""
        return 2 * self.paired

    def start(self, out: int) -> str:
        weights = HEAD + self.paired * self.columns + (self.rows - self.first) * self.singles
        edge = self.outside(out)
        return f"q[{weights + self.edges.index(edge) if edge else 0}]"

    def table(self, values: IntArray, finish: End, zero: int) -> IntArray:
        """(channels, rows, columns) -> (channels, words). Sums are had twice, as what ends them
        wants them."""
        twice, start = 2 * values.astype(np.int64), 2 * finish.starts.astype(np.int64)
        missing = zero * twice.sum(axis=1)  # where a column is outside
        starts = [start + missing[:, edge].sum(axis=1) for edge in map(list, self.edges)]
        pair = [in_words(twice[:, 0], twice[:, 1])] if self.paired else []
        rest = np.pad(twice[:, self.first :], ((0, 0), (0, 0), (0, 2)))
        single = in_words(rest, np.roll(rest, -2, axis=2))[:, :, : self.singles]
        head = [finish.heads(start[:, None]), *pair, single.reshape(len(values), -1)]
        return wrapped(np.concatenate([*head, *(s[:, None] for s in starts)], axis=1))


@dataclass(frozen=True)
class Code:
    """C for one unit."""

    unit: Unit
    layer: Layer

    @cached_property
    def sums(self) -> list[int]:
        """Outputs that it adds to."""
        first, last = self.unit.pixels[0], self.unit.pixels[-1]
        windows = ((out, self.layer.window(out)) for out in range(self.layer.target.columns))
        return [out for out, window in windows if window[0] <= last and window[-1] >= first]

    @property
    def carried_on(self) -> list[str]:
        return [self._sum(out) for out in self.sums if out not in self.unit.outs]

    @property
    def read_at(self) -> int:
        """Return where in channel 0 pointers into the input's rows point to."""
        first, source = self.unit.pixels[0], self.layer.source
        return source.at(first) if first < source.full else 0

    @property
    def made_at(self) -> int:
        return self.layer.target.at(self.unit.outs.start)

    @cached_property
    def lines(self) -> list[str]:
        """What two rows give, word by word, then what one does, or each of all. Beyond a stop a
        compiler moves nothing that it has no register for."""
        layer, begin = self.layer, self.unit.pixels[0]
        before = (out for out in self.sums if max(layer.window(out)[0], 0) < begin)
        there = dict.fromkeys(map(self._sum, before))
        lines = [f"int32_t {name} = c{n};" for n, name in enumerate(there)]
        for first, pixels in self._words.items() if layer.paired else ():
            lines += self._load((0, 1), first, pixels)
            for pixel in pixels:
                lines += self._paired(pixel, there)
            if first >= 0 or pixels[-1] == self.unit.pixels[-1]:
                lines.append(_stop(there))
        begun = {self._sum(out): layer.start(out) for out in self.sums}
        lines += [f"int32_t {a} = {start};" for a, start in begun.items() if a not in there]
        return [
            *lines,
            f"const int32_t *w = q + {HEAD + layer.paired * layer.columns};",
            "#pragma GCC unroll 1",
            f"for (int32_t y = {layer.first}; y < {layer.rows}; y++, w += {layer.singles}) {{",
            f"    const {layer.type} *const b2 = rows[y] + begin, *const e2 = ends[y];",
            "    (void)b2, (void)e2;",
            *(f"    {line}" for line in self._singles(list(begun))),
            "}",
            *(f"c{n} = {name};" for n, name in enumerate(self.carried_on)),
        ]

    def _singles(self, sums: list[str]) -> list[str]:
        """Write C for a row by itself: of stride 2, and where pixels are loaded one by one, sum by
        sum, otherwise word by word."""
        lines, words = list[str](), self._words
        turns = [
            (first, out, found)
            for first, pixels in words.items()
            for out in self.sums
            if (found := [p for p in pixels if p in self.layer.window(out)])
        ]
        by_sum = self.layer.op.stride[1] == 2 or max(words) < 0
        if by_sum:
            turns.sort(key=lambda turn: turn[1])
        loaded = set[int]()
        for first, out, found in turns:
            if first not in loaded:
                lines += [] if by_sum or not loaded else [_stop(sums)]
                lines += self._load((2,), first, words[first])
            loaded.add(first)
            lines += self._single(out, found)
        return lines if by_sum else [*lines, _stop(sums)]

    @property
    def stored(self) -> list[tuple[str, str]]:
        """Places, and the sums that go there."""
        return [(self._place(out), self._sum(out)) for out in self.unit.outs]

    def _place(self, out: int) -> str:
        target = self.layer.target
        if not target.plane and target.pixels > 1 and out >= target.full:
            return f"last[{out - target.full}]"
        return f"t[{target.at(out) - self.made_at}]"

    def _sum(self, out: int) -> str:
        return f"a{out - self.sums[0]}"

    @cached_property
    def _words(self) -> dict[int, list[int]]:
        """Pixels by the first one of the word to load for them; less than 0: of one by itself."""
        windows = [self.layer.window(out) for out in self.sums]
        used = (p for p in self.unit.pixels if any(p in window for window in windows))
        return {first: list(same) for first, same in groupby(used, key=self._word)}

    def _paired(self, pixel: int, there: dict[str, None]) -> list[str]:
        """Write C for two rows of a pixel."""
        (one, half), (two, _) = (self._half(row, pixel) for row in (0, 1))
        lines = [f"const uint32_t v{self._name(pixel)} = nn_{half}s({one}, {two});"]
        for out in self.sums:
            if pixel in (window := self.layer.window(out)):
                name, weights = self._sum(out), f"(uint32_t)q[{HEAD + window.index(pixel)}]"
                to, given = ("", name) if name in there else ("int32_t ", self.layer.start(out))
                there[name] = None
                lines.append(f"{to}{name} = nn_add_pair(v{self._name(pixel)}, {weights}, {given});")
        return lines

    def _single(self, out: int, pixels: list[int]) -> list[str]:
        """Write C for some pixels of a row by itself, which one sum has."""
        lines, window, name = list[str](), self.layer.window(out), self._sum(out)
        found = {window.index(p): self._half(2, p) for p in pixels}
        for k, (word, half) in found.items():
            low = k < self.layer.singles
            weights = f"(uint32_t)w[{k if low else k - 2}]"
            if half == "low" and found.get(k + 2) == (word, "high"):
                lines.append(f"{name} = nn_add_pair({word}, {weights}, {name});")
            elif half == "low" or found.get(k - 2) != (word, "low"):
                function = f"nn_add_{half}_{'low' if low else 'high'}"
                lines.append(f"{name} = {function}({word}, {weights}, {name});")
        return lines

    def _name(self, pixel: int) -> int:
        """Return a number of a pixel; a word may begin in the unit before."""
        return pixel - self.unit.pixels[0] + BLOCK

    def _load(self, rows: tuple[int, ...], first: int, pixels: list[int]) -> list[str]:
        """Return a word of each of some rows, and what is used of it, widened."""
        kind, lines = "u8" if self.layer.type == "uint8_t" else "s8", list[str]()
        used = sorted({(p - first) % 2 for p in pixels})
        for row in rows if first >= 0 else ():
            name = f"r{row}_{self._name(first)}"
            parts = [f"{name}_{n} = nn_{('even', 'odd')[n]}_{kind}({name})" for n in used]
            word = f"{name} = nn_load_word(b{row} + {self.layer.source.at(first) - self.read_at})"
            lines.append(f"const uint32_t {', '.join([word, *parts])};")
        return lines

    def _half(self, row: int, pixel: int) -> tuple[str, str]:
        """Return a word with a pixel, and the half which that is."""
        source = self.layer.source
        if (first := self._word(pixel)) >= 0:
            place = pixel - first
            return f"r{row}_{self._name(first)}_{place % 2}", ("low", "high")[place // 2]
        if pixel >= source.full:
            return f"(uint32_t)e{row}[{pixel - source.full}]", "low"
        return f"(uint32_t)b{row}[{source.at(pixel) - self.read_at}]", "low"

    def _word(self, pixel: int) -> int:
        """Return the first pixel of the word to load for ``pixel``; less than 0: no other that is
        needed is in that."""
        full, first = self.layer.source.full, pixel - pixel % BLOCK
        used = sum(p in self.unit.pixels for p in range(first, first + BLOCK))
        return min(first, full - BLOCK) if pixel < full >= BLOCK and used > 1 else -1 - pixel


def _stop(sums: Iterable[str]) -> str:
    return f"""__asm__ volatile("" : {", ".join(f'"+r"({name})' for name in sums)});"""


def compute(job: Job) -> None:
    op, kernel, form = job.operator(Conv2d), RowDepthwise(), job.form
    source, target = layouts(job, kernel, input_rows(job))
    tensor, name, finish = job.source, op.parameters[0], end(job)
    rows, columns = positions(form)
    values = job.program.graph.constants[name].reshape(source.channels, rows, columns)
    layer = Layer(op, rows, columns, source, target, f"{tensor.dtype}_t")
    codes = (Code(unit, layer) for unit in kernel.units(form))
    runs = Alike.all(codes, lambda code: (code.lines, code.stored))
    table = layer.table(values, finish, tensor.zero_point)
    job.call(
        "cortex_m/by_row/depthwise",
        {"out": out_row(job), **{row.name: row for row in input_rows(job)}}, kind="row",
        layer=layer, runs=runs, carried=max(len(run.one.carried_on) for run in runs),
        words=table.shape[1],
        table=job.table(
            "row_weights", "int32_t", table,
            "for each channel what sums begin with, how they end, weights", weights=True,
        ),
        end=finish,
    )  # fmt: skip


WRITERS = {"cortex_m.row_depthwise": compute}
