"""The C of what the window kernels share, and theirs."""

from __future__ import annotations

from pipeline.codegen.int4 import room
from pipeline.codegen.int4.parameters import Image
from pipeline.codegen.int4.views import ROW
from pipeline.codegen.int4.window import code, in_assembly
from pipeline.codegen.int4.windows import Windows
from pipeline.codegen.render import render


def source(windows: Windows) -> str:
    """Tables, then functions; "" where there are none. All calls have to be known."""
    room.make(windows)
    known = windows.kernels.values()
    kernels = [*(text for _, text in windows.endings.values()), *(code(k, windows) for k in known)]
    placed = "nn_places:" in windows.shared
    return render(
        "int4/windows.c.j2",
        windows=windows,
        places=[f"NN_PLACE({cell})" for cell in windows.tables.pixels] if placed else [],
        row=ROW,
        finds=any(name.startswith("nn_window:") for name in windows.shared),
        lines=_line_rows(windows),
        shared=_declarations(windows.shared),
        image=Image.of(windows),
        kernels=kernels,
        packed=any(k.window.weights is not None and k.window.weight_bits == 4 for k in known),
        assembly=any(in_assembly(kernel, windows) for kernel in known),
    ).strip()


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
