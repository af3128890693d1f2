"""Hand-written plans that show the vocabulary's powers, each on a small random graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType, Tensor
from pipeline.hardware import Memory
from pipeline.plan.vocabulary import (
    Affine,
    Blocks,
    Buffer,
    Clear,
    Compute,
    Finish,
    Lin,
    Loop,
    Move,
    Plan,
    Rows,
    Signal,
    Slice,
    Step,
    Table,
    Track,
    Wait,
    packed,
    whole,
)
from pipeline.schedules.lower import lay
from pipeline.schedules.rows import Resident
from pipeline.schedules.rows import Rows as RowByRow
from pipeline.schedules.tiles import Run, Tiles
from pipeline.strategies.ordinary import Ordinary
from tests.strategies.chains import board
from tests.strategies.nets import Net

U8, U4, I8, I4, I16 = map(DType.parse, ("uint8", "uint4", "int8", "int4", "int16"))


@dataclass
class Builder:
    """Collects tensors, constants and operators of a chain."""

    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.operators: list[Operator] = []

    def tensor(self, name: str, shape: tuple[int, ...], dtype: DType) -> Tensor:
        self.tensors[name] = Tensor(name, shape, dtype)
        return self.tensors[name]

    def constant(self, name: str, shape: tuple[int, ...], dtype: DType) -> None:
        self.tensor(name, shape, dtype)
        self.constants[name] = self.rng.integers(dtype.minimum, dtype.maximum + 1, shape)

    def conv(self, name: str, source: str, out: int, kernel: int, dtype: DType, shift: int) -> None:
        shape = self.tensors[source].shape
        weight = I4 if dtype == U4 else I8
        self.constant(f"{name}.weight", (out, kernel, kernel, shape[2]), weight)
        self.constant(f"{name}.bias", (out,), I8)
        self.tensor(name, (shape[0] - kernel + 1, shape[1] - kernel + 1, out), dtype)
        parameters = (f"{name}.weight", f"{name}.bias")
        requant = PowerOfTwo(0, shift)
        self.operators.append(Conv2d(name, (source,), name, parameters, requant=requant))

    def dense(self, name: str, source: str, out: int) -> None:
        self.constant(f"{name}.weight", (out, *self.tensors[source].shape), I8)
        self.constant(f"{name}.bias", (out,), I8)
        self.tensor(name, (out,), I16)
        parameters = (f"{name}.weight", f"{name}.bias")
        requant = PowerOfTwo(0, 4)
        self.operators.append(Dense(name, (source,), name, parameters, requant=requant))

    def graph(self, source: str) -> Graph:
        output = self.operators[-1].output
        operators = tuple(self.operators)
        return Graph("fixture", self.tensors, operators, self.constants, source, output)


def constants(graph: Graph, memory: str = "flash", skip: tuple[str, ...] = ()) -> list[Buffer]:
    """Every constant packed into ``memory``, one after the other."""
    buffers, top = [], 0
    for name in graph.constants:
        if name in skip:
            continue
        tensor = graph.tensors[name]
        bits = tensor.dtype.bits
        buffers.append(
            Buffer(
                name, name, memory, tensor.shape, bits, packed(tensor.shape, bits, top), "constant"
            )
        )
        top += -(-tensor.size * bits // 8) * 2
    return buffers


def one_track(
    buffers: tuple[Buffer, ...], fixed: list[Buffer], *steps: Step, sram_bytes: int = 64
) -> Plan:
    """The first of ``buffers`` is the input, ``fixed`` are the constants in flash."""
    stream = [Memory("stream", 84, "stream")] * (buffers[0].memory == "stream")
    memories = (Memory("sram", sram_bytes), Memory("flash", 512, "rom"), *stream)
    resident = (buffers[0].name, *(buffer.name for buffer in fixed))
    tracks = (Track("cpu", steps),)
    return Plan("fixture", "by hand", memories, (*buffers, *fixed), tracks, resident, "y")


def herringbone(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """6x6x2 -> 4x4x3, 4 bits, in place: peels of rows and columns, any free nibble."""
    b = Builder(rng)
    b.tensor("x", (6, 6, 2), U4)
    b.conv("y", "x", 3, 3, U4, 4)
    graph = b.graph("x")
    order = [(0, c) for c in range(4)] + [(r, 0) for r in range(1, 4)]
    order += [(1, c) for c in range(1, 4)] + [(r, 1) for r in range(2, 4)]
    order += [(2, 2), (2, 3), (3, 2), (3, 3)]
    last = {(r + i, c + j): n for n, (r, c) in enumerate(order) for i in range(3) for j in range(3)}
    home = {(r, c): [(r * 6 + c) * 2, (r * 6 + c) * 2 + 1] for r in range(6) for c in range(6)}
    used = set(range(72))
    cells = np.zeros((4, 4, 3), dtype=int)
    for n, (r, c) in enumerate(order):
        for pixel, when in last.items():
            if when == n:
                used -= set(home[pixel])
        free = [a for a in range(200) if a not in used][:3]
        used |= set(free)
        cells[r, c] = free
    x = Buffer("x", "x", "sram", (6, 6, 2), 4, packed((6, 6, 2), 4))
    y = Buffer("y", "y", "sram", (4, 4, 3), 4, Table(tuple(int(n) for n in cells.reshape(-1))))
    fixed = constants(graph)
    step = Compute(
        "y",
        whole(y),
        (whole(x), *map(whole, fixed)),
        unit=(1, 1, 3),
        order=tuple((r, c, 0) for r, c in order),
    )
    return one_track((x, y), fixed, step), graph


def channel_partial(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """Pex's loop: generate two of six channels, accumulate them into 32-bit sums, requantize."""
    b = Builder(rng)
    b.tensor("x", (5, 5, 2), U8)
    b.conv("h", "x", 6, 3, U8, 7)
    b.conv("y", "h", 3, 1, U8, 8)
    graph = b.graph("x")
    x = Buffer("x", "x", "sram", (5, 5, 2), 8, packed((5, 5, 2), 8))
    h = Buffer("h", "h", "sram", (3, 3, 6), 8, Affine(100, (12, 4, 2), (0, 0, 2)))
    acc = Buffer("acc", "y", "sram", (3, 3, 3), 32, packed((3, 3, 3), 32, 140), "accumulator")
    y = Buffer("y", "y", "sram", (3, 3, 3), 8, packed((3, 3, 3), 8))  # over x, dead by then
    fixed = constants(graph)
    c1, b1, c2, b2 = map(whole, fixed)
    two = Lin(0, (("k", 2),))
    made = Slice("h", (0, 0, two), (3, 3, 2))
    weights = Slice(c1.buffer, (two, 0, 0, 0), (2, 3, 3, 2)), Slice(b1.buffer, (two,), (2,))
    make = Compute("h", made, (whole(x), *weights))
    read = Slice(c2.buffer, (0, 0, 0, two), (3, 1, 1, 2))
    add = Compute("y", whole(acc), (made, read), partial=True)
    steps = (
        Clear("y", whole(acc)),
        Loop("k", 3, (make, add)),
        Finish("y", whole(acc), whole(y), (b2,)),
    )
    return one_track((x, h, acc, y), fixed, *steps, sram_bytes=256), graph


def double_buffer(rng: np.random.Generator, tiles: int = 4) -> tuple[Plan, Graph]:
    """SwapNN: weights come tile by tile from a card into two halves while the CPU computes."""
    b = Builder(rng)
    b.tensor("x", (8,), U8)
    b.dense("y", "x", 2 * tiles)
    graph = b.graph("x")
    x = Buffer("x", "x", "sram", (8,), 8, packed((8,), 8))
    y = Buffer("y", "y", "sram", (2 * tiles,), 16, packed((2 * tiles,), 16, 16))
    weights = (2 * tiles, 8)
    card = Buffer("y.weight", "y.weight", "card", weights, 8, packed(weights, 8), "constant")
    ring = Buffer("tile", "y.weight", "sram", weights, 8, Affine(128, (16, 2), (4, 0)))
    bias = constants(graph, skip=("y.weight",))[0]
    two, before, after = Lin(0, (("t", 2),)), Lin(-1, (("t", 1),)), Lin(1, (("t", 1),))
    here, there = (Slice(name, (two, 0), (2, 8)) for name in ("tile", "y.weight"))
    use = Compute("y", Slice("y", (two,), (2,)), (whole(x), here, Slice("y.bias", (two,), (2,))))
    io = (Wait("free", before), Move(there, here), Signal("arrived"))
    cpu = (Wait("arrived", after), use, Signal("free"))
    memories = (
        Memory("sram", 128),
        Memory("flash", 64, "rom"),
        Memory("card", 64 + 16 * tiles, "block", 16),
    )
    tracks = (Track("cpu", (Loop("t", tiles, cpu),)), Track("io", (Loop("t", tiles, io),)))
    resident = ("x", "y.weight", "y.bias")
    buffers = (x, y, card, ring, bias)
    return Plan("fixture", "by hand", memories, buffers, tracks, resident, "y"), graph


def row_ring(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """Rows stream into a ring of three; each output row overwrites the input row it kills, and is
    summed into the classifier at once."""
    b = Builder(rng)
    b.tensor("image", (7, 6, 2), U8)
    b.conv("h", "image", 2, 3, U8, 7)
    b.dense("y", "h", 3)
    graph = b.graph("image")
    image = Buffer("image", "image", "stream", (7, 6, 2), 8, packed((7, 6, 2), 8))
    ring = Buffer("ring", "image", "sram", (7, 6, 2), 8, Affine(0, (24, 4, 2), (3, 0, 0)))
    h = Buffer("h", "h", "sram", (5, 4, 2), 8, Affine(0, (24, 4, 2), (3, 0, 0)))
    acc = Buffer("acc", "y", "sram", (3,), 32, packed((3,), 32, 72), "accumulator")
    y = Buffer("y", "y", "sram", (3,), 16, packed((3,), 16, 96))
    fixed = constants(graph)
    c1, b1, _, b2 = map(whole, fixed)
    r, ahead = Lin(0, (("r", 1),)), Lin(2, (("r", 1),))
    arriving, arrived = (Slice(name, (ahead, 0, 0), (1, 6, 2)) for name in ("image", "ring"))
    made = Slice("h", (r, 0, 0), (1, 4, 2))
    convolve = Compute("h", made, (Slice("ring", (r, 0, 0), (3, 6, 2)), c1, b1), (1, 1, 2))
    weights = Slice("y.weight", (0, r, 0, 0), (3, 1, 4, 2))
    add = Compute("y", whole(acc), (made, weights), partial=True)
    first = (Slice(name, (0, 0, 0), (2, 6, 2)) for name in ("image", "ring"))
    steps = (
        Clear("y", whole(acc)),
        Move(*first),
        Loop("r", 5, (Move(arriving, arrived), convolve, add)),
        Finish("y", whole(acc), whole(y), (b2,)),
    )
    return one_track((image, ring, h, acc, y), fixed, *steps), graph


def rows_anywhere(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """A row a step, each where there is room: over input rows that died, and above them."""
    b = Builder(rng)
    b.tensor("x", (5, 4, 2), U8)
    b.conv("y", "x", 3, 3, U8, 7)
    graph = b.graph("x")
    x = Buffer("x", "x", "sram", (5, 4, 2), 8, packed((5, 4, 2), 8))
    y = Buffer("y", "y", "sram", (3, 2, 3), 8, Rows((80, 0, 16), (6, 2)))
    fixed = constants(graph)
    steps = tuple(
        Compute(
            "y",
            Slice("y", (row, 0, 0), (1, 2, 3)),
            (Slice("x", (row, 0, 0), (3, 4, 2)), *map(whole, fixed)),
            (1, 1, 3),
        )
        for row in range(3)
    )
    return one_track((x, y), fixed, *steps), graph


def rows_in_blocks(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """As ``rows_anywhere``: planes of three columns, from rows in blocks of two and one more."""
    plan, graph = rows_anywhere(rng)
    x = Buffer("x", "x", "sram", (5, 4, 2), 8, Blocks((0, 16, 32, 48, 64), 3, 2))
    y = Buffer("y", "y", "sram", (3, 2, 3), 8, Blocks((80, 0, 16), 2, 2))
    (track,) = plan.tracks
    steps = tuple(replace(s, unit=(1, 2, 3)) for s in track.steps if isinstance(s, Compute))
    return replace(
        plan, buffers=(x, y, *plan.buffers[2:]), tracks=(replace(track, steps=steps),)
    ), graph


def column_tiles(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """Two columns at a time of what three layers make, and some of the first one again."""
    net = Net((4, 4, 1), int(rng.integers(1 << 30)))
    net.conv(net.conv(net.conv("input", 2, 3), 1, 3), 1)
    graph = net.graph()
    hardware = board(streams=False, weights_in="flash", sram_bytes=64)
    run = Run(graph, graph.operators, rows=2, columns=2)
    steps = tuple(Tiles(run, row) for row in run.tops)
    regions = [Resident("input"), RowByRow(steps, frozenset([graph.output]))]
    return lay(regions, graph, hardware, scratch=False).plan("by hand"), graph


def residual(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """Whole tensors: a table and a sum in place, a broadcast factor, a reshape that stays put."""
    net = Net((3, 3, 2), int(rng.integers(1 << 30)))
    x = net.lookup(net.depthwise("input"))
    x = net.add(x, "input")
    x = net.multiply(x, net.conv(net.average(x), 2))
    net.dense(net.reshape(x, 18), 3)
    graph = net.graph()
    hardware = board(streams=False, weights_in="flash", sram_bytes=48)
    return Ordinary().plan(graph, hardware), graph


FIXTURES = {
    "herringbone": herringbone,
    "channel_partial": channel_partial,
    "double_buffer": double_buffer,
    "row_ring": row_ring,
    "rows_anywhere": rows_anywhere,
    "rows_in_blocks": rows_in_blocks,
    "column_tiles": column_tiles,
    "residual": residual,
}
