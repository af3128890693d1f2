"""The C of what the window kernels share, and theirs."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.codegen.int4 import parameters, room
from pipeline.codegen.int4.views import ROW
from pipeline.codegen.int4.window import code, in_assembly
from pipeline.codegen.int4.windows import Windows
from pipeline.codegen.render import render


@dataclass(frozen=True)
class Parts:
    """What the template of a program asks for; empty where there are no such kernels.

    Attributes:
        places: initialisers of what assembly reads instead of pixels.
        finds: some assembly reads ``nn_window``.
        lines: initialisers; ``shared``: declarations; ``kernels``: functions.
        packed: some weights have 4 bits; ``assembly``: some kernels come in assembly, too.
    """

    pixels: list[int]
    places: list[str]
    rows: list[int]
    row: int
    finds: bool
    scatter: list[int]
    lines: list[str]
    edges: bool
    pixel_steps: str
    shared: list[str]
    parameters: str
    kernels: list[str]
    packed: bool
    assembly: bool


def parts(windows: Windows) -> Parts:
    """All calls have to be known."""
    room.make(windows)
    known = windows.kernels.values()
    kernels = [code(kernel, windows) for kernel in known]
    kernels[:0] = [text for _, text in windows.endings.values()]
    if windows.sums:
        kernels.insert(0, render("int4/sum.c.j2", sums=windows.sums))
    if windows.copies:
        kernels.insert(0, render("int4/copy.c.j2"))
    placed = "nn_places:" in windows.shared
    return Parts(
        pixels=windows.tables.pixels,
        places=[f"NN_PLACE({cell})" for cell in windows.tables.pixels] if placed else [],
        rows=windows.tables.rows,
        row=ROW,
        finds=any(name.startswith("nn_window:") for name in windows.shared),
        scatter=windows.tables.scatter,
        lines=_line_rows(windows),
        edges=windows.edges,
        pixel_steps=windows.pixel_steps,
        shared=_declarations(windows.shared),
        parameters=parameters.source(windows),
        kernels=kernels,
        packed=any(k.window.weights is not None and k.window.weight_bits == 4 for k in known),
        assembly=any(in_assembly(kernel, windows) for kernel in known),
    )


def _line_rows(windows: Windows) -> list[str]:
    rows = []
    for line in windows.lines:
        # positions count modulo 2**16
        steps = [(step + 0x8000) % 0x10000 - 0x8000 for step in line.step[:2]]
        numbers = [line.start[0] & 0xFFFF, line.start[1], *steps]
        if windows.edges:
            numbers += [*line.start[2:], *line.step[2:]]
        rows.append(f"{{{', '.join(map(str, (*numbers, line.count)))}}}")
    return rows


def _declarations(shared: set[str]) -> list[str]:
    """Variables that assembly uses; of buffers the largest."""
    words = [f"uint16_t {name}" for name in sorted(shared) if ":" not in name]
    for kind, name in (("uint8_t", "nn_gather"), ("uint16_t", "nn_window")):
        sizes = [int(each.split(":")[1]) for each in shared if each.startswith(f"{name}:")]
        words += [f"{kind} {name}[{max(sizes)}]"] if sizes else []
    return words
