"""Plans that show the vocabulary's powers, most of them hand-written, of small random graphs."""

from dataclasses import replace

import numpy as np

from pipeline.graph.graph import Graph
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
    Track,
    Wait,
    packed,
    whole,
)
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import lay
from pipeline.schedules.patches import Patches, Run
from pipeline.schedules.rows import InputRows
from pipeline.schedules.rows import Rows as RowByRow
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.strategies.chains import Chain, board
from tests.strategies.nets import Net


def of_bytes(
    rng: np.random.Generator, shape: tuple[int, ...], *convolutions: tuple[str, int, int, int],
    source: str = "x", outputs: int = 0,
) -> Graph:  # fmt: skip
    """A chain of 8 bits: convolutions (name, channels, kernel, shift), a dense layer in 16 bits."""
    chain = Chain(shape, "uint8", source=source)
    chain.rng = rng
    for name, channels, kernel, shift in convolutions:
        chain.conv(name, channels, kernel, "uint8", weights="int8", shifts=(0, shift))
    if outputs:
        chain.dense("y", outputs, weights="int8", shifts=(0, 4))
    return chain.graph()


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
    return Plan("chain", "by hand", memories, (*buffers, *fixed), tracks, resident, ("y",))


def herringbone(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """6x6x2 -> 4x4x3, 4 bits, in place: peels of rows and columns, any free nibble."""
    chain = Chain((6, 6, 2), source="x")
    chain.rng = rng
    graph = chain.conv("y", 3, shifts=(0, 4)).graph()
    hardware = board(streams=False, weights_in="flash", sram_bytes=64)
    return Herringbone().plan(graph, hardware), graph


def channel_partial(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """Pex's loop: generate two of six channels, accumulate them into 32-bit sums, requantize."""
    graph = of_bytes(rng, (5, 5, 2), ("h", 6, 3, 7), ("y", 3, 1, 8))
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
    graph = of_bytes(rng, (8,), outputs=2 * tiles)
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
    return Plan("chain", "by hand", memories, buffers, tracks, resident, ("y",)), graph


def row_ring(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """Rows stream into a ring of three; output rows lie over those they kill, and are summed up."""
    graph = of_bytes(rng, (7, 6, 2), ("h", 2, 3, 7), source="image", outputs=3)
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
    graph = of_bytes(rng, (5, 4, 2), ("y", 3, 3, 7))
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
    steps = tuple(Patches(run, row) for row in run.tops)
    regions = [InputRows("input"), RowByRow(steps, frozenset([graph.output]))]
    return lay(regions, Draft(graph, hardware), cells=0).plan("by hand"), graph


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
