"""Plans that show the vocabulary's powers, most of them hand-written, of small random graphs."""

from dataclasses import replace

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Memory
from pipeline.plan import vocabulary as v
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


def constants(graph: Graph, memory: str = "flash", skip: tuple[str, ...] = ()) -> list[v.Buffer]:
    """Every constant packed into ``memory``, one after the other."""
    buffers, top = [], 0
    for name in graph.constants:
        if name in skip:
            continue
        tensor = graph.tensors[name]
        bits = tensor.dtype.bits
        place = v.packed(tensor.shape, bits, top)
        buffers.append(v.Buffer(name, name, memory, tensor.shape, bits, place, "constant"))
        top += -(-tensor.size * bits // 8) * 2
    return buffers


def one_track(
    buffers: tuple[v.Buffer, ...], fixed: list[v.Buffer], *steps: v.Step, sram_bytes: int = 64
) -> v.Plan:
    """The first of ``buffers`` is the input, ``fixed`` are the constants in flash."""
    stream = [Memory("stream", 84, "stream")] * (buffers[0].memory == "stream")
    memories = (Memory("sram", sram_bytes), Memory("flash", 512, "rom"), *stream)
    resident = (buffers[0].name, *(buffer.name for buffer in fixed))
    tracks = (v.Track("cpu", steps),)
    return v.Plan("chain", "by hand", memories, (*buffers, *fixed), tracks, resident, ("y",))


def herringbone(rng: np.random.Generator) -> tuple[v.Plan, Graph]:
    """6x6x2 -> 4x4x3, 4 bits, in place: peels of rows and columns, any free nibble."""
    chain = Chain((6, 6, 2), source="x")
    chain.rng = rng
    graph = chain.conv("y", 3, shifts=(0, 4)).graph()
    hardware = board(streams=False, weights_in="flash", sram_bytes=64)
    return Herringbone().plan(graph, hardware), graph


def channel_partial(rng: np.random.Generator) -> tuple[v.Plan, Graph]:
    """Pex's loop: generate two of six channels, accumulate them into 32-bit sums, requantize."""
    graph = of_bytes(rng, (5, 5, 2), ("h", 6, 3, 7), ("y", 3, 1, 8))
    x = v.Buffer("x", "x", "sram", (5, 5, 2), 8, v.packed((5, 5, 2), 8))
    h = v.Buffer("h", "h", "sram", (3, 3, 6), 8, v.Affine(100, (12, 4, 2), (0, 0, 2)))
    acc = v.Buffer("acc", "y", "sram", (3, 3, 3), 32, v.packed((3, 3, 3), 32, 140), "accumulator")
    y = v.Buffer("y", "y", "sram", (3, 3, 3), 8, v.packed((3, 3, 3), 8))  # over x, dead by then
    fixed = constants(graph)
    c1, b1, c2, b2 = map(v.whole, fixed)
    two = v.Lin(0, (("k", 2),))
    made = v.Slice("h", (0, 0, two), (3, 3, 2))
    weights = v.Slice(c1.buffer, (two, 0, 0, 0), (2, 3, 3, 2)), v.Slice(b1.buffer, (two,), (2,))
    make = v.Compute("h", made, (v.whole(x), *weights))
    read = v.Slice(c2.buffer, (0, 0, 0, two), (3, 1, 1, 2))
    add = v.Compute("y", v.whole(acc), (made, read), partial=True)
    steps = (
        v.Clear("y", v.whole(acc)),
        v.Loop("k", 3, (make, add)),
        v.Finish("y", v.whole(acc), v.whole(y), (b2,)),
    )
    return one_track((x, h, acc, y), fixed, *steps, sram_bytes=256), graph


def double_buffer(rng: np.random.Generator, tiles: int = 4) -> tuple[v.Plan, Graph]:
    """SwapNN: weights come tile by tile from a card into two halves while the CPU computes."""
    graph = of_bytes(rng, (8,), outputs=2 * tiles)
    x = v.Buffer("x", "x", "sram", (8,), 8, v.packed((8,), 8))
    y = v.Buffer("y", "y", "sram", (2 * tiles,), 16, v.packed((2 * tiles,), 16, 16))
    weights = (2 * tiles, 8)
    card = v.Buffer("y.weight", "y.weight", "card", weights, 8, v.packed(weights, 8), "constant")
    ring = v.Buffer("tile", "y.weight", "sram", weights, 8, v.Affine(128, (16, 2), (4, 0)))
    bias = constants(graph, skip=("y.weight",))[0]
    two, before, after = v.Lin(0, (("t", 2),)), v.Lin(-1, (("t", 1),)), v.Lin(1, (("t", 1),))
    here, there = (v.Slice(name, (two, 0), (2, 8)) for name in ("tile", "y.weight"))
    use = v.Compute(
        "y", v.Slice("y", (two,), (2,)), (v.whole(x), here, v.Slice("y.bias", (two,), (2,)))
    )
    io = (v.Wait("free", before), v.Move(there, here), v.Signal("arrived"))
    cpu = (v.Wait("arrived", after), use, v.Signal("free"))
    storage = Memory("card", 64 + 16 * tiles, "block", 16)
    memories = (Memory("sram", 128), Memory("flash", 64, "rom"), storage)
    tracks = (v.Track("cpu", (v.Loop("t", tiles, cpu),)), v.Track("io", (v.Loop("t", tiles, io),)))
    resident = ("x", "y.weight", "y.bias")
    buffers = (x, y, card, ring, bias)
    return v.Plan("chain", "by hand", memories, buffers, tracks, resident, ("y",)), graph


def row_ring(rng: np.random.Generator) -> tuple[v.Plan, Graph]:
    """Rows stream into a ring of three; output rows lie over those they kill, and are summed up."""
    graph = of_bytes(rng, (7, 6, 2), ("h", 2, 3, 7), source="image", outputs=3)
    image = v.Buffer("image", "image", "stream", (7, 6, 2), 8, v.packed((7, 6, 2), 8))
    ring = v.Buffer("ring", "image", "sram", (7, 6, 2), 8, v.Affine(0, (24, 4, 2), (3, 0, 0)))
    h = v.Buffer("h", "h", "sram", (5, 4, 2), 8, v.Affine(0, (24, 4, 2), (3, 0, 0)))
    acc = v.Buffer("acc", "y", "sram", (3,), 32, v.packed((3,), 32, 72), "accumulator")
    y = v.Buffer("y", "y", "sram", (3,), 16, v.packed((3,), 16, 96))
    fixed = constants(graph)
    c1, b1, _, b2 = map(v.whole, fixed)
    r, ahead = v.Lin(0, (("r", 1),)), v.Lin(2, (("r", 1),))
    arriving, arrived = (v.Slice(name, (ahead, 0, 0), (1, 6, 2)) for name in ("image", "ring"))
    made = v.Slice("h", (r, 0, 0), (1, 4, 2))
    convolve = v.Compute("h", made, (v.Slice("ring", (r, 0, 0), (3, 6, 2)), c1, b1), (1, 1, 2))
    weights = v.Slice("y.weight", (0, r, 0, 0), (3, 1, 4, 2))
    add = v.Compute("y", v.whole(acc), (made, weights), partial=True)
    first = (v.Slice(name, (0, 0, 0), (2, 6, 2)) for name in ("image", "ring"))
    steps = (
        v.Clear("y", v.whole(acc)),
        v.Move(*first),
        v.Loop("r", 5, (v.Move(arriving, arrived), convolve, add)),
        v.Finish("y", v.whole(acc), v.whole(y), (b2,)),
    )
    return one_track((image, ring, h, acc, y), fixed, *steps), graph


def rows_anywhere(rng: np.random.Generator) -> tuple[v.Plan, Graph]:
    """A row a step, each where there is room: over input rows that died, and above them."""
    graph = of_bytes(rng, (5, 4, 2), ("y", 3, 3, 7))
    x = v.Buffer("x", "x", "sram", (5, 4, 2), 8, v.packed((5, 4, 2), 8))
    y = v.Buffer("y", "y", "sram", (3, 2, 3), 8, v.Rows((80, 0, 16), (6, 2)))
    fixed = constants(graph)
    steps = []
    for row in range(3):
        made, read = v.Slice("y", (row, 0, 0), (1, 2, 3)), v.Slice("x", (row, 0, 0), (3, 4, 2))
        steps.append(v.Compute("y", made, (read, *map(v.whole, fixed)), (1, 1, 3)))
    return one_track((x, y), fixed, *steps), graph


def rows_in_blocks(rng: np.random.Generator) -> tuple[v.Plan, Graph]:
    """As ``rows_anywhere``: planes of three columns, from rows in blocks of two and one more."""
    plan, graph = rows_anywhere(rng)
    x = v.Buffer("x", "x", "sram", (5, 4, 2), 8, v.Blocks((0, 16, 32, 48, 64), 3, 2))
    y = v.Buffer("y", "y", "sram", (3, 2, 3), 8, v.Blocks((80, 0, 16), 2, 2))
    (track,) = plan.tracks
    steps = tuple(replace(s, unit=(1, 2, 3)) for s in track.steps if isinstance(s, v.Compute))
    return replace(
        plan, buffers=(x, y, *plan.buffers[2:]), tracks=(replace(track, steps=steps),)
    ), graph


def column_tiles(rng: np.random.Generator) -> tuple[v.Plan, Graph]:
    """Two columns at a time of what three layers make, and some of the first one again."""
    net = Net((4, 4, 1), int(rng.integers(1 << 30)))
    net.conv(net.conv(net.conv("input", 2, 3), 1, 3), 1)
    graph = net.graph()
    hardware = board(streams=False, weights_in="flash", sram_bytes=64)
    run = Run(graph, graph.operators, rows=2, columns=2)
    steps = tuple(Patches(run, row) for row in run.tops)
    regions = [InputRows("input"), RowByRow(steps, frozenset([graph.output]))]
    return lay(regions, Draft(graph, hardware), cells=0).plan("by hand"), graph


def residual(rng: np.random.Generator) -> tuple[v.Plan, Graph]:
    """Whole tensors: a table and a sum in place, a broadcast factor, a reshape that stays put."""
    net = Net((3, 3, 2), int(rng.integers(1 << 30)))
    x = net.lookup(net.depthwise("input"))
    x = net.add(x, "input")
    x = net.multiply(x, net.conv(net.average(x), 2))
    net.dense(net.reshape(x, 18), 3)
    graph = net.graph()
    hardware = board(streams=False, weights_in="flash", sram_bytes=48)
    return Ordinary().plan(graph, hardware), graph


ALL = (herringbone, channel_partial, double_buffer, row_ring, rows_anywhere, rows_in_blocks)
FIXTURES = {make.__name__: make for make in (*ALL, column_tiles, residual)}
