"""A window that slides over pixels, and the C function that computes it: what is known of both."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from pipeline.codegen.c.values import Value
from pipeline.codegen.constants import Names
from pipeline.codegen.int4.packing import Lanes, assign, bounds
from pipeline.codegen.int4.views import SCATTERED, grid
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.graph.families import Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, limits
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import IntArray, Tensor

SIZES = ((8, False), (4, False), (2, False), (2, True))
"""Taps that a run of a deep window may have at most, in code that is a loop over its runs, and
whether its lanes have one ending: the largest code first."""


@dataclass(frozen=True)
class Window:
    """Computation of a kernel, whatever its operator is called: a dense layer is one large window.

    Attributes:
        weights: (c_out, kh, kw, c_in) or None; ``bias``: (c_out,) or None.
    """

    op: Weighted | Pool2d
    source: Tensor
    target: Tensor
    kernel: tuple[int, int]
    weights: IntArray | None = None
    weight_bits: int = 4
    bias: IntArray | None = None

    @classmethod
    def of(cls, op: Operator, graph: Graph) -> Window:
        """Make the window of an operator that ``int4.window`` is declared for."""
        source, target = (graph.tensors[name] for name in (op.inputs[0], op.output))
        if isinstance(op, Pool2d):
            return cls(op, source, target, op.kernel)
        assert isinstance(op, Weighted)
        weights, bias = (graph.constants[name] for name in op.parameters)
        weights = weights if weights.ndim == 4 else weights.reshape(-1, *grid(source.shape))
        _, rows, columns, _ = weights.shape
        bits = graph.tensors[op.parameters[0]].dtype.bits
        return cls(op, source, target, (rows, columns), weights, bits, bias)

    @property
    def mac(self) -> bool:
        """It multiplies by weights (c_out, taps); others reduce a channel."""
        return isinstance(self.op, Weighted)

    @property
    def empty(self) -> int:
        """Return what reducing begins with, as stored."""
        return self.op.reduction.start(self.source.dtype)

    @property
    def requant(self) -> PowerOfTwo:
        found = getattr(self.op, "requant", PowerOfTwo())
        assert isinstance(found, PowerOfTwo)
        return found

    @property
    def stride(self) -> tuple[int, int]:
        return getattr(self.op, "stride", (1, 1))

    @property
    def dilation(self) -> tuple[int, int]:
        return getattr(self.op, "dilation", (1, 1))

    @property
    def padding(self) -> tuple[int, int, int, int]:
        return getattr(self.op, "padding", (0, 0, 0, 0))

    @property
    def limits(self) -> tuple[int, int]:
        """The least and greatest integer it stores."""
        return limits(self.target, self.op.clip)

    @property
    def depth(self) -> int:
        return grid(self.source.shape)[2]

    @property
    def depthwise(self) -> bool:
        """Each channel has weights of its own, and is multiplied with no others."""
        return getattr(self.op, "groups", 1) > 1


@dataclass(frozen=True)
class Use:
    """A call: the lines of one step, and the strides of its input's view."""

    first_line: int
    lines: int
    row: int
    column: int


@dataclass
class WindowKernel:
    """One C function for all steps of an operator whose views are of the same kinds.

    It needs no working memory in the arena: the assembly keeps its sums in registers, the portable
    C on the stack, where the build counts them (``stack_bound_bytes``).

    Attributes:
        names: of all that is in C; ``about``: what is said of it.
        in_pitch, out_pitch: of ``rows`` views.
        in_rows: of every input the pixels of a row lie side by side.
        of: how many weights (or channels) the whole window has, where this computes a part of its
            channels; the results of a part go to bytes that the caller has.
        first: the channel of the input that a part which has no weights begins with.
        values: see ``kernels.int4.values``; ``suits``: there is assembly for such windows.
        most_taps: of ``SIZES``.
        written_out: the assembly has the code of each run, not a loop over them.
        parted: it is assembly in parts where C takes less code.
        one_ending: all lanes end in one piece of code, for 7 cycles more a result.
    """

    names: Names
    name: str
    window: Window
    in_kind: str
    out_kind: str
    constants_in_flash: bool
    values: tuple[int, int]
    suits: bool
    about: str
    in_pitch: int = 0
    out_pitch: int = 0
    calls: list[Use] = field(default_factory=list)
    in_addresses: set[int] = field(default_factory=set)
    out_addresses: set[int] = field(default_factory=set)
    in_rows: bool = True
    of: int = 0
    first: int = 0
    most_taps: int = SIZES[0][0]
    written_out: bool = False
    parted: bool = False
    one_ending: bool = False

    def __post_init__(self) -> None:
        window = self.window
        self.lanes = Lanes(tuple(range(grid(window.target.shape)[2])))
        weights = window.weights
        if weights is not None and window.weight_bits == 4 and not window.depthwise:
            flat = weights.reshape(len(weights), -1)
            self.lanes = assign(*bounds(flat, window.source.dtype))

    def array(self, kind: str) -> str:
        """Name the array of its operator's ``weights`` or ``bias``."""
        return self.names(self.window.op.name, f"window_{kind}")

    @property
    def accumulator(self) -> str:
        """The C type that holds every sum and what is made of it."""
        target = self.window.target
        extremes = [each + target.zero_point for each in self.values]
        fits = extremes[0] >= -(1 << 15) and extremes[1] < 1 << 15 and target.dtype.bits <= 16
        return "int16_t" if fits else "int32_t"

    @property
    def wide(self) -> bool:
        """Results have 16 bits."""
        return self.window.target.dtype.bits == 16

    @property
    def varies(self) -> bool:
        """Check whether the input's strides differ from call to call."""
        return len({(call.row, call.column) for call in self.calls}) > 1

    @property
    def parities(self) -> set[int]:
        return {address & 1 for address in self.in_addresses if address < SCATTERED}

    @property
    def scattered(self) -> bool:
        return self.in_kind == "table" and any(a >= SCATTERED for a in self.in_addresses)

    @property
    def out_parities(self) -> set[int]:
        return {address & 1 for address in self.out_addresses if address < SCATTERED}

    @property
    def out_scattered(self) -> bool:
        return self.out_kind == "table" and any(a >= SCATTERED for a in self.out_addresses)

    def call(self, use: Use) -> Call:
        numbers = [use.lines, *([use.row, use.column] if self.varies else [])]
        lines = Argument(f"&nn_lines[{PLACE}]", Value(use.first_line))
        return Call(self.name, (lines, *(Argument(PLACE, Value(n)) for n in numbers)))

    def parts(self, most: int) -> list[WindowKernel]:
        """Kernels for at most ``most`` channels each, as many pairs of channels in one as in the
        next: together they compute what this does."""
        spec, count, weights = self.window, len(self.lanes.channels), self.window.weights
        pairs, number = -(-count // 2), -(-count // (most - most % 2))
        edges = [min(2 * (pairs * n // number), count) for n in range(number)] + [count]
        found = []
        for n, (begin, end) in enumerate(pairwise(edges)):
            some = replace(
                spec,
                op=replace(spec.op, name=f"{spec.op.name}.{n}"),
                source=spec.source if weights is not None else _some(spec.source, end - begin),
                target=_some(spec.target, end - begin),
                weights=None if weights is None else weights[begin:end],
                bias=None if spec.bias is None else spec.bias[begin:end],
            )
            found.append(
                replace(
                    self, name=f"{self.name}__part{n}", window=some, out_kind="bytes",
                    out_addresses=set(), of=count if weights is None else weights.size,
                    first=begin if weights is None else 0,
                )
            )  # fmt: skip
        return found


def _some(tensor: Tensor, channels: int) -> Tensor:
    return replace(tensor, shape=(*tensor.shape[:-1], channels))
