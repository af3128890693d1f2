"""Random plans of a random network: tiles, channel loops and partial sums wherever they may be.

Every tensor has an address of its own; how each operator is computed is drawn: whole, in tiles of
rows or of output channels by a loop (the last tile may be cut off, or empty), or as partial sums
over rows or channels of its input.
"""

from dataclasses import replace
from math import prod
from typing import Literal

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pairwise import Add, Multiply
from pipeline.graph.operators.placing import Pad
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.plan import vocabulary as v
from pipeline.plan.maps import Map
from pipeline.plan.vocabulary import whole
from tests.codegen.int8.support import apart


def looped(graph: Graph, seed: int, rounded: bool = False) -> v.Plan:
    """``rounded``: accumulators of 8 and 16 bits that round and saturate, too."""
    plan = apart(graph)
    draw = Draw(graph, plan, np.random.default_rng(seed), rounded)
    steps = tuple(step for op in graph.operators for step in draw.steps(op))
    buffers = (*plan.buffers, *draw.accumulators)
    return replace(plan, buffers=buffers, tracks=(v.Track("cpu", steps),), strategy="loops")


class Draw:
    def __init__(self, graph: Graph, plan: v.Plan, rng: np.random.Generator, rounded: bool) -> None:
        self.graph, self.plan, self.rng, self.rounded = graph, plan, rng, rounded
        self.accumulators: list[v.Buffer] = []
        sizes = (2 * b.shape[0] * max(1, int(np.prod(b.shape[1:]))) for b in plan.buffers)
        self.top = 64 * (1 + sum(sizes) // 32)

    def steps(self, op: Operator) -> tuple[v.Step, ...]:
        kinds = [self.whole]
        if isinstance(op, Conv2d | Pool2d | Add | Multiply | Lookup | Pad):
            kinds += [self.tiled] * 2
        if isinstance(op, Conv2d | Pool2d | Dense) and not self.counted(op):
            kinds += [self.summed] * 2
        return kinds[int(self.rng.integers(len(kinds)))](op)

    def counted(self, op: Operator) -> bool:
        """A mean over windows cut off by the padding is ended in one step."""
        return isinstance(op, Pool2d) and any(op.padding) and op.combine == "add"

    def all(self, name: str) -> v.Slice:
        return whole(self.plan.buffer[name])

    def ins(self, op: Operator) -> tuple[v.Slice, ...]:
        return tuple(self.all(name) for name in dict.fromkeys((*op.inputs, *op.parameters)))

    def whole(self, op: Operator) -> tuple[v.Step, ...]:
        return (v.Compute(op.name, self.all(op.output), self.ins(op)),)

    def tiled(self, op: Operator) -> tuple[v.Step, ...]:
        """Along one axis, or along two by loops one inside the other."""
        shape = self.graph.tensors[op.output].shape
        lo: list[int | v.Lin] = [0] * len(shape)
        size, loops = list(shape), []
        for axis in self.rng.permutation(len(shape))[: int(self.rng.integers(1, 3))]:
            tile = int(self.rng.integers(1, shape[axis] + 1))
            more = int(self.rng.random() < 0.2)  # a tile with nothing in it
            name = f"t{axis}"
            lo[axis], size[axis] = v.Lin(0, ((name, tile),)), tile
            loops.append((name, -(-shape[axis] // tile) + more))
        step: v.Step = v.Compute(op.name, v.Slice(op.output, tuple(lo), tuple(size)), self.ins(op))
        for name, count in loops:
            step = v.Loop(name, count, (step,))
        return (step,)

    def summed(self, op: Operator) -> tuple[v.Step, ...]:
        """Over an axis of the input, some indices at a time."""
        target = self.graph.tensors[op.output]
        bits, step = self.width(op)
        acc = v.Buffer(
            f"{op.output} sums", op.output, "sram", target.shape, bits,
            v.packed(target.shape, bits, self.top), "accumulator", step,
        )  # fmt: skip
        self.accumulators.append(acc)
        self.top += 8 * target.size
        source = self.graph.tensors[op.inputs[0]]
        axis = int(self.rng.integers(len(source.shape)))
        grouped = isinstance(op, Conv2d) and op.groups > 1
        extent = source.shape[axis]
        tile = int(self.rng.integers(1, extent + 1))
        index = v.Lin(0, (("s", tile),))
        ins = [self.part(source.name, axis, index, tile)]
        if isinstance(op, Dense):
            ins.append(self.part(op.parameters[0], axis + 1, index, tile))
        elif isinstance(op, Conv2d):
            by_depth = axis == 2 and not grouped
            weights = op.parameters[0]
            ins.append(self.part(weights, 3, index, tile) if by_depth else self.all(weights))
        body = v.Compute(op.name, whole(acc), tuple(ins), partial=True)
        bias = tuple(self.all(name) for name in op.parameters[1:])
        return (
            v.Clear(op.name, whole(acc)),
            v.Loop("s", -(-extent // tile), (body,)),
            v.Finish(op.name, whole(acc), self.all(op.output), bias),
        )

    def width(self, op: Operator) -> tuple[int, int]:
        """Bits of an accumulator, and what a unit of it stands for; some saturate."""
        if not self.rounded or op.combine != "add":
            return 32, 1
        bits = int(self.rng.choice([8, 16]))
        low, high = op.partial_sums(self.graph.tensors, self.graph.constants)
        fitting = max(-low, high) / (1 << (bits - 1))
        return bits, 2 + int(fitting * self.rng.uniform(0.01, 1))

    def part(self, name: str, axis: int, index: v.Lin, tile: int) -> v.Slice:
        full = self.all(name)
        lo, size = list(full.lo), list(full.size)
        lo[axis], size[axis] = index, tile
        return v.Slice(name, tuple(lo), tuple(size))


Kind = Literal["rows", "blocks", "pixels", "scattered", "elements"]
KINDS: tuple[Kind, ...] = ("rows", "blocks", "pixels", "scattered", "elements")


def scattered(plan: v.Plan, graph: Graph, kind: Kind, seed: int) -> v.Plan:
    """Pack ``plan``'s buffers apart, but for input and output, which callers fill and read."""
    rng = np.random.default_rng(seed)
    kept = (graph.input, graph.output)

    def moved(buffer: v.Buffer) -> v.Buffer:
        if buffer.role in ("constant", "scratch") or buffer.tensor in kept:
            return buffer
        return replace(buffer, map=strewn(buffer, kind, rng))

    return replace(plan, buffers=tuple(map(moved, plan.buffers)))


def strewn(buffer: v.Buffer, kind: Kind, rng: np.random.Generator) -> Map:
    """The cells of a packed buffer in another order: pieces of its first axis, in blocks of pixels
    or not, of its first two, of those scattered here and there, or each element."""
    cells = np.asarray(buffer.addresses(buffer.box))
    counts = {"rows": 1, "blocks": 1, "pixels": 2, "scattered": 2, "elements": cells.ndim}
    axes = min(counts[kind], cells.ndim)
    pieces = cells.reshape(prod(cells.shape[:axes]), -1)
    mixed = pieces[rng.permutation(len(pieces))]
    if kind == "blocks" and cells.ndim == 3:
        pixels = int(rng.integers(1, cells.shape[1] + 1))
        return v.Blocks(tuple(int(cell) for cell in mixed[:, 0]), pixels, buffer.nibbles)
    if kind == "scattered":
        mixed = np.where(rng.random((len(mixed), 1)) < 0.5, mixed, mixed[:, ::-1])
    if kind == "rows" and cells.ndim > 1:
        strides = np.array([cells[(0,) * (n + 1) + (1,) + (0,) * (cells.ndim - n - 2)]
                            if cells.shape[n + 1] > 1 else cells.flat[0]
                            for n in range(cells.ndim - 1)])  # fmt: skip
        steps = tuple(int(step) for step in strides - cells.flat[0])
        return v.Rows(tuple(int(cell) for cell in mixed[:, 0]), steps)
    return v.Table(tuple(int(cell) for cell in mixed.reshape(-1)))
