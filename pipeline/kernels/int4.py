"""C for elements of 4 and 8 bits that are requantized by shifts: a window over pixels anywhere;
sums and crops of 4 bits."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from pipeline.graph.families import Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.placing import Concat, Rearrange
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.kernels.form import Form
from pipeline.kernels.kernel import Kernel
from pipeline.kernels.quick import channel_sums
from pipeline.kernels.safe_offset import SafeOffset, in_its_place, pixel_offset
from pipeline.kernels.work import Counts, made, priced, products

NIBBLES = 0x8000
"""Nibbles that addresses reach."""
OUT_OF_REACH = "kernels of 4-bit networks address an arena of 16 KiB"

COSTS: dict[str, Counts] = {
    "": {"product": 0.655, "odd product": 1.02, "value": 0.64, "byte": 0.08, "output": 0.68},
    "cortex-m0plus": {
        **{"product": 0.4, "odd product": 0.57, "tap": 0.33, "value": 0.48, "byte": 0.08},
        "output": 0.49,
    },
}
"""Costs of windows in C, in ``work_cycles``; by core, where a kind takes less in proportion: fitted
to layers of networks simulated on NUCLEO-L4R5ZI, G0B1RE and Pico. A product of a pixel that has an
odd number of them finds its half of a byte."""


@dataclass(frozen=True)
class NibbleKernel(Kernel):
    """
    Attributes:
        word: its name in its set.
        work_cycles: of an element that is added or copied, about those of a multiply–accumulate.
        core: whose costs a window has.
    """

    word: ClassVar[str]
    work_cycles: float
    core: str = ""

    @property
    def name(self) -> str:
        return f"int4.{self.word}"

    def looks_up(self, form: Form) -> bool:
        return form.scattered

    def cycles(self, form: Form) -> float:
        return self.work_cycles * prod(form.out.extents)


class Window(NibbleKernel):
    """A convolution, a pooling, or a dense layer as one large window: a pixel at a time."""

    word = "window"

    def why_not(self, form: Form) -> str:
        op, tensors = form.op, form.graph.tensors
        if not op.slides:
            return f"no code for {type(op).__name__}; have Conv2d, Dense, Pool2d"
        groups, depth = getattr(op, "groups", 1), form.source.shape[-1]
        if groups != 1 and (groups != depth or form.target.shape[-1] % depth):
            return f"generated code has no grouped convolution but depthwise ones (groups={groups})"
        requant = getattr(op, "requant", PowerOfTwo())
        if not isinstance(requant, PowerOfTwo):
            return (
                "code for this core requantizes by shifts (quantize=int4), not by "
                f"{type(requant).__name__}"
            )
        for tensor, bits in ((form.source, 8), (form.target, 32)):
            if tensor.dtype.bits > bits:
                return f"generated code reads 4 and 8-bit activations, not {tensor.dtype}"
        if form.partial or not form.covers(op.output, slice(-1, None)):
            return (
                "generated code computes all channels of a pixel in one step; this plan splits them"
            )
        for name in op.parameters[:1]:
            if str(tensors[name].dtype) not in ("int4", "int8"):
                return f"generated code has int4 and int8 weights, not {tensors[name].dtype}"
            if tensors[name].zero_point:
                return "generated code has weights with zero point 0"
        return ""

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        """Windows over pixels keep what they make of one until its inputs are read."""
        if form.op.slides and len(form.target.shape) == len(form.source.shape) == 3:
            safe = pixel_offset(form, tensor)
            return safe and SafeOffset(safe.forwards)
        return super().overlap(form, tensor)

    def cycles(self, form: Form) -> float:
        return self.work_cycles * priced(counted(form), COSTS.get(self.core, COSTS[""]))

    def table_passes(self, form: Form, cached_bytes: int = 0) -> float:
        return made(form) / form.out.extents[-1]


def counted(form: Form) -> Counts:
    """Count what C for a window does."""
    op, number = form.op, products(form)
    if not op.weighted:
        kind = "byte" if form.source.dtype.bits == 8 else "value"
        return {kind: number, "output": made(form)}
    each = form.target.shape[-1] // getattr(op, "groups", 1)
    kind = "odd product" if each % 2 else "product"
    return {kind: number, "tap": number / each, "output": made(form)}


def values(op: Operator, graph: Graph) -> tuple[int, int]:
    """Return the least and greatest value of a window's sums and of what requantization makes of
    them, biases in."""
    bias, requant = np.zeros(1, dtype=np.int64), getattr(op, "requant", PowerOfTwo())
    if isinstance(op, Weighted):
        sums, bias = channel_sums(op, graph), graph.constants[op.parameters[1]]
    else:
        source = graph.tensors[op.inputs[0]]
        each = np.array([[source.dtype.minimum, source.dtype.maximum]]) - source.zero_point
        sums = each * (op.atoms(graph.tensors) if isinstance(op, AveragePool2d) else 1)
    scaled = (sums << requant.left_shift) + bias[:, None]
    half = 1 << max(requant.right_shift - 1, 0)
    ends = (sums, scaled, scaled + half, sums - 1)
    return min(int(end.min()) for end in ends), max(int(end.max()) for end in ends)


class Sum(NibbleKernel):
    """Two tensors of 4 bits, element by element: what a pair gives is looked up, however it is
    requantized."""

    word = "sum"

    def why_not(self, form: Form) -> str:
        op, tensors = form.op, form.graph.tensors
        if not isinstance(op, Add):
            return f"no code for {type(op).__name__}; have Add"
        if set(op.operands) != set(op.inputs) or set(op.same_sized(tensors)) != set(op.inputs):
            return "generated code adds two activations of 4 bits and of one shape"
        names = (op.output, *op.inputs)
        if any(tensors[name].dtype.bits != 4 for name in names):
            return "generated code adds up 4 bits to 4 bits, or 8 to 8"
        if not all(form.covers(name, slice(-1, None)) for name in names):
            return "generated code adds up all channels of a pixel"
        return ""


def crops(op: Operator, tensors: Tensors) -> bool:
    """Check whether ``op`` takes pixels of 4 bits out of an image, as they are: over that, too."""
    source = tensors[op.inputs[0]]
    return isinstance(op, Rearrange) and source.dtype.bits == 4 and op.whole_pixels(source.shape)


class Copy(NibbleKernel):
    """Pixels of 4 bits that are taken out of an image, or rows joined to one, as they are."""

    word = "copy"

    def why_not(self, form: Form) -> str:
        op = form.op
        rows = isinstance(op, Concat) and op.axis == 0 and len(form.target.shape) == 3
        if not (rows or crops(op, form.graph.tensors)):
            return f"no code for {type(op).__name__}; have crops and joined rows of 4 bits"
        return ""

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        """Say that what is joined is in its place."""
        return in_its_place(form, tensor) or super().overlap(form, tensor)
