"""How long the runs of deep windows are whose weights lie in flash: as the board has room for."""

from __future__ import annotations

from pipeline.codegen.int4.kernel import RUNS, WindowKernel
from pipeline.codegen.int4.window import assemblies
from pipeline.codegen.int4.windows import Windows

FRAME_BYTES = 4400
"""About what start-up, protocol and the program's steps take, and by how much the rest may be more
than estimated: of the networks in docs/records.md none was larger than the sum."""

LANE_BYTES, KERNEL_BYTES = 16, 160
"""About what ends a sum, and what a function has besides its taps and sums."""


def make(windows: Windows) -> None:
    """Chooses the longest runs with which the estimate fits the board: those of two taps take a
    quarter of the bytes that runs of eight do, and 7 % more cycles. All calls have to be known."""
    for most in RUNS:
        for kernel in windows.kernels.values():
            kernel.most_taps = most
        if estimated_bytes(windows) <= windows.hardware.flash_bytes:
            break


def estimated_bytes(windows: Windows) -> int:
    """Of the whole program's flash."""
    tables = windows.tables
    entries = len(tables.pixels) + len(tables.rows) + len(tables.scatter) + len(windows.cycles)
    kernels = sum(kernel_bytes(kernel, windows) for kernel in windows.kernels.values())
    return FRAME_BYTES + 2 * entries + 10 * len(windows.lines) + kernels


def kernel_bytes(kernel: WindowKernel, windows: Windows) -> int:
    """Of a function, and of its weights where they are data."""
    found, weights = assemblies(kernel, windows), kernel.window.weights
    data = 0
    if weights is not None and not any(assembly.code for assembly in found):
        data = weights.size * kernel.window.weight_bits // 8
    return data + sum(KERNEL_BYTES + LANE_BYTES * a.lanes * a.mac + a.code_bytes for a in found)
