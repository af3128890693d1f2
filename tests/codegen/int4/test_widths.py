"""Counters, steps and sums at the ends of their C types, on the host and through avr-gcc."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.codegen.int4.windows import c_bits
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.plan.vocabulary import Affine, Buffer, Move, Plan, Table, Track, whole
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.support import WARNINGS, Native, agrees, uno
from tests.strategies.chains import Chain, mnist
from tests.tiers import quick


def for_avr(folder: Path, *flags: str) -> None:
    if shutil.which("avr-gcc") is not None:
        command = ["avr-gcc", "-mmcu=atmega328p", *WARNINGS, *flags, "-c", "model.c", "-o", "avr.o"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]


def test_the_narrowest_type() -> None:
    assert [c_bits(v) for v in ([], [255], [0, 256], [65535], [65536])] == [8, 8, 16, 16, 32]
    signed = [c_bits(v, signed=True) for v in ([-128, 127], [128], [-129], [-32768], [32768])]
    assert signed == [8, 16, 16, 16, 32]


def lines(rows: int) -> Chain:
    return Chain((rows, 4, 1)).conv("a", 1).dense("d", 2)


def padded(columns: int) -> Chain:
    """A line that goes on from the last pixel of a row to the first of the next."""
    return Chain((3, columns, 1)).conv("a", 1, padding=(1, 1, 1, 1)).dense("d", 2)


def dense(depth: int, outputs: int) -> Chain:
    return Chain((3, 3, depth)).dense("d", outputs)


def shifted(left: int) -> Chain:
    """Four bytes add up to 1020; shifted by 6 they leave 16 bits."""
    requant = PowerOfTwo(left, left + 6, "floor")
    op = AveragePool2d("p", ("image",), "p", requant=requant)
    return Chain((4, 4, 1), "uint8").add(op, "uint4").dense("d", 3)


def moved(plan: Plan) -> Plan:
    """The output is copied in the end; constants are out of the way of that."""
    out = plan.buffer[plan.output]
    (outputs,), base = out.shape, int(out.addresses(out.box)[0])
    copy = replace(out, name="copy", map=Affine(base + 4 * outputs, (4,)))

    def above(buffer: Buffer) -> Buffer:
        assert isinstance(buffer.map, Affine)
        return replace(buffer, map=replace(buffer.map, base=buffer.map.base + 4000))

    buffers = (*(above(b) if b.role == "constant" else b for b in plan.buffers), copy)
    steps = (*plan.tracks[0].steps, Move(whole(out), whole(copy)))
    return replace(plan, buffers=buffers, tracks=(Track("cpu", steps),), output="copy")


def shuffled(plan: Plan) -> Plan:
    """A table of pixels, none of them torn."""
    image = plan.buffer["image"]
    base = int(image.addresses(image.box).min())
    image = replace(image, map=Table(tuple(base + n for n in (6, 7, 0, 1, 4, 5, 2, 3))))
    return replace(plan, buffers=tuple(image if b.name == "image" else b for b in plan.buffers))


COPY = "for (uint16_t n = 0; n < {}; n++)"
CASES: list[tuple[Chain, Callable[[Plan], Plan] | None, tuple[str, ...], str]] = [
    (lines(258), None, ("run_a(&nn_lines[0], 256)", "_line_t *line, uint16_t lines"), "none"),
    (padded(255), None, ("    int8_t y_step, x_step;",), "none"),
    (padded(256), None, ("    int16_t y_step, x_step;",), "none"),
    (dense(1, 4), moved, ("nn_permute_16(&nn_cycles[0], 0, 1, ",), COPY.format(8)),
    (dense(1, 5), moved, ("nn_permute_20(&nn_cycles[0], 0, 1, ", COPY.format(10)), "none"),
    (dense(1, 64), moved, ("nn_permute_256(&nn_cycles[0], 0, 1, ", COPY.format(128)), "none"),
    (dense(12, 256), None, ("static const uint8_t nn_channels_run_d[256]",), "none"),
    (dense(12, 257), None, ("static const uint16_t nn_channels_run_d[257]",), "none"),
    (shifted(4), None, ("int16_t value = *bytes;",), "none"),
    (shifted(6), None, ("int32_t value = *bytes;",), "none"),
    (Chain((2, 2, 2)).conv("a", 3, 1).dense("d", 2), shuffled, ("nn_pixels[position]",),
     "nn_scatter["),
    (lines(257), None, ("run_a(&nn_lines[0], 255)", "_line_t *line, uint8_t lines"), "none"),
    (lines(300), None, ("run_a(&nn_lines[0], 298)", "_line_t *line, uint16_t lines"), "none"),
]  # fmt: skip
"""A network, what becomes of its plan, what its C says, and what not."""


@pytest.mark.parametrize("number", quick(11, range(len(CASES))))
def test_types(number: int, tmp_path: Path) -> None:
    """The code agrees with the graph on the host, and avr-gcc takes it without a warning, with its
    assembly and without."""
    chain, change, says, never = CASES[number]
    graph = chain.graph()
    plan = (Herringbone("slots") if "lines" in says[-1] else Ordinary("slots")).plan(graph, uno())
    assert agrees(Native(tmp_path, graph, change(plan) if change else plan, uno()), 4)
    for twin in ((), ("-DNN_PORTABLE",)):
        for_avr(tmp_path, "-Os", *twin)
    code = (tmp_path / "model.c").read_text()
    assert all(word in code for word in says) and never not in code


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
