"""Plans small enough to be computed by hand: bytes take a microsecond, and so do work units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.hardware import Card, Hardware, Memory
from pipeline.plan.vocabulary import (
    Buffer,
    Compute,
    Lin,
    Loop,
    Move,
    Plan,
    Signal,
    Slice,
    Track,
    Wait,
    packed,
    whole,
)
from tests.plan.fixtures import constants
from tests.strategies.chains import board
from tests.strategies.nets import Net

ROWS = 8
CARD = Memory("card", 1 << 20, "block", 512)


def slow(**card: Any) -> Hardware:
    """1 us a multiply–accumulate, 1 us a byte."""
    values: dict[str, Any] = {"bytes": 1 << 20, "timing": "paper", "paper_bytes_per_s": 1e6}
    return replace(board(), clock_hz=1_000_000, cycles_per_mac=1.0, card=Card(**values | card))


def rows(columns: int = 2, channels: int = 1) -> Graph:
    """A 1x1 convolution of 8 rows; a row is ``columns`` bytes in, ``columns * channels`` out."""
    net = Net((ROWS, columns, 1))
    net.conv("input", channels, 1)
    return net.graph()


def swapped(graph: Graph, buffers: int) -> Plan:
    """Row by row: in from the card, computed, out to the card, with so many buffers a side."""
    (op,) = graph.operators
    source, target = graph.tensors[graph.input], graph.tensors[graph.output]
    fixed = constants(graph)

    def held(
        name: str, tensor: str, memory: str, shape: tuple[int, ...], ring: int, base: int = 0
    ) -> Buffer:
        place = packed(shape, 8, base)
        wrapped = replace(place, wrap=(ring, 0, 0) if ring else ())
        return Buffer(name, tensor, memory, shape, 8, wrapped)

    held_in = held("in", source.name, "sram", source.shape, buffers)
    held_out = held("out", target.name, "sram", target.shape, buffers, 2 * source.size)
    row = Lin(0, (("r", 1),))
    one = (1, *source.shape[1:]), (1, *target.shape[1:])
    piece_in = [Slice(name, (row, 0, 0), one[0]) for name in ("image", "in")]
    piece_out = [Slice(name, (row, 0, 0), one[1]) for name in ("out", "result")]
    before = Lin(1 - buffers, (("r", 1),))
    after = Lin(1, (("r", 1),))
    io = (Wait("computed", before), Move(*piece_in), Signal("loaded"))
    compute = Compute(op.name, piece_out[0], (piece_in[1], *map(whole, fixed)))
    cpu = (Wait("loaded", after), Wait("stored", before), compute, Signal("computed"))
    back = (Wait("computed", after), Move(*piece_out), Signal("stored"))
    each = {"cpu": cpu, "io": io, "back": back}
    tracks = tuple(Track(name, (Loop("r", ROWS, steps),)) for name, steps in each.items())
    buffers_ = (
        held("image", source.name, "card", source.shape, 0),
        held("result", target.name, "card", target.shape, 0, 8 * 1024),
        held_in,
        held_out,
        *fixed,
    )
    memories = (Memory("sram", 1024), Memory("flash", 1024, "rom"), CARD)
    resident = ("image", *op.parameters)
    return Plan(graph.name, "toy", memories, buffers_, tracks, resident, "result")
