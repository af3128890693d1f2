"""The C of what the window kernels share, and theirs, as much of it written out as the board has
room for."""

import re

from pipeline.codegen.int4.avr import Assembly
from pipeline.codegen.int4.kernel import SIZES, WindowKernel
from pipeline.codegen.int4.views import ROW
from pipeline.codegen.int4.window import assemblies, code, in_assembly
from pipeline.codegen.int4.windows import Windows
from pipeline.codegen.render import render

FRAME_BYTES, CALL_BYTES, KERNEL_BYTES, PORTABLE_BYTES = 2850, 13, 100, 300
"""About what start-up and protocol take, a call of a kernel on the tape, a kernel besides its
assembly, and one without any: of the networks in docs/records.md none was larger than the sum."""

FRONT_END_BYTES = 4096
"""Most that a program for sounds may have besides."""

FEWEST_PIXELS = 16
"""Fewest pixels whose code is worth writing out."""

LONG = ("call", "jmp", "lds", "sts")
"""Instructions of two words."""


def source(windows: Windows) -> str:
    """Tables, then functions; "" where there are none. All calls have to be known."""
    _choose(windows)
    known = windows.kernels.values()
    kernels = [*(text for _, text in windows.endings.values()), *(code(k, windows) for k in known)]
    placed = "nn_places:" in windows.shared
    return render(
        "int4/windows.c.j2", windows=windows, row=ROW, image=windows.image, kernels=kernels,
        places=[f"NN_PLACE({cell})" for cell in windows.tables.pixels] if placed else [],
        finds=any(name.startswith("nn_window:") for name in windows.shared),
        lines=_line_rows(windows), shared=_declarations(windows.shared),
        packed=any(k.window.weights is not None and k.window.weight_bits == 4 for k in known),
        assembly=any(in_assembly(kernel, windows) for kernel in known),
    ).strip()  # fmt: skip


def _line_rows(windows: Windows) -> list[str]:
    rows = []
    for line in windows.lines:
        # positions count modulo 2**16
        steps = [(step + 0x8000) % 0x10000 - 0x8000 for step in line.step[:2]]
        numbers = [line.start[0] & 0xFFFF, line.start[1], *steps]
        if windows.edges:
            numbers += [*line.start[2:], *line.step[2:]]
        rows.append(f"{{{', '.join(map(str, (*numbers, line.number)))}}}")
    return rows


def _declarations(shared: set[str]) -> list[str]:
    """Variables that assembly uses; of buffers the largest."""
    words = [f"uint16_t {name}" for name in sorted(shared) if ":" not in name]
    for kind, name in (("uint8_t", "nn_gather"), ("uint16_t", "nn_window")):
        sizes = [int(each.split(":")[1]) for each in shared if each.startswith(f"{name}:")]
        words += [f"{kind} {name}[{max(sizes)}]"] if sizes else []
    return words


def _choose(windows: Windows) -> None:
    """Chooses the longest runs with which the estimate fits the board: those of two taps take a
    quarter of the bytes that runs of eight do, and 7 % more cycles. What is left goes to those that
    are C otherwise, then to windows whose code has no loop at all, those of least code first. All
    calls have to be known."""
    kernels, sizes, left = list(windows.kernels.values()), list[int](), 0
    small = windows.hardware.kernels == "small"
    room = 0 if small else windows.hardware.flash_bytes - rest_bytes(windows)
    for most, one in SIZES:
        for kernel in kernels:
            kernel.most_taps, kernel.one_ending = most, one
        sizes = [kernel_bytes(kernel, windows) for kernel in kernels]
        left = room - sum(sizes)
        if left >= 0:
            break
    for n, kernel in enumerate(kernels):
        kernel.parted = True
        more = kernel_bytes(kernel, windows) - sizes[n]
        kernel.parted = 0 < more <= left - FRONT_END_BYTES
        sizes[n], left = (sizes[n] + more, left - more) if kernel.parted else (sizes[n], left)
    for size, _, kernel in sorted((size, n, kernels[n]) for n, size in enumerate(sizes)):
        if len(kernel.out_addresses) < FEWEST_PIXELS:
            continue
        found = assemblies(kernel, windows)
        kernel.written_out = True
        more = kernel_bytes(kernel, windows) - size
        kernel.written_out = len(assemblies(kernel, windows)) == len(found) and more <= left
        left -= more if kernel.written_out else 0


def rest_bytes(windows: Windows) -> int:
    """Estimate the flash of what is no window."""
    tables, moved = windows.tables, windows.permutations.cycles
    entries = 2 * len(tables.pixels) + len(tables.rows) + len(tables.scatter) + len(moved)
    shared = len(windows.sums) + PORTABLE_BYTES * (bool(windows.sums) + windows.copies)
    return FRAME_BYTES + 2 * entries + 10 * len(windows.lines) + shared


def kernel_bytes(kernel: WindowKernel, windows: Windows) -> int:
    """Estimate the flash of a function, its calls, and its weights where they are data."""
    found, weights = assemblies(kernel, windows), kernel.window.weights
    data = 0
    if weights is not None and not any(assembly.code for assembly in found):
        data = weights.size * kernel.window.weight_bits // 8
    code = sum(KERNEL_BYTES + assembly_bytes(assembly) for assembly in found)
    return data + (code or PORTABLE_BYTES) + CALL_BYTES * len(kernel.calls)


def assembly_bytes(assembly: Assembly) -> int:
    """Counted."""
    text = render("avr/window.c.j2", a=assembly, k={"to": "", "stride_parameters": ""})
    instructions = re.findall(r'^ *"    ([a-z]+)', text, re.MULTILINE)
    return 2 * (len(instructions) + sum(name in LONG for name in instructions))
