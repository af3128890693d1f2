"""Rows that lie wherever there was room: windows over them, on the chip, too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.int4.views import ROW, PixelTables, as_pixels
from pipeline.graph.graph import Graph
from pipeline.plan.maps import Rows
from pipeline.plan.vocabulary import Affine, Buffer, Plan
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.support import Native, agrees, uno
from tests.codegen.test_mixed import answers
from tests.strategies.chains import Chain
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import built


def rows_of(width: int, pitch: int, channel: int = 1, rows: int = 3) -> Buffer:
    """Rows in no order, with gaps, of pixels of two channels."""
    cells = tuple(5 + row * 5 % rows * (width * pitch + 1) for row in range(rows))
    return Buffer("b", "t", "sram", (rows, width, 2), 4, Rows(cells, (pitch, channel)))


@pytest.mark.parametrize(
    ("buffer", "kind"),
    [
        (rows_of(6, 2), "rows"),
        (rows_of(6, 5), "rows"),
        (rows_of(ROW, 2), "rows"),
        (rows_of(ROW + 1, 2), "table"),
        (rows_of(2, 255), "rows"),
        (rows_of(2, 256), "table"),
        (rows_of(4, 2, 9), "table"),
        (rows_of(3, 2, rows=(1 << 16) // ROW - 1), "rows"),
        (rows_of(3, 2, rows=(1 << 16) // ROW), "table"),  # one row is another buffer's
    ],
)
def test_views_find_every_element(buffer: Buffer, kind: str) -> None:
    tables = PixelTables(rows=[99])
    view = tables.view(buffer)
    assert view.kind == kind
    elements = as_pixels(buffer)
    for y, x in np.ndindex(elements.shape[:2]):
        address = tables.address(view, y, x)
        assert address & 0x8000 or address == elements[y, x, 0]
        assert 0 <= view.position(y, x) < 1 << 16


def apart(plan: Plan) -> Plan:
    """Every tensor between the first and the last layer with its even rows before the odd ones,
    a few nibbles between them; nothing shares a cell."""
    buffers, begin = [], 0
    for buffer in plan.buffers:
        if buffer.memory == "sram" and len(buffer.shape) == 3:
            rows, columns, depth = buffer.shape
            pitch = depth * buffer.nibbles
            size = columns * pitch + 2 + 2 * (buffer.nibbles > 1)
            places = (*range(0, rows, 2), *range(1, rows, 2))
            cells = tuple(begin + places.index(row) * size for row in range(rows))
            buffer = replace(buffer, map=Rows(cells, (pitch, buffer.nibbles)))
            begin += rows * size + rows * size % 2
        elif buffer.memory == "sram":
            place = buffer.map
            assert isinstance(place, Affine)
            begin += -begin % 4
            buffer = replace(buffer, map=replace(place, base=begin))
            begin += 4 * buffer.shape[0]
        buffers.append(buffer)
    return replace(plan, buffers=tuple(buffers))


def network(seed: int = 0) -> Graph:
    """One channel; eleven sums, which leave no register for the cursor; odd pixels; strides; pixels
    deep enough to be divided; dilation; parts of the channels; maximums; one window over all."""
    chain = Chain((11, 12, 1), "uint8", seed=seed).average(
        "pooled", kernel=(1, 1), stride=(1, 1), shift=4
    )
    chain.conv("a", 11).conv("b", 5, (2, 3), stride=(1, 2)).conv("c", 24, 3, dilation=(2, 1))
    return chain.maximum("m").conv("d", 14, (2, 1)).dense("logits", 4).graph()


def test_windows_over_rows(tmp_path: Path) -> None:
    graph = network()
    plan = apart(Ordinary().plan(graph, uno("flash", streams=False)))
    assert agrees(Native(tmp_path, graph, plan, uno("flash", streams=False)))
    code = (tmp_path / "model.c").read_text()
    assert "nn_rows[" in code and "nn_find(in, 3, 3, 2, 5, 5)" in code and "nn_pixels[" not in code


@needs_avr
@pytest.mark.ci
@pytest.mark.parametrize(("part", "weights_in"), [("arduino", "flash"), ("arduino_mega", "sram")])
def test_on_the_chip(part: str, weights_in: str, tmp_path: Path) -> None:
    graph = network(1)
    hardware = load_hardware(part, weights_in=weights_in, streams_input=False)
    plan = apart(Ordinary().plan(graph, uno(weights_in, streams=False)))
    size = built(tmp_path, graph, hardware, plan)
    assert size.status == "ok", size.where
    assert answers(graph, tmp_path, size, hardware)
