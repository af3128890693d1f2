"""Operators that slide a window over pixels: convolution, pooling, dense as one large window."""

from dataclasses import replace
from itertools import accumulate, groupby, product
from math import prod

import numpy as np

from pipeline.codegen.c.order import Line, straight
from pipeline.codegen.constants import stored
from pipeline.codegen.int4 import avr
from pipeline.codegen.int4.kernel import Use, Window, WindowKernel
from pipeline.codegen.int4.portable import Portable
from pipeline.codegen.int4.views import View, as_pixels, grid
from pipeline.codegen.int4.windows import Windows
from pipeline.codegen.int8.job import Job
from pipeline.codegen.render import render
from pipeline.errors import ThimbleError
from pipeline.kernels.avr.window import MOST_COUNTED, MOST_SUMS, suits
from pipeline.kernels.int4 import values

Pixel = tuple[int, int]

MOST_PIXELS = 255
"""Most pixels of a line."""

MOST_REACHED = 15 << 10
"""Bytes of SRAM, behind registers, below what ``nn_places`` flags scattered pixels with."""


def compute(job: Job) -> None:
    """Add the step's call, and its kernel where there is none yet. No loop is around it."""
    program, step, window = job.program, job.step, Window.of(job.op, job.program.graph)
    windows = program.windows
    out_buffer = program.buffer(step.out)
    in_slice, *_ = [job.given(name) for name in (window.source.name, *job.op.parameters)]
    in_buffer = program.buffer(in_slice)
    in_view, out_view = windows.tables.view(in_buffer), windows.tables.view(out_buffer)
    order = pixels(job)
    windows.edges |= any(window.padding)
    kernel = _kernel(job, window, in_view, out_view)
    lines = _lines(window, order, in_view, out_view)
    use = Use(stored(windows.lines, lines), len(lines), in_view.row, in_view.column)
    kernel.calls.append(use)
    rows = as_pixels(in_buffer)  # which may lie in a ring
    apart = np.diff(rows.reshape(len(rows), -1), axis=1)
    kernel.in_rows &= bool((apart == in_buffer.nibbles).all())
    kernel.out_addresses |= {windows.tables.address(out_view, *at) for at in order}
    kernel.in_addresses |= {windows.tables.address(in_view, *at) for at in _inputs(window, order)}
    program.run(window.op.name, lambda: kernel.call(use))


def pixels(job: Job) -> tuple[Pixel, ...]:
    """Return the pixels that a step makes, in its order; a vector is one pixel (0, 0).

    The generated kernels read all inputs of a pixel before they write any of it. A step whose unit
    is smaller is carried out as well by that: reading earlier and writing later within a step
    changes nothing, because no step reads what it writes. A larger unit needs inputs
    and outputs that are apart.

    Raises:
        ThimbleError: for an order or a unit that one pixel at a time cannot follow.
    """
    step = job.step
    out = step.out.box(job.target.shape, {})
    if len(out) == 1:
        return ((0, 0),)
    extents = tuple(stop - start for start, stop in out)
    unit = step.unit or (1,) * len(out)
    if prod(unit[:2]) > 1 and not job.apart:
        raise ThimbleError(
            f"generated code reads and writes {step.op} pixel by pixel, but the plan reads "
            f"{'x'.join(map(str, unit))} blocks whole before it writes over them"
        )
    sides = [range(0, extent, size) for extent, size in zip(extents, unit, strict=True)]
    origins = step.order or product(*sides)
    every = (
        (out[0][0] + y, out[1][0] + x)
        for origin in origins
        for y in range(origin[0], min(origin[0] + unit[0], extents[0]))
        for x in range(origin[1], min(origin[1] + unit[1], extents[1]))
    )
    order = [pixel for pixel, _ in groupby(every)]  # units may be of some channels
    if len(set(order)) < len(order) and not job.apart:
        raise ThimbleError(f"generated code computes a pixel of {step.op} in one go, not twice")
    return tuple(dict.fromkeys(order))


def code(kernel: WindowKernel, windows: Windows) -> str:
    """Return the C of ``kernel``, once all its calls are known."""
    parts = _parts(kernel, windows)
    pixels = [_pixel(part, windows) for part in parts or [kernel]]
    if parts:
        kernel = replace(kernel, window=replace(kernel.window, weights=None))
    values = Portable(kernel, windows)
    if parts:
        begins = accumulate((len(part.lanes.channels) for part in parts), initial=0)
        calls = zip((part.name for part in parts), begins, strict=False)
        pixels.append(render("int4/parts.c.j2", k=values, parts=list(calls)).strip())
    last = _alone([kernel, *parts][-1], windows)
    return render("int4/window.c.j2", k=values, a=last, pixel="\n\n".join(pixels))


def _pixel(kernel: WindowKernel, windows: Windows) -> str:
    """Return the C function of one pixel, its arrays before it."""
    values, assembly = Portable(kernel, windows), _alone(kernel, windows)
    text, hidden = "", tuple[str, ...]()
    if assembly:
        windows.shared |= assembly.shared
        text = render("avr/window.c.j2", a=assembly, k=values).strip()
        hidden = assembly.twin_only(_weights_are_code(kernel, windows))
    portable = render("int4/pixel.c.j2", k=values)
    return render("int4/twins.c.j2", k=values, hidden=hidden, portable=portable, avr=text).strip()


def in_assembly(kernel: WindowKernel, windows: Windows) -> bool:
    """Check whether there is more than portable C."""
    return _alone(kernel, windows) is not None or bool(_parts(kernel, windows))


def assemblies(kernel: WindowKernel, windows: Windows) -> list[avr.Assembly]:
    """Return the assembly of all channels, or of some each; none where it is C."""
    found = (_alone(part, windows) for part in _parts(kernel, windows) or [kernel])
    return [assembly for assembly in found if assembly]


def _alone(kernel: WindowKernel, windows: Windows) -> avr.Assembly | None:
    reached = not kernel.scattered or windows.hardware.sram_bytes <= MOST_REACHED
    return avr.window(kernel) if windows.has_assembly and reached else None


def _parts(kernel: WindowKernel, windows: Windows) -> list[WindowKernel]:
    """Kernels in assembly for some channels each, where registers do not hold the sums of all, or
    not besides a count of runs."""
    reduces = not kernel.window.mac
    most, scattered = avr.MAX_REDUCED_LANES if reduces else MOST_SUMS, reduces and kernel.scattered
    if not (windows.has_assembly and kernel.suits) or scattered or _alone(kernel, windows):
        return []
    if (kernel.wide or len(kernel.lanes.channels) <= most) and not kernel.parted:
        return []
    for size in (most, MOST_COUNTED):
        parts = kernel.parts(size)
        if all(_alone(part, windows) for part in parts):
            return parts
    return []


def _weights_are_code(kernel: WindowKernel, windows: Windows) -> bool:
    """Check that no kernel of the operator reads its array of weights where there is assembly."""
    name = kernel.window.op.name
    of_op = [other for other in windows.kernels.values() if other.window.op.name == name]
    codes = [_alone(other, windows) for other in of_op or [kernel]]
    return all(assembly is not None and assembly.code for assembly in codes)


def _kernel(job: Job, window: Window, in_view: View, out_view: View) -> WindowKernel:
    windows, op = job.program.windows, job.op
    key = f"{op.name}/{in_view.kind}{in_view.pitch}/{out_view.kind}{out_view.pitch}"
    if key not in windows.kernels:
        windows.kernels[key] = WindowKernel(
            names=job.program.names, name=job.program.names.fresh(op.name), window=window,
            in_kind=in_view.kind, out_kind=out_view.kind, values=values(op, windows.graph),
            constants_in_flash=windows.constants_in_flash(op), suits=suits(op, windows.graph),
            about=job.about, in_pitch=in_view.pitch, out_pitch=out_view.pitch,
        )  # fmt: skip
    return windows.kernels[key]


def _lines(window: Window, order: tuple[Pixel, ...], in_view: View, out_view: View) -> list[Line]:
    positions, edges = [], any(window.padding)
    for y, x in order:
        top = y * window.stride[0] - window.padding[0]
        left = x * window.stride[1] - window.padding[2]
        place = in_view.position(top, left), out_view.position(y, x)
        positions.append((*place, top, left) if edges else (*place, 0, 0))
    return straight(positions, MOST_PIXELS)


def _inputs(window: Window, order: tuple[Pixel, ...]) -> set[Pixel]:
    """Return the input pixels that windows at ``order`` cover, padding left out."""
    rows, columns, _ = grid(window.source.shape)
    (down, right), (top, _, left, _), apart = window.stride, window.padding, window.dilation
    taps = [(apart[0] * i, apart[1] * j) for i, j in np.ndindex(window.kernel)]
    every = {(y * down - top + i, x * right - left + j) for y, x in order for i, j in taps}
    return {(y, x) for y, x in every if 0 <= y < rows and 0 <= x < columns}


WRITERS = {"int4.window": compute}
