"""Blocks and commands of boxes, against counting them cell by cell; times of the two settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.hardware import Card
from pipeline.plan.rates import Rates
from pipeline.plan.vocabulary import Affine, Buffer, Table, packed
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import WITHOUT_CARD, summary
from pipeline.timing.transfers import transfers
from tests.timing.toys import ROWS, rows, slow, swapped

BLOCK = 16


def by_cell(buffer: Buffer, low: Any, extent: Any, shift: int) -> tuple[int, int, int, int]:
    """(bytes, blocks, commands, partial) of one box."""
    box = tuple((int(a), int(a + n)) for a, n in zip(low, extent, strict=True))
    cells = {int(cell) + shift for cell in buffer.cells(box).reshape(-1)}
    blocks = sorted({cell // (2 * BLOCK) for cell in cells})
    groups = sum(n == 0 or blocks[n] != blocks[n - 1] + 1 for n in range(len(blocks)))
    whole = sum(all(2 * BLOCK * block + n in cells for n in range(2 * BLOCK)) for block in blocks)
    return len(cells) // 2, len(blocks), groups, len(blocks) - whole


@pytest.mark.parametrize("kind", ["packed", "turned", "ring", "table"])
def test_against_counting_cells(kind: str) -> None:
    rng = np.random.default_rng(3)
    shape = (5, 6, 7)
    places: dict[str, Affine | Table] = {
        "packed": packed(shape, 8, 6),
        "turned": Affine(4, (2, 10, 60)),
        "ring": Affine(0, (84, 14, 2), (3, 0, 0)),
        "table": Table(tuple(2 * int(n) for n in rng.permutation(300)[: 5 * 6 * 7])),
    }
    buffer = Buffer("b", "t", "card", shape, 8, places[kind])
    lows = np.stack([rng.integers(0, n, 80) for n in shape], axis=1)
    extents = np.stack([rng.integers(1, n + 1, 80) for n in shape], axis=1)
    extents = np.minimum(extents, np.array(shape) - lows)
    if kind == "ring":
        extents[:, 0] = np.minimum(extents[:, 0], 3)
    shift = 2 * rng.integers(0, 40, 80)
    found = transfers(buffer, lows, extents, BLOCK, shift)
    for n in range(80):
        counted = found.bytes[n], found.blocks[n], found.commands[n], found.partial[n]
        assert counted == by_cell(buffer, lows[n], extents[n], int(shift[n]))


def test_what_is_empty_costs_nothing() -> None:
    buffer = Buffer("b", "t", "card", (4, 4), 8, packed((4, 4), 8))
    none = np.zeros((1, 2), np.int64)
    found = transfers(buffer, none, none, BLOCK, np.zeros(1, np.int64))
    assert not (found.bytes.any() or found.blocks.any() or found.commands.any())


COSTS = {
    "timing": "card", "read_bytes_per_s": 1e6, "write_bytes_per_s": 5e5, "read_block_us": 10.0,
    "write_block_us": 20.0, "read_command_us": 100.0, "write_command_us": 200.0,
}  # fmt: skip


def test_rates_of_the_two_settings() -> None:
    paper, card = Rates.of(slow()), Rates.of(slow(**COSTS))
    assert paper.move_us(1000, writes=False) == paper.move_us(1000, writes=True) == 1000
    assert paper.move_us(1000, writes=False, commands=7) == 1000
    assert card.move_us(1000, writes=False) == 2 * (512 + 10) + 100
    assert card.move_us(1000, writes=True, commands=3) == 3 * (1024 + 20 + 200)
    assert card.move_us(0, writes=True) == 0
    assert paper.compute_us(7) == 7


def test_a_card_charges_blocks_commands_and_what_it_has_to_read_first() -> None:
    """Rows of 2 B: each read takes a block, each write reads a block, and writes it."""
    graph = rows()
    timeline = simulate(swapped(graph, 1), graph, slow(**COSTS))
    read, write = 512 + 10 + 100, 512 * 2 + 20 + 200
    took = timeline.stop - timeline.start
    assert took[timeline.track == 1].tolist() == [read] * ROWS
    assert took[timeline.track == 2].tolist() == [write + read] * ROWS
    assert timeline.makespan_us == read + ROWS * (2 + write + read)


def test_the_summary_counts_what_is_moved_and_what_is_stored() -> None:
    graph = rows()
    plan = swapped(graph, 1)
    paper = summary(plan, graph, slow())
    assert paper["card_read_bytes"] == paper["card_write_bytes"] == 2 * ROWS
    assert paper["wear"] == (2 + 2) * ROWS and paper["compute_us"] == 2 * ROWS
    assert paper["io_us"] == 4 * ROWS and "latency_us" not in paper
    assert paper["overhead_pct"] == pytest.approx(100 * ((4 * ROWS + 2) / (2 * ROWS) - 1))
    assert paper["throughput_loss_pct"] == pytest.approx(100 * (1 - 2 * ROWS / (4 * ROWS + 2)))
    assert paper["throughput_fps"] == pytest.approx(1e6 / (4 * ROWS + 2))
    (layer,) = paper["traffic"]
    assert layer["read_bytes"] == layer["write_bytes"] == 2 * ROWS and layer["bound"] == "io"
    card = summary(plan, graph, slow(**COSTS))
    assert card["card_read_bytes"] == 2 * ROWS and card["card_write_bytes"] == 512 * ROWS
    assert card["card_timing"] == "card"


def test_more_frames_share_a_makespan() -> None:
    graph = rows()
    plan = swapped(graph, 2)
    one = summary(plan, graph, slow())
    ends = (plan.resident[0], plan.output)
    twice = [replace(b, copies=2, copy_stride=2) if b.name in ends else b for b in plan.buffers]
    same = replace(plan, frames=2, buffers=tuple(twice))  # the same steps, said to be two frames
    two = summary(same, graph, slow())
    assert two["makespan_us"] == one["makespan_us"] and two["compute_us"] == one["compute_us"] / 2
    assert two["throughput_fps"] == 2 * one["throughput_fps"] and "latency_us" not in two
    assert two["throughput_loss_pct"] == one["throughput_loss_pct"]


def test_of_a_plan_without_a_card_nothing_moves() -> None:
    graph = rows()
    plan = swapped(graph, 1)
    moved = tuple(
        replace(each, memory="sram") if each.memory == "card" else each for each in plan.buffers
    )
    found = summary(replace(plan, buffers=moved), graph, replace(slow(), card=Card()))
    assert found == WITHOUT_CARD and not any(found.values())
