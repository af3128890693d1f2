"""Operators that slide a window over pixels: convolution, pooling, dense as one large window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pipeline.codegen import avr
from pipeline.codegen.lines import Line, Pixel, are_disjoint, compress, pixels
from pipeline.codegen.packing import Lanes, assign, bounds
from pipeline.codegen.portable import Portable
from pipeline.codegen.program import Program, identifier
from pipeline.codegen.render import render
from pipeline.codegen.views import SCATTERED, View, grid
from pipeline.errors import ThimbleError
from pipeline.graph.operator import Operator
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.plan.vocabulary import Compute
from pipeline.plan.walk import Env

C_INTEGER = {16: "int16_t", 32: "int32_t"}


@dataclass(frozen=True)
class Window:
    """What the kernel computes, whatever the operator is called.

    Attributes:
        combine: ``mac`` multiplies by weights (c_out, taps); ``max`` and ``sum`` reduce a channel.
        kernel, stride, dilation, padding: as Conv2d; padding is (top, left).
        weights: (c_out, kh, kw, c_in) or None; ``bias``: (c_out,) or None.
    """

    op: Operator
    source: Tensor
    target: Tensor
    combine: Literal["mac", "max", "sum"]
    kernel: tuple[int, int]
    requant: PowerOfTwo
    relu: bool = False
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    padded: bool = False
    weights: IntArray | None = None
    weight_bits: int = 4
    bias: IntArray | None = None

    @property
    def depth(self) -> int:
        return grid(self.source.shape)[2]


@dataclass(frozen=True)
class Call:
    """The lines of one step, and the strides of its input's view."""

    first_line: int
    lines: int
    row: int
    column: int


@dataclass
class WindowKernel:
    """One C function for all steps of an operator whose views are of the same kinds.

    It needs no working memory in the arena: the assembly keeps its sums in registers, the portable
    C on the stack, where the build counts them (``stack_bound_bytes``).
    """

    name: str
    window: Window
    in_kind: str
    out_kind: str
    constants_in_flash: bool
    calls: list[Call] = field(default_factory=list)
    in_addresses: set[int] = field(default_factory=set)
    out_addresses: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        window = self.window
        top, low = ranges(window)
        self.value_low, self.value_high = low, top
        self.lanes = Lanes(tuple(range(grid(window.target.shape)[2])))
        weights = window.weights
        if weights is not None and window.weight_bits == 4:
            flat = weights.reshape(len(weights), -1)
            self.lanes = assign(*bounds(flat, window.source.dtype))

    @property
    def accumulator(self) -> str:
        """The C type that holds every sum and what is made of it."""
        target = self.window.target
        extremes = (self.value_low + target.zero_point, self.value_high + target.zero_point)
        fits = extremes[0] >= -(1 << 15) and extremes[1] < 1 << 15 and target.dtype.bits <= 16
        return C_INTEGER[16 if fits else 32]

    @property
    def varies(self) -> bool:
        """Whether the input's strides differ from call to call."""
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

    def statement(self, call: Call) -> str:
        strides = f", {call.row}, {call.column}" if self.varies else ""
        return f"{self.name}(&nn_lines[{call.first_line}], {call.lines}{strides});"

    def code(self, program: Program) -> str:
        values = Portable(self, program)
        assembly = self.assembly(program)
        portable = render("portable/window.c.j2", k=values)
        text = render("avr/window.c.j2", a=assembly, k=values).strip() if assembly else ""
        if assembly:
            program.shared |= assembly.shared
            values.avr_step, values.avr_jump = assembly.stride_expressions
            values.twin_only = assembly.twin_only(self._weights_are_code(program))
        return render("window.c.j2", k=values, portable=portable, avr=text)

    def assembly(self, program: Program) -> avr.Assembly | None:
        return avr.window(self) if program.has_assembly else None

    def _weights_are_code(self, program: Program) -> bool:
        """No kernel of the operator reads its array of weights where there is assembly."""
        of_op = (k for k in program.kernels.values() if k.window.op.name == self.window.op.name)
        codes = [kernel.assembly(program) for kernel in of_op]
        return all(assembly is not None and assembly.code for assembly in codes)


def add_step(program: Program, window: Window, step: Compute, env: Env) -> None:
    """Add the call for ``step`` to ``nn_invoke``, and its kernel where there is none yet."""
    out_buffer = program.buffer(step.out)
    in_slice = next(s for s in step.ins if program.buffer(s).tensor == window.source.name)
    in_buffer = program.buffer(in_slice)
    _check(program, window, step, env)
    in_view, out_view = program.tables.view(in_buffer), program.tables.view(out_buffer)
    in_box = in_slice.box(in_buffer.shape, env)
    out_box = step.out.box(out_buffer.shape, env)
    order = pixels(step, out_box, are_disjoint(in_buffer, in_box, out_buffer, out_box))
    program.edges |= window.padded
    kernel = _kernel(program, window, in_view, out_view)
    lines = _lines(window, order, in_view, out_view, window.padded)
    call = Call(program.add_lines(lines), len(lines), in_view.row, in_view.column)
    kernel.calls.append(call)
    for y, x in order:
        kernel.out_addresses.add(program.tables.address(out_view, y, x))
    for y, x in _inputs(window, order):
        kernel.in_addresses.add(program.tables.address(in_view, y, x))
    program.statements.append(lambda: kernel.statement(call))


def _check(program: Program, window: Window, step: Compute, env: Env) -> None:
    op, target = window.op, program.buffer(step.out)
    for tensor, bits in ((window.source, 8), (window.target, 32)):
        if tensor.dtype.bits > bits:
            raise ThimbleError(
                f"{op.name}: generated code reads 4 and 8-bit activations, not {tensor.dtype}"
            )
    channels = step.out.box(target.shape, env)[-1]
    if channels != (0, target.shape[-1]) or step.partial:
        raise ThimbleError(
            f"{op.name}: generated code computes all channels of a pixel in one step; "
            "this plan splits them"
        )
    if window.weights is not None:
        kind = program.graph.tensors[op.parameters[0]].dtype
        if str(kind) not in ("int4", "int8"):
            raise ThimbleError(f"{op.name}: generated code has int4 and int8 weights, not {kind}")
    for name in window.op.parameters:
        if not any(program.buffer(s).tensor == name for s in step.ins):
            raise ThimbleError(f"{op.name}: the plan's step does not read {name}")
    for buffer in (program.buffer(s) for s in step.ins):
        if buffer.role != "constant" and program.plan.memory[buffer.memory].kind != "ram":
            raise ThimbleError(f"{op.name}: generated code computes from SRAM, not {buffer.name}")


def _kernel(program: Program, window: Window, in_view: View, out_view: View) -> WindowKernel:
    key = f"{window.op.name}/{in_view.kind}/{out_view.kind}"
    if key not in program.kernels:
        known = sum(other.startswith(f"{window.op.name}/") for other in program.kernels)
        name = f"run_{identifier(window.op.name)}" + (f"_{known + 1}" if known else "")
        in_flash = program.constants_in_flash(window.op)
        program.kernels[key] = WindowKernel(name, window, in_view.kind, out_view.kind, in_flash)
    return program.kernels[key]


def _lines(
    window: Window, order: tuple[Pixel, ...], in_view: View, out_view: View, edges: bool
) -> tuple[Line, ...]:
    positions = []
    for y, x in order:
        top = y * window.stride[0] - window.padding[0]
        left = x * window.stride[1] - window.padding[1]
        place = in_view.position(top, left), out_view.position(y, x)
        positions.append((*place, top, left) if edges else (*place, 0, 0))
    return compress(positions)


def _inputs(window: Window, order: tuple[Pixel, ...]) -> set[Pixel]:
    """The input pixels that windows at ``order`` cover, padding left out."""
    rows, columns, _ = grid(window.source.shape)
    found = set()
    for y, x in order:
        for i in range(window.kernel[0]):
            for j in range(window.kernel[1]):
                row = y * window.stride[0] - window.padding[0] + i * window.dilation[0]
                column = x * window.stride[1] - window.padding[1] + j * window.dilation[1]
                if 0 <= row < rows and 0 <= column < columns:
                    found.add((row, column))
    return found


def ranges(window: Window) -> tuple[int, int]:
    """Largest and smallest value of sums and of what requantization makes of them, biases in."""
    source = window.source.dtype
    zero = window.source.zero_point
    low, high = source.minimum - zero, source.maximum - zero
    if window.weights is not None:
        flat = window.weights.reshape(len(window.weights), -1)
        products = np.stack([flat * low, flat * high])
        sums = np.stack([products.min(0).sum(1), products.max(0).sum(1)])
    elif window.combine == "sum":
        sums = np.array([[low], [high]]) * (window.kernel[0] * window.kernel[1])
    else:
        sums = np.array([[low], [high]])
    bias = 0 if window.bias is None else window.bias
    values = (sums << window.requant.left_shift) + bias
    half = 1 << max(window.requant.right_shift - 1, 0)
    extremes = (sums, values, values + half, sums - 1)
    top, bottom = max(int(e.max()) for e in extremes), min(int(e.min()) for e in extremes)
    if top >= 1 << 31 or bottom < -(1 << 31):
        raise ThimbleError(f"{window.op.name}: its sums do not fit 32 bits")
    return top, bottom
