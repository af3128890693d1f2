"""Counters, steps and sums at the ends of their C types, on the host and through avr-gcc."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.codegen.int4.windows import c_bits
from pipeline.graph.graph import Graph
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.plan.vocabulary import Affine, Buffer, Move, Plan, Table, Track, whole
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.support import WARNINGS, Native, agrees, uno
from tests.strategies.chains import Chain, mnist
from tests.tiers import quick


def compiled(
    folder: Path, graph: Graph, plan: Plan, weights_in: str = "sram", optimize: str = "-Os"
) -> str:
    """The code, after it agreed with the graph on the host and avr-gcc took it without a warning,
    with its assembly and without."""
    assert agrees(Native(folder, graph, plan, uno(weights_in)), 4)
    for twin in ((), ("-DNN_PORTABLE",)):
        for_avr(folder, optimize, *twin)
    return (folder / "model.c").read_text()


def for_avr(folder: Path, *flags: str) -> None:
    if shutil.which("avr-gcc") is not None:
        command = ["avr-gcc", "-mmcu=atmega328p", *WARNINGS, *flags, "-c", "model.c", "-o", "avr.o"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]


def test_the_narrowest_type() -> None:
    assert [c_bits(v) for v in ([], [255], [0, 256], [65535], [65536])] == [8, 8, 16, 16, 32]
    signed = [c_bits(v, signed=True) for v in ([-128, 127], [128], [-129], [-32768], [32768])]
    assert signed == [8, 16, 16, 16, 32]


@pytest.mark.parametrize(
    ("rows", "kind"), quick(1, [(258, "uint16_t"), (257, "uint8_t"), (300, "uint16_t")])
)
def test_many_lines_in_one_call(rows: int, kind: str, tmp_path: Path) -> None:
    graph = Chain((rows, 4, 1)).conv("a", 1).dense("d", 2).graph()
    code = compiled(tmp_path, graph, Herringbone("slots").plan(graph, uno()))
    assert f"run_a(&nn_lines[0], {rows - 2})" in code
    assert f"static NN_NOINLINE void run_a(const nn_line_t *line, {kind} lines" in code


@pytest.mark.parametrize(("columns", "kind"), [(255, "int8_t"), (256, "int16_t")])
def test_long_padded_rows(columns: int, kind: str, tmp_path: Path) -> None:
    """A line that goes on from the last pixel of a row to the first of the next."""
    graph = Chain((3, columns, 1)).conv("a", 1, padding=(1, 1, 1, 1)).dense("d", 2).graph()
    code = compiled(tmp_path, graph, Ordinary("slots").plan(graph, uno()))
    assert f"    {kind} y_step, x_step;" in code


@pytest.mark.parametrize(("outputs", "written_out"), [(4, True), (5, False), (64, False)])
def test_moves_of_large_pixels(outputs: int, written_out: bool, tmp_path: Path) -> None:
    graph = Chain((3, 3, 1)).dense("d", outputs).graph()
    plan = Ordinary("slots").plan(graph, uno())
    out = plan.buffer[plan.output]
    base = int(out.addresses(out.box)[0])
    copy = replace(out, name="copy", map=Affine(base + 4 * outputs, (4,)))
    (track,) = plan.tracks
    plan = replace(
        plan,
        buffers=(*(_above(b) if b.role == "constant" else b for b in plan.buffers), copy),
        tracks=(Track("cpu", (*track.steps, Move(whole(out), whole(copy)))),),
        output="copy",
    )
    code = compiled(tmp_path, graph, plan)
    assert f"nn_permute_{4 * outputs}(&nn_cycles[0], 0, 1, {base});" in code
    assert (f"for (uint16_t n = 0; n < {2 * outputs}; n++)" in code) != written_out


def _above(buffer: Buffer) -> Buffer:
    """Constants out of the way of the copy."""
    assert isinstance(buffer.map, Affine)
    return replace(buffer, map=replace(buffer.map, base=buffer.map.base + 4000))


@pytest.mark.parametrize(("outputs", "kind"), [(256, "uint8_t"), (257, "uint16_t")])
def test_many_channels_out_of_order(outputs: int, kind: str, tmp_path: Path) -> None:
    graph = Chain((3, 3, 12)).dense("d", outputs).graph()
    code = compiled(tmp_path, graph, Ordinary("slots").plan(graph, uno()))
    assert f"static const {kind} nn_channels_run_d[{outputs}]" in code


@pytest.mark.parametrize(("left", "wide"), [(4, False), (6, True)])
def test_shifted_sums_of_the_input(left: int, wide: bool, tmp_path: Path) -> None:
    """Four bytes add up to 1020; shifted by 6 they leave 16 bits."""
    chain = Chain((4, 4, 1), "uint8")
    requant = PowerOfTwo(left, left + 6, "floor")
    chain.add(AveragePool2d("p", ("image",), "p", requant=requant), "uint4")
    graph = chain.dense("d", 3).graph()
    code = compiled(tmp_path, graph, Ordinary("slots").plan(graph, uno()))
    assert f"int{32 if wide else 16}_t value = *bytes;" in code


def test_an_image_in_whole_pixels_wherever(tmp_path: Path) -> None:
    """A table of pixels, none of them torn."""
    graph = Chain((2, 2, 2)).conv("a", 3, 1).dense("d", 2).graph()
    plan = Ordinary("slots").plan(graph, uno())
    image = plan.buffer["image"]
    base = int(image.addresses(image.box).min())
    image = replace(image, map=Table(tuple(base + n for n in (6, 7, 0, 1, 4, 5, 2, 3))))
    buffers = tuple(image if b.name == image.name else b for b in plan.buffers)
    code = compiled(tmp_path, graph, replace(plan, buffers=buffers))
    assert "nn_pixels[position]" in code and "nn_scatter[" not in code


@pytest.mark.parametrize(
    ("weights_in", "optimize"),
    quick(1, [("flash", "-O3"), ("sram", "-O1"), ("sram", "-O3"), ("flash", "-O2")], ci=1),
)
def test_labels_are_unique(weights_in: str, optimize: str, tmp_path: Path) -> None:
    """However often the compiler inlines a kernel: run 2 of copy 26 is not run 22 of copy 6."""
    graph = mnist().graph()
    hardware = uno(weights_in)
    Native(tmp_path, graph, Herringbone("slots").plan(graph, hardware), hardware, sanitize=False)
    for_avr(tmp_path, optimize)
