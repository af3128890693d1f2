"""Plans by a planner that cannot be wrong, and by hand: loops, rings, partial sums, overlaps, each
with the graph it is for; and the small network whose generated C is kept as golden files."""

from collections.abc import Callable

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Memory
from pipeline.plan import vocabulary as v
from tests.codegen.support import DEVICE, Native, agrees, frames, host
from tests.graphs import Chained, Net
from tests.plan.fixtures import FIXTURES, constants

__all__ = ["DEVICE", "Native", "agrees", "apart", "frames", "host"]


def apart(graph: Graph, sram_bytes: int = 1 << 24) -> v.Plan:
    """Every tensor at an address of its own, operators in the graph's order."""
    buffers, top = [], 0
    for name, tensor in graph.tensors.items():
        if name not in graph.constants:
            layout = v.packed(tensor.shape, tensor.dtype.bits, top)
            buffers.append(v.Buffer(name, name, "sram", tensor.shape, tensor.dtype.bits, layout))
            top += -(-tensor.size * tensor.dtype.bits // 32) * 8
    fixed = constants(graph)
    by_name = {buffer.name: buffer for buffer in (*buffers, *fixed)}
    steps = tuple(
        v.Compute(
            op.name,
            v.whole(by_name[op.output]),
            tuple(v.whole(by_name[name]) for name in dict.fromkeys((*op.inputs, *op.parameters))),
        )
        for op in graph.operators
    )
    memories = (Memory("sram", sram_bytes), Memory("flash", 1 << 26, "rom"))
    resident = (graph.input, *(buffer.name for buffer in fixed))
    return v.Plan(
        graph.name, "apart", memories, (*buffers, *fixed), (v.Track("cpu", steps),), resident,
        (graph.output,),
    )  # fmt: skip


def network() -> Graph:
    """A residual block, depthwise and pointwise convolution, pooling, a classifier."""
    net = Net((8, 8, 3), np.random.default_rng(1), name="small")
    start = net.conv(4, stride=(2, 2))
    net.plus(net.conv(4), start)
    return Chained(net).depthwise().conv(6, (1, 1)).mean((4, 4)).dense(3).softmax().graph()


ARENA = 1 << 16


def at(variable: str, coef: int, const: int = 0) -> v.Lin:
    return v.Lin(const, ((variable, coef),))


class Hand:
    """Buffers and steps of one plan; addresses in bytes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.buffers: dict[str, v.Buffer] = {b.name: b for b in constants(graph)}
        self.fixed = tuple(self.buffers)

    def put(
        self, tensor: str, byte: int, *, name: str = "", wrap: tuple[int, ...] = (),
        strides: tuple[int, ...] = (), bits: int = 0,
    ) -> v.Slice:  # fmt: skip
        """``bits`` makes it an accumulator; ``strides`` are in bytes."""
        of = self.graph.tensors[tensor]
        shape, width = of.shape, bits or of.dtype.bits
        layout = v.packed(shape, width, 2 * byte)
        if strides or wrap:
            steps = tuple(2 * s for s in strides) or layout.strides
            layout = v.Affine(2 * byte, steps, wrap)
        role = "accumulator" if bits else "activation"
        buffer = v.Buffer(name or tensor, tensor, "sram", shape, width, layout, role)  # type: ignore[arg-type]
        self.buffers[buffer.name] = buffer
        return v.whole(buffer)

    def all(self, name: str) -> v.Slice:
        return v.whole(self.buffers[name])

    def parameters(self, op: str) -> tuple[v.Slice, ...]:
        return tuple(self.all(name) for name in self.graph.operator(op).parameters)

    def plan(self, *steps: v.Step) -> v.Plan:
        memories = (Memory("sram", ARENA), Memory("flash", 1 << 22, "rom"))
        return v.Plan(
            self.graph.name, "by hand", memories, tuple(self.buffers.values()),
            (v.Track("cpu", steps),), (self.graph.input, *self.fixed), self.graph.outputs,
        )  # fmt: skip


def net(*shape: int, seed: int = 0) -> Net:
    return Net(shape, np.random.default_rng(seed))


def depth_by_channels() -> tuple[Graph, v.Plan]:
    """A depthwise convolution with a multiplier, an input channel a step into its sums."""
    n = net(5, 6, 3)
    name = n.depthwise((3, 3), 2)
    hand = Hand(n.graph())
    x, y = hand.put("image", 0), hand.put(name, 200)
    acc = hand.put(name, 400, name="acc", bits=32)
    weights, bias = hand.parameters(name)
    part = v.Slice(x.buffer, (0, 0, at("c", 1)), (5, 6, 1))
    loop = v.Loop("c", 3, (v.Compute(name, acc, (part, weights), partial=True),))
    return hand.graph, hand.plan(v.Clear(name, acc), loop, v.Finish(name, acc, y, (bias,)))


def add_by_operands() -> tuple[Graph, v.Plan]:
    """A residual's two operands at different times, and the result over its own sums."""
    n = net(4, 5, 3)
    left, right = n.conv(3), n.conv(3, source="image")
    name = n.plus(left, right)
    hand = Hand(n.graph())
    x, a = hand.put("image", 0), hand.put(left, 100)
    b = hand.put(right, 100)
    acc, y = hand.put(name, 400, name="acc", bits=32), hand.put(name, 400)
    return hand.graph, hand.plan(
        v.Clear(name, acc),
        v.Compute(left, a, (x, *hand.parameters(left))),
        v.Compute(name, acc, (a,), partial=True),
        v.Compute(right, b, (x, *hand.parameters(right))),
        v.Compute(name, acc, (b,), partial=True),
        v.Finish(name, acc, y),
    )


def in_place() -> tuple[Graph, v.Plan]:
    """A pointwise convolution, a table, a sum and a classifier over their own inputs."""
    n = net(5, 6, 6)
    narrow = n.conv(4, (1, 1))
    table, twice = n.lookup(), n.plus(n.last, n.last)
    logits = n.dense(4)
    hand = Hand(n.graph())
    x, a, b, c, y = (hand.put(t, 0) for t in ("image", narrow, table, twice, logits))
    return hand.graph, hand.plan(
        v.Compute(narrow, a, (x, *hand.parameters(narrow)), unit=(1, 1, 4)),
        v.Compute(table, b, (a,), unit=(5, 6, 4)),
        v.Compute(twice, c, (b,)),
        v.Compute(logits, y, (c, *hand.parameters(logits)), unit=(4,)),
    )


def concat_in_place() -> tuple[Graph, v.Plan]:
    """Convolutions write their channels where the joined tensor has them."""
    n = net(5, 4, 3)
    a = n.conv(4)
    b = n.like(n.conv(3, source="image"), a)
    joined = n.concat((a, b))
    out = n.conv(2, (1, 1))
    hand = Hand(n.graph())
    hand.put("image", 0)
    hand.put(a, 100, strides=(28, 7, 1))
    raw = hand.graph.operators[1].output
    hand.put(raw, 300)
    hand.put(b, 104, strides=(28, 7, 1))
    hand.put(joined, 100)
    hand.put(out, 0)
    steps = [
        v.Compute(
            op.name, hand.all(op.output), tuple(hand.all(t) for t in (*op.inputs, *op.parameters))
        )
        for op in hand.graph.operators
    ]
    steps[3] = v.Compute(joined, hand.all(joined), (hand.all(a), hand.all(b)), unit=(5, 4, 7))
    return hand.graph, hand.plan(*steps)


def moved() -> tuple[Graph, v.Plan]:
    """A tensor is shifted onto itself, then to a wider pitch by a loop over rows."""
    n = net(4, 6, 3)
    name = n.conv(4)
    hand = Hand(n.graph())
    x, near = hand.put("image", 40), hand.put("image", 8, name="near")
    wide = hand.put("image", 200, name="wide", strides=(32, 5, 1))
    y = hand.put(name, 400)
    row = (at("r", 1), 0, 0)
    move = v.Move(*(v.Slice(name, row, (1, 6, 3)) for name in ("near", "wide")))
    loop = v.Loop("r", 4, (move,))
    step = v.Compute(name, y, (wide, *hand.parameters(name)))
    return hand.graph, hand.plan(v.Move(x, near), loop, step)


def row_ring() -> tuple[Graph, v.Plan]:
    """A layer's rows go round a ring of three, each used up by the next layer at once."""
    n = net(8, 6, 3)
    first, second = n.conv(4), n.conv(2, padding=(0, 0, 0, 0))
    third = n.maximum((2, 2), stride=(1, 1))
    hand = Hand(n.graph())
    x = hand.put("image", 0)
    ring = hand.put(first, 200, wrap=(3, 0, 0))
    pair = hand.put(second, 300, wrap=(2, 0, 0))
    y = hand.put(third, 400)

    def row(piece: v.Slice, index: v.Lin | int, count: int = 1) -> v.Slice:
        return v.Slice(piece.buffer, (index, 0, 0), (count, *piece.size[1:]))

    start = v.Compute(first, row(ring, 0, 2), (x, *hand.parameters(first)))
    body = (
        v.Compute(first, row(ring, at("r", 1, 2)), (x, *hand.parameters(first))),
        v.Compute(
            second, row(pair, at("r", 1)), (row(ring, at("r", 1), 3), *hand.parameters(second))
        ),
        v.Compute(third, row(y, at("r", 1, -1)), (row(pair, at("r", 1, -1), 2),)),
    )
    return hand.graph, hand.plan(start, v.Loop("r", 6, body))


def fixture(name: str) -> tuple[Graph, v.Plan]:
    plan, graph = FIXTURES[name](np.random.default_rng(0))
    return graph, plan


PLANS: dict[str, Callable[[], tuple[Graph, v.Plan]]] = {
    "channel loop": lambda: fixture("channel_partial"),
    "row ring": row_ring,
    "depth by channels": depth_by_channels,
    "add by operands": add_by_operands,
    "in place": in_place,
    "concat in place": concat_in_place,
    "moved": moved,
}
