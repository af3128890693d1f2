"""Windows over values of 4 bits on an AVR: how long the assembly of ``codegen.int4`` takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.kernels.form import Form
from pipeline.kernels.int4 import Window
from pipeline.kernels.work import made, products

MOST_SUMS, EVEN_SUMS = 11, 10
"""Sums of a pixel that r2…r25 hold, but for that of activations; of a part where there are more."""

MOST_CODE = 1800
"""Weights that become instructions, about 6 B each, counted for each nibble that a pixel may begin
with."""

VALUE, AVERAGED, ROW_FOUND = 11.5, 85.0, 100.0
"""Cycles of a value that is compared, and of one that portable C averages; of the addresses of a
window's pixels where rows lie anywhere."""


class Costs(NamedTuple):
    """Cycles of a pixel, of an activation, more of one of a pixel in several pieces, and of each of
    its products, which one of 0 has none of."""

    pixel: float
    read: float
    torn: float
    product: float


CODE, IN_SRAM = Costs(175, 4.5, 28, 3.7), Costs(219, 7.4, 29.5, 6.5)
IN_FLASH = Costs(270, 14.2, 29.5, 7.9)
"""Costs where weights are instructions, in SRAM, and tables in flash."""


@dataclass(frozen=True)
class AvrWindow(Window):
    """
    Attributes:
        weights_in: ``sram`` or ``flash``.
    """

    weights_in: str = "sram"
    skips = True

    def cycles(self, form: Form) -> float:
        op, channels = form.op, form.out.extents[-1]
        if not self._in_assembly(form):
            averages = isinstance(op, AveragePool2d)
            return (AVERAGED if averages else self.work_cycles) * products(form)
        if not op.weighted:
            return VALUE * products(form)
        parts = 1 if channels <= MOST_SUMS else -(-channels // EVEN_SUMS)
        pixels, source, given = made(form) // channels, op.inputs[0], form.given
        even = given.spread != "table" and form.source.shape[-1] % 2 == 0
        code = form.graph.tensors[op.parameters[0]].size * (1 if even else 2)
        used_again = form.target.size > form.target.shape[-1]
        as_code = used_again and parts == 1 and code <= MOST_CODE
        costs = IN_SRAM if self.weights_in == "sram" else CODE if as_code else IN_FLASH
        read = costs.read + costs.torn * form.torn_pixels.get(source, 0.0)
        found = costs.pixel + ROW_FOUND * (given.spread == "rows")
        used = products(form) * (1 - form.zeros.get(source, 0.0))
        return parts * (pixels * found + products(form) / channels * read) + used * costs.product

    def _in_assembly(self, form: Form) -> bool:
        op, names = form.op, (*form.op.inputs, *form.op.parameters[:1])
        narrow = all(form.graph.tensors[name].dtype.bits == 4 for name in names)
        one_group = getattr(op, "groups", 1) == 1 and not isinstance(op, AveragePool2d)
        return narrow and one_group and not any(getattr(op, "padding", ()))
