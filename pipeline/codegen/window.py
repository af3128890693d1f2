"""Operators that slide a window over pixels: convolution, pooling, dense as one large window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pipeline.codegen import avr
from pipeline.codegen.lines import Line, Pixel, are_disjoint, compress, pixels
from pipeline.codegen.packing import Lanes, assign, bounds, pack_bytes, pack_nibbles
from pipeline.codegen.program import Array, Program, identifier
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
    """One C function for all steps of an operator whose views are of the same kinds."""

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
        top, low = _ranges(window)
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
        values = _Portable(self, program)
        assembly = avr.window(self) if program.has_assembly else None
        portable = render("portable/window.c.j2", k=values)
        text = render("avr/window.c.j2", a=assembly, k=values) if assembly else ""
        if assembly:
            program.shared |= assembly.shared
            values.avr_step, values.avr_jump = assembly.stride_expressions
            values.twin_only = assembly.twin_only
        return render("window.c.j2", k=values, portable=portable, avr=text)


def scratch_bytes(window: Window, core: str) -> int:
    """Working memory of the kernel beside its input and output: sums that are not in registers.

    The assembly keeps all of them in registers. The portable C takes them from the stack.
    """
    kernel = WindowKernel("", window, "affine", "affine", False, [Call(0, 0, 0, 0)])
    if core == "avr" and avr.suits(kernel):
        return 0
    return len(kernel.lanes.channels) * int(kernel.accumulator[3:5]) // 8


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
    kernel = _kernel(program, window, step, in_view, out_view)
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
    for name in window.op.parameters:
        if not any(program.buffer(s).tensor == name for s in step.ins):
            raise ThimbleError(f"{op.name}: the plan's step does not read {name}")


def _kernel(
    program: Program, window: Window, step: Compute, in_view: View, out_view: View
) -> WindowKernel:
    key = f"{window.op.name}/{in_view.kind}/{out_view.kind}"
    if key not in program.kernels:
        known = sum(other.startswith(f"{window.op.name}/") for other in program.kernels)
        name = f"run_{identifier(window.op.name)}" + (f"_{known + 1}" if known else "")
        constants = [program.buffer(s) for s in step.ins if program.buffer(s).role == "constant"]
        program.kernels[key] = WindowKernel(
            name, window, in_view.kind, out_view.kind, any(map(program.in_flash, constants))
        )
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


def _ranges(window: Window) -> tuple[int, int]:
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


class _Portable:
    """What the portable template asks for, as C expressions."""

    def __init__(self, kernel: WindowKernel, program: Program) -> None:
        window, requant = kernel.window, kernel.window.requant
        source, target = window.source, window.target
        self.name, self.varies = kernel.name, kernel.varies
        self.combine, self.padded, self.dilation = window.combine, window.padded, window.dilation
        self.grid, self.taps, self.extent = window.kernel, window.depth, source.shape[:2]
        self.lanes = len(kernel.lanes.channels)
        self.acc = kernel.accumulator
        self.initial = source.dtype.minimum - source.zero_point if window.combine == "max" else 0
        self.rotates = window.weight_bits == 4 and self.lanes % 2 == 1
        self._strides(kernel)
        self._cells(kernel)
        self._weights(kernel, program)
        self.half_even = requant.rounding == "half_even"
        self.right_shift, self.zero_point = requant.right_shift, target.zero_point
        self._clip(kernel)
        self.title, self.formula = _describe(window)
        self.avr_step = self.avr_jump = ""
        self.twin_only: tuple[str, ...] = ()

    def _strides(self, kernel: WindowKernel) -> None:
        first = kernel.calls[0]
        rows, columns = ("row", "column") if kernel.varies else (str(first.row), str(first.column))
        down, right = kernel.window.dilation
        self.down = f"{down} * {rows}" if down > 1 else rows
        self.right = f"{right} * {columns}" if right > 1 else columns
        self.stride_parameters = ", int16_t row, int16_t column" if kernel.varies else ""
        self.stride_arguments = ", row, column" if kernel.varies else ""

    def _cells(self, kernel: WindowKernel) -> None:
        source, target = kernel.window.source, kernel.window.target
        table = kernel.in_kind == "table"
        self.in_pixel = "nn_flash16(&nn_pixels[position])" if table else "position"
        out_table = kernel.out_kind == "table"
        self.out_pixel = "nn_flash16(&nn_pixels[out])" if out_table else "out"
        cell = _cell("pixel", "tap", source, kernel.scattered)
        raw = f"nn_get{source.dtype.bits}(nn_arena, {cell})"
        if source.dtype.signed:
            raw = f"(int8_t){raw}" if source.dtype.bits == 8 else f"({raw} ^ 8) - 8"
        zero = source.zero_point
        self.read = f"{raw} - {zero}" if zero else raw
        out = _cell("out", "channel", target, kernel.out_scattered)
        bits = target.dtype.bits
        width = max(bits, 8)
        self.write = f"nn_put{bits}(nn_arena, {out}, (uint{width}_t)sum[n])"
        mapped = f"nn_flash8(&nn_channels_{kernel.name}[n])"
        self.channel = "n" if kernel.lanes.identity else mapped

    def _weights(self, kernel: WindowKernel, program: Program) -> None:
        window, lanes = kernel.window, kernel.lanes
        self.arrays: list[Array] = []
        self.weight = ""
        shift = window.requant.left_shift
        self.scaled = f"sum[n] * {1 << shift}" if shift else "sum[n]"
        if not lanes.identity:
            order = Array("uint8_t", f"nn_channels_{kernel.name}", lanes.channels, True)
            self.arrays.append(order)
        if window.weights is None:
            return
        flash, name = kernel.constants_in_flash, identifier(window.op.name)
        flat = window.weights.reshape(len(window.weights), -1)
        packed = window.weight_bits == 4
        values = pack_nibbles(flat, lanes) if packed else pack_bytes(flat, lanes)
        kind = "uint8_t" if packed else "int8_t"
        weights = Array(kind, f"nn_weights_{name}", tuple(values), flash)
        at = "weight >> 1" if packed else "weight"
        byte = f"nn_flash8(&{weights.name}[{at}])" if flash else f"{weights.name}[{at}]"
        acc = self.acc
        self.weight = f"({acc})(nn_nibble({byte}, weight) - 8)" if packed else f"(int8_t){byte}"
        if window.bias is not None:
            ordered = tuple(int(window.bias[c]) for c in lanes.channels)
            bits = 8 if all(-128 <= b < 128 for b in ordered) else 32
            bias = Array(f"int{bits}_t", f"nn_bias_{name}", ordered, flash)
            value = f"{bias.name}[n]"
            if flash:
                value = f"(int8_t)nn_flash8(&{value})" if bits == 8 else f"nn_flash32(&{value})"
            self.scaled += f" + {value}"
            self.arrays.append(program.once(bias))
        self.arrays.append(program.once(weights))
        self.arrays = [array for array in self.arrays if array.values]

    def _clip(self, kernel: WindowKernel) -> None:
        window, dtype = kernel.window, kernel.window.target.dtype
        zero = window.target.zero_point
        self.minimum = max(dtype.minimum, zero) if window.relu else dtype.minimum
        self.maximum = dtype.maximum
        shift = window.requant.right_shift
        self.clips_low = (kernel.value_low >> shift) + zero < self.minimum
        self.clips_high = (kernel.value_high >> shift) + zero + 1 > self.maximum

    step_type = "int16_t"


def _cell(pixel: str, index: str, tensor: Tensor, scattered: bool) -> str:
    nibbles = max(1, tensor.dtype.bits // 4)
    run = f"{pixel} + {nibbles} * {index}" if nibbles > 1 else f"{pixel} + {index}"
    if not scattered:
        return f"(uint16_t)({run})"
    torn = f"nn_flash16(&nn_scatter[({pixel} ^ NN_SCATTERED) + {index}])"
    return f"({pixel} & NN_SCATTERED ? {torn} : (uint16_t)({run}))"


def _describe(window: Window) -> tuple[str, str]:
    shapes = f"{_shape(window.source)} -> {_shape(window.target)}"
    size = f"{window.kernel[0]}x{window.kernel[1]}"
    what = {"mac": f"{size} window", "max": f"maximum of {size}", "sum": f"sum of {size}"}
    requant = window.requant
    steps = [f"sum << {requant.left_shift}" if requant.left_shift else "sum"]
    if window.bias is not None:
        steps.append("+ bias")
    if requant.right_shift:
        rounding = "rounded half to even" if requant.rounding == "half_even" else "rounded down"
        steps.append(f"then / {1 << requant.right_shift} {rounding}")
    title = f"{window.op.name}: {shapes}, {what[window.combine]}, stride {window.stride[0]}"
    return title, f"{' '.join(steps)}, clipped to {window.target.dtype}"


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))}) {tensor.dtype}"
