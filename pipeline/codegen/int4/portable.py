"""A window in portable C: what ``firmware/kernels/int4/pixel.c.j2`` fills in."""

from collections.abc import Sequence

import numpy as np

from pipeline.codegen.constants import Table, c_bits
from pipeline.codegen.int4.kernel import WindowKernel
from pipeline.codegen.int4.packing import pack_bytes, pack_nibbles
from pipeline.codegen.int4.views import cell_at, element
from pipeline.codegen.int4.windows import Windows
from pipeline.codegen.render import comment
from pipeline.graph.tensor import IntArray


class Portable:
    """Values that the portable template asks for, as C expressions."""

    def __init__(self, kernel: WindowKernel, windows: Windows) -> None:
        window, requant = kernel.window, kernel.window.requant
        source, target = window.source, window.target
        self.name, self.varies = kernel.name, kernel.varies
        self.lines_type = f"uint{c_bits(call.lines for call in kernel.calls)}_t"
        self.pixel_steps = windows.pixel_steps
        self.mac, self.padded = window.mac, any(window.padding)
        self.dilation = window.dilation
        self.grid, self.taps, self.extent = window.kernel, window.depth, source.shape[:2]
        self.lanes = len(kernel.lanes.channels)
        self.acc = kernel.accumulator
        self.sign = window.op.reduction.sign
        self.initial = window.empty - source.zero_point * bool(self.sign)
        self.depthwise = window.depthwise
        self.rotates = window.weight_bits == 4 and self.lanes % 2 == 1 and not self.depthwise
        self._strides(kernel)
        self._cells(kernel)
        self._weights(kernel, windows)
        self.half_even = requant.rounding == "half_even"
        self.right_shift, self.zero_point = requant.right_shift, target.zero_point
        self._clip(kernel)
        self.title = comment(kernel.about)

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
        self.in_pixel = cell_at(kernel.in_kind, kernel.in_pitch, "position")
        self.out_pixel = cell_at(kernel.out_kind, kernel.out_pitch, "out")
        tap = f"({kernel.first} + tap)" if kernel.first else "tap"
        cell = element("pixel", tap, source.dtype.bits, kernel.scattered)
        raw = f"nn_get{source.dtype.bits}(nn_arena, {cell})"
        if source.dtype.signed:
            raw = f"(int8_t){raw}" if source.dtype.bits == 8 else f"({raw} ^ 8) - 8"
        zero = source.zero_point
        self.read = f"{raw} - {zero}" if zero else raw
        out = element("out", "channel", target.dtype.bits, kernel.out_scattered)
        bits = target.dtype.bits
        width = max(bits, 8)
        self.write = f"nn_put{bits}(nn_arena, {out}, (uint{width}_t)sum[n])"
        self.put = f"nn_put{bits}(nn_arena, {out}, results[channel])"
        self.to = "uint16_t out"
        self.result = f"uint{width}_t"
        if kernel.of:
            self.to = f"{self.result} *results"
            self.write = f"results[channel] = ({self.result})sum[n]"
        mapped = f"nn_flash{c_bits(kernel.lanes.channels)}(&{kernel.name}__channels[n])"
        self.channel = "n" if kernel.lanes.identity else mapped

    def _weights(self, kernel: WindowKernel, windows: Windows) -> None:
        window, lanes = kernel.window, kernel.lanes
        self.arrays: list[Table] = []
        self.weight, self.weight_index = "", "uint16_t"
        shift = window.requant.left_shift
        self.scaled = f"sum[n] * {1 << shift}" if shift else "sum[n]"
        if not lanes.identity:
            kind = f"uint{c_bits(lanes.channels)}_t"
            self.arrays.append(_array(f"{kernel.name}__channels", kind, lanes.channels))
        if window.weights is None:
            return
        flash = kernel.constants_in_flash
        flat = window.weights.reshape(len(window.weights), -1)
        packed = window.weight_bits == 4
        apart = window.depthwise
        values = pack_nibbles(flat, lanes, apart) if packed else pack_bytes(flat, lanes)
        kind = "uint8_t" if packed else "int8_t"
        weights = _array(kernel.array("weights"), kind, values, flash)
        at = "weight >> 1" if packed else "weight"
        byte = f"nn_flash8(&{weights.name}[{at}])" if flash else f"{weights.name}[{at}]"
        acc = self.acc
        self.weight_index = "uint16_t" if flat.size < 1 << 16 else "uint32_t"
        self.weight = f"({acc})(nn_nibble({byte}, weight) - 8)" if packed else f"(int8_t){byte}"
        if window.bias is not None:
            ordered = window.bias[list(lanes.channels)]
            bits = 8 if abs(ordered + 0.5).max() < 128 else 32
            bias = _array(kernel.array("bias"), f"int{bits}_t", ordered, flash)
            value = f"{bias.name}[n]"
            if flash:
                value = f"(int{bits}_t)nn_flash{bits}(&{value})"
            self.scaled += f" + {value}"
            self.arrays += windows.once(bias)
        self.arrays += windows.once(weights)

    def _clip(self, kernel: WindowKernel) -> None:
        window, zero = kernel.window, kernel.window.target.zero_point
        self.minimum, self.maximum = window.limits
        shift = window.requant.right_shift
        self.clips_low = (kernel.values[0] >> shift) + zero < self.minimum
        self.clips_high = (kernel.values[1] >> shift) + zero + 1 > self.maximum


def _array(name: str, kind: str, values: Sequence[int] | IntArray, in_flash: bool = True) -> Table:
    place = "NN_FLASH NN_KEEP" if in_flash else "NN_KEEP"
    return Table(name, kind, np.asarray(values), "", in_flash, placed=place)
