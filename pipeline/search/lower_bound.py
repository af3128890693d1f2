"""A bound on the memory of every schedule that computes nothing twice: a proof by cuts.

Claim: let T be a tensor and consider the moment before the first step that completes elements of
it, y among them. Every element that y is made of, directly or not, has been completed, and no
element of T has. For each x that is completed and each z that reads x and isn't: either x is held,
since it will still be read and is never made again, or z has taken it already and is held as an
open sum. So what is held is a vertex cut between the ancestors of y and T, in the graph whose edges
are these readings; no step, however fine, by rows, by columns, by channels, in place or not,
escapes that.
Completed elements count with their width, and so, as less than they are, do open sums, but for
those of T, where all sums of convolutions and dense layers are open: 32 bits. The least over all y
of the least cut (by flow: Menger) is a bound, for each T. An input that is held is completed from
the start; of one that streams in nothing is counted, since it may be read where it comes in.

Channels of a pixel are one vertex of their common capacity: a flow through such vertices, spread
evenly over the channels, is one through the elements, since an operator that is followed here takes
all channels (of a group) or each its own. Operators that are not followed have no edges: cuts only
become smaller. So do they where what is far before T is left out.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from pipeline.graph.families import Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.tensor import IntArray
from pipeline.placement.blocks import WORD
from pipeline.search.view.pixels import along

ENDLESS = 1 << 29
MOST_VERTICES = 20_000
"""Pixels of the operators before a tensor that are looked at."""

MOST_PIXELS = 600
"""Most pixels of a tensor that is looked at: there is a flow for each."""


class Bound(NamedTuple):
    """``bytes`` that every schedule needs; ``at``: the tensor that asks for them."""

    bytes: float
    at: str


def lower_bound(graph: Graph, operators: Sequence[Operator], streamed: bool) -> Bound:
    """Bound memory for activations, with sums of 32 bits, that the output needs (``operators``).

    Args:
        streamed: the input comes in piece by piece, and is not held.
    """
    ends = [graph.ends] if streamed else [graph.starts, graph.ends]
    sums = (Bound(sum(graph.tensors[n].bytes for n in each), " and ".join(each)) for each in ends)
    best = max(sums, key=lambda one: one.bytes)
    tried = []
    for number, op in enumerate(operators):
        if (size := pixels(graph, op.output)) <= MOST_PIXELS:
            before = DependencyCone(graph, operators[: number + 1], streamed)
            tried.append((min(before.cut(0), before.cut(size - 1)), -number, before))
    for most, _, before in sorted(tried, key=lambda one: one[:2], reverse=True):
        found = most
        for pixel in range(pixels(graph, before.target)):
            if found / 2 <= best.bytes:
                break
            found = min(found, before.cut(pixel))
        best = max(best, Bound(found / 2, before.target), key=lambda one: one.bytes)
    return best


class DependencyCone:
    """The pixels of ``target``, which the last of ``operators`` makes, and of some tensors before
    it: of as many operators, from the last one back, as there may be pixels.

    Attributes:
        first: of each tensor the number of its first pixel.
        edges: of each operator, the last one first, (edges, 2): the numbers of who is read and who
            reads.
        capacity: of each pixel, in nibbles.
    """

    def __init__(self, graph: Graph, operators: Sequence[Operator], streamed: bool) -> None:
        self.graph, self.streamed, self.target = graph, streamed, operators[-1].output
        self.first, self.edges = dict[str, int](), list[IntArray]()
        self.capacity = list[int]()
        self._hold(self.target, isinstance(operators[-1], Weighted))
        for op in reversed(operators):
            if op.output not in self.first:
                continue
            more = [name for name in dict.fromkeys(op.inputs) if name not in self.first]
            if len(self.capacity) + sum(pixels(graph, name) for name in more) > MOST_VERTICES:
                break
            for name in more:
                self._hold(name)
            self.edges.append(self._read(op))

    def cut(self, pixel: int) -> int:
        """Nibbles of the least cut between what ``pixel`` of the target is made of and that."""
        size, target = len(self.capacity), self.first[self.target]
        made = np.zeros(size, dtype=bool)
        made[target + pixel] = True
        for edges in self.edges:  # from the last operator back
            made[edges[made[edges[:, 1]], 0]] = True
        ends = np.arange(target, target + pixels(self.graph, self.target))
        made[ends] = False
        for name in self.first.keys() & set(self.graph.starts):
            begin = self.first[name]
            made[begin : begin + pixels(self.graph, name)] = not self.streamed
        starts = np.flatnonzero(made)
        if not len(starts):
            return 0
        source, sink, inside = 2 * size, 2 * size + 1, np.arange(size)
        read, reads = np.concatenate(self.edges).T if self.edges else np.zeros((2, 0), np.int64)
        tails = np.concatenate(
            [2 * inside, 2 * read + 1, np.full(len(starts), source), 2 * ends + 1]
        )
        heads = np.concatenate([2 * inside + 1, 2 * reads, 2 * starts, np.full(len(ends), sink)])
        amount = np.full(len(tails), ENDLESS, dtype=np.int32)
        amount[:size] = self.capacity
        network = csr_array((amount, (tails, heads)), shape=(2 * size + 2, 2 * size + 2))
        return int(maximum_flow(network, source, sink).flow_value)

    def _hold(self, name: str, summed: bool = False) -> None:
        tensor, count = self.graph.tensors[name], pixels(self.graph, name)
        nibbles = WORD * tensor.size if summed else tensor.nibbles
        self.first[name] = len(self.capacity)
        self.capacity += [nibbles // count] * count

    def _read(self, op: Operator) -> IntArray:
        """Edges of ``op``; none where it is not followed."""
        graph, found = self.graph, [np.zeros((0, 2), dtype=np.int64)]
        target = graph.tensors[op.output].shape
        for operand in op.reads(graph.tensors):
            name, source = operand.tensor, graph.tensors[operand.tensor].shape
            if name not in self.first or not follows(op, graph, name):
                continue
            read = np.arange(pixels(graph, name))
            reads = np.zeros_like(read)  # all of it for each
            if len(target) == 3:
                sides = map(along, operand.windows, target[:2], source)
                (down, up), (across, left) = map(np.nonzero, sides)
                read = (up[:, None] * source[1] + left).reshape(-1)
                reads = (down[:, None] * target[1] + across).reshape(-1)
            found.append(np.stack([self.first[name] + read, self.first[op.output] + reads], axis=1))
        return np.concatenate(found)


def pixels(graph: Graph, tensor: str) -> int:
    """A vector is one."""
    shape = graph.tensors[tensor].shape
    return prod(shape[:2]) if len(shape) == 3 else 1


def follows(op: Operator, graph: Graph, name: str) -> bool:
    """Check whether a pixel of ``op``'s output takes all channels of the pixels of ``name`` that it
    reads, or each its own."""
    source, target = graph.tensors[name].shape, graph.tensors[op.output].shape
    if isinstance(op, Dense):
        return op.reads_all(graph.tensors)
    if len(source) != 3 or len(target) != 3:
        return False
    windows = [w for o in op.reads(graph.tensors) if o.tensor == name for w in o.windows[:2]]
    plain = all((w.axis, w.divide) == (n % 2, 1) for n, w in enumerate(windows))
    if isinstance(op, Conv2d | Pool2d):
        return plain
    return plain and op.element_wise and source == target
