"""Windows over values of 4 bits on an AVR: which of them assembly of ``codegen.int4`` computes, and
how long that takes, and C."""

from dataclasses import dataclass
from typing import NamedTuple

from pipeline.graph.families import Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, limits
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.kernels.form import Form
from pipeline.kernels.int4 import Window, values
from pipeline.kernels.quick import channel_sums
from pipeline.kernels.work import made, products

MOST_SUMS, MOST_COUNTED = 11, 9
"""Sums of a pixel that r2…r25 hold, but for that of activations: of a part where there are more.
The latter leave a register for a count of runs."""

MOST_RUNS = 255
"""Most that a byte counts."""

LONG_RUN, MOST_TAPS = 8, 24
"""Most taps of a run where pixels, or rows of windows, are divided, and of any."""

MOST_CODE = 1800
"""Weights that become instructions, about 6 B each, counted for each nibble that a pixel may begin
with."""

REACH = 1 << 15

NARROW = 1 << 12
"""Range of a channel's sums below which it has products in common with another."""

VALUE, AVERAGED, ROW_FOUND, ROW_READ = 11.5, 85.0, 100.0, 4.0
"""Cycles of a value that is compared, and of one that portable C averages; of the addresses of a
window's pixels where rows lie anywhere, and more of an activation there, of weights in flash."""


class Costs(NamedTuple):
    """Cycles of a pixel, of an activation, more of one of a pixel in several pieces, of each of its
    products, which one of 0 has none of in assembly, and more of two that are summed apart."""

    pixel: float
    read: float
    scattered: float
    product: float
    apart: float = 0


CODE, IN_SRAM = Costs(175, 4.5, 28, 3.7), Costs(219, 9.5, 29.5, 5.5, 4)
IN_FLASH = Costs(270, 11, 29.5, 6, 5)
"""Costs where weights are instructions, in SRAM, and tables in flash."""

PORTABLE = {16: Costs(500, 32, 0, 43.5), 32: Costs(1000, 46, 0, 85)}
"""Costs in C, by the bits of sums."""


def suits(op: Operator, graph: Graph) -> bool:
    """Check for unsigned activations of 4 bits, weights of 4 bits that every channel is multiplied
    with, sums and values of 16 bits, no padding: assembly computes such windows."""
    source, target = graph.tensors[op.inputs[0]], graph.tensors[op.output]
    nibbles, kind = str(target.dtype) == "uint4", target.dtype
    whole = limits(target, getattr(op, "clip", None)) == (kind.minimum, kind.maximum)
    if str(source.dtype) != "uint4" or source.zero_point or any(getattr(op, "padding", ())):
        return False
    if not isinstance(op, Weighted):
        return op.combine != "add" and nibbles and whole and not target.zero_point
    (low, high), requant = values(op, graph), op.requant
    weights, bias = (graph.tensors[op.parameters[0]], graph.constants[op.parameters[1]])
    if not isinstance(requant, PowerOfTwo) or getattr(op, "groups", 1) > 1:
        return False
    narrow = nibbles and requant.right_shift <= 11 and requant.rounding == "half_even"
    wide = str(kind) == "int16" and not (target.zero_point or requant.right_shift)
    return (
        (narrow or wide)
        and whole
        and weights.dtype.bits == 4
        and requant.left_shift <= 4
        and target.zero_point % 2 == 0  # halves are rounded to even either way
        and low >= -REACH
        and high + (target.zero_point << requant.right_shift) < REACH
        and bool((abs(bias + 0.5) < 128).all())
    )


def run_taps(taps: int, most: int = LONG_RUN) -> int:
    """Choose how many of a row's taps are a run: the most that divide it evenly, in whole bytes; 0:
    none do."""
    return max((n for n in range(2, most + 1, 2) if taps % n == 0), default=0)


@dataclass(frozen=True)
class AvrWindow(Window):
    """
    Attributes:
        weights_in: ``sram`` or ``flash``.
    """

    weights_in: str = "sram"
    skips = True

    def cycles(self, form: Form) -> float:
        op, channels, tensors = form.op, form.out.extents[-1], form.graph.tensors
        pixels, parts = made(form) // channels, self._parts(form)
        if isinstance(op, AveragePool2d):
            return AVERAGED * products(form)
        if not op.weighted:
            return (VALUE if parts else self.work_cycles) * products(form)
        source, given, alone = op.inputs[0], form.given, getattr(op, "groups", 1) > 1
        even = given.spread != "table" and form.source.shape[-1] % 2 == 0
        code = tensors[op.parameters[0]].size * (1 if even else 2)
        used_again = form.target.size > form.target.shape[-1]
        as_code = used_again and parts == 1 and code <= MOST_CODE
        low, high = values(op, form.graph)
        costs = IN_SRAM if self.weights_in == "sram" else CODE if as_code else IN_FLASH
        if not parts:
            costs = PORTABLE[16 if low >= -REACH and high < REACH else 32]
        read, found = (
            costs.read + costs.scattered * form.scattered_pixels.get(source, 0.0),
            costs.pixel,
        )
        if given.spread == "rows":
            read, found = read + ROW_READ * (costs is IN_FLASH), found + ROW_FOUND
        used = products(form) * (1 - form.zeros.get(source, 0.0) * (parts > 0))
        reads = products(form) / (1 if alone else channels) * read
        product = costs.product + costs.apart * self._apart(form) / channels
        return max(parts, 1) * (pixels * found + reads) + used * product

    def _apart(self, form: Form) -> int:
        """Count the pairs of channels neither of which is narrow: they share no product."""
        op, channels = form.op, form.out.extents[-1]
        assert isinstance(op, Weighted)
        low, high = channel_sums(op, form.graph).T
        return max(0, channels // 2 - int((high - low < NARROW).sum()))

    def _parts(self, form: Form) -> int:
        """Count the parts that the channels are computed in; 0: in C."""
        op, channels, depth = form.op, form.out.extents[-1], form.source.shape[-1]
        if not suits(op, form.graph):
            return 0
        if not op.weighted:
            return 1
        _, *window = form.graph.tensors[op.parameters[0]].shape
        rows, columns, _ = window if len(window) == 3 else (1, 1, depth)
        row, evenly = columns * depth, form.given.spread == "strides"
        divided = row if row <= LONG_RUN else 0 if depth % 2 or depth <= LONG_RUN else run_taps(row)
        taps = divided if evenly and divided else depth
        runs, counts = rows * row // taps, 1 if channels <= MOST_SUMS else -(-channels // 10)
        lanes = -(-channels // counts)
        if runs > MOST_RUNS or (taps > MOST_TAPS and (evenly or self.weights_in == "sram")):
            return 0
        apart = len({run * taps * lanes // 2 % 256 for run in range(runs)}) == runs
        return counts if apart or lanes <= MOST_COUNTED else -(-channels // (MOST_COUNTED - 1))
