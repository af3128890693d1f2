"""Division of a window's taps into the runs of its assembly."""

from __future__ import annotations

from pipeline.codegen.int4.kernel import WindowKernel
from pipeline.kernels.avr.window import run_taps


def rows_in_one_piece(kernel: WindowKernel) -> bool:
    """Pixels of a window's row lie side by side, and a row is short."""
    spec = kernel.window
    return spec.combine == "mac" and spec.depth * spec.kernel[1] <= 8 and side_by_side(kernel)


def divided(kernel: WindowKernel) -> int:
    """Taps of equal runs that deep pixels' rows are divided into, so that the code of one is short;
    0 where pixels do not lie side by side."""
    spec = kernel.window
    row = spec.depth * spec.kernel[1]
    if spec.combine != "mac" or spec.depth % 2 or kernel.in_kind != "affine":
        return 0
    if not side_by_side(kernel):
        return 0
    return run_taps(row, kernel.most_taps)


def pieces(kernel: WindowKernel) -> int:
    """Into how many equal pieces a deep pixel is divided whose address a table has; weights in
    flash, which Z follows by itself."""
    depth = kernel.window.depth
    if kernel.in_kind == "affine" or kernel.scattered or not kernel.constants_in_flash:
        return 1
    if kernel.window.combine != "mac" or depth <= kernel.most_taps:
        return 1
    return depth // (run_taps(depth, kernel.most_taps) or depth)


def side_by_side(kernel: WindowKernel) -> bool:
    return kernel.in_rows and kernel.window.dilation[1] == 1 and not kernel.varies


def finds(kernel: WindowKernel, columns: int) -> str:
    """C that puts the addresses of the window at ``in`` into ``nn_window``, ``columns`` a row."""
    rows, (down, right), pitch = kernel.window.kernel[0], kernel.window.dilation, kernel.in_pitch
    return f"nn_find(in, {rows}, {columns}, {down}, {right * pitch}, {pitch})"
