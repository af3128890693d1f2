"""Channels of a float network that can only be removed together.

Each output channel of a convolution or linear layer has a number. What the network does with it
ties it to others: a sum or a product needs the same channels on both sides, a depthwise or grouped
convolution loses whole groups with their inputs, the channels of a squeeze-and-excite gate are
those that it scales. Tied numbers are the sets of a union-find (Tarjan 1975). Channels of the input
and the output are fixed, and so are those that meet something not known here: they are tied to
number 0.

Fang et al., "DepGraph: Towards any structural pruning" (2023) builds the same sets on PyTorch's
autograd; here the importers have brought every network to a few kinds of nodes already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import FloatGraph, Node, Shape

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
FIXED = 0


@dataclass(frozen=True)
class Channels:
    """Channels ``numbers`` of a tensor without its batch axis, which lie along ``axis``; along the
    others nothing changes."""

    axis: int
    numbers: Numbers


@dataclass(frozen=True)
class Group:
    """Channels of the layers that share them, each with all that are tied to it.

    Attributes:
        layers: the convolutions and linear layers that make them.
        units: the numbers of its channels, in the order of the first layer's.
    """

    layers: tuple[str, ...]
    units: tuple[int, ...]


@dataclass(frozen=True)
class Couplings:
    """Tied channels of ``graph``.

    Attributes:
        channels: of every activation, numbers replaced by those of their unit.
        units: how many numbers there are.
    """

    graph: FloatGraph
    channels: Mapping[str, Channels]
    units: int

    @cached_property
    def layers(self) -> dict[str, Numbers]:
        """The units that each layer with weights makes, by its name."""
        return {
            node.name: self.channels[node.output].numbers
            for node in self.graph.nodes
            if isinstance(node, nodes.Weighted)
        }

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Return the groups that can be pruned; layers that share a unit are in one group."""
        found: list[tuple[list[str], dict[int, None]]] = []
        for name, units in self.layers.items():
            own = dict.fromkeys(int(unit) for unit in units if unit != FIXED)
            if not own:
                continue
            apart, names, together = [], list[str](), dict[int, None]()
            for layers, others in found:
                if own.keys() & others.keys():
                    names, together = names + layers, together | others
                else:
                    apart.append((layers, others))
            found = [*apart, ([*names, name], together | own)]
        found.sort(key=lambda each: min(each[1]))
        return tuple(Group(tuple(names), tuple(units)) for names, units in found if len(units) > 1)

    def everything(self) -> Mask:
        """(units,) of which nothing is pruned."""
        return np.ones(self.units, bool)

    @cached_property
    def together(self) -> tuple[tuple[int, ...], ...]:
        """Sets of units of which one has to stay: those of each tensor, a slice's among them."""
        return tuple(dict.fromkeys(tuple(map(int, c.numbers)) for c in self.channels.values()))

    def allows(self, kept: Mask) -> bool:
        """Check whether each tensor keeps a channel."""
        return all(kept[list(units)].any() for units in self.together)


def couplings(graph: FloatGraph) -> Couplings:
    """Return the channels of ``graph`` that can be pruned, and which of them only together."""
    return Numbering(graph).run()


class Numbering:
    """Numbers channels node by node, and ties them."""

    def __init__(self, graph: FloatGraph) -> None:
        self.graph = graph
        self.parents = [FIXED]
        shape = graph.shapes[graph.input]
        self.found = {graph.input: Channels(len(shape) - 1, self.fixed(shape[-1]))}

    def run(self) -> Couplings:
        for node in self.graph.nodes:
            self.found[node.output] = self.channels(node, [self.found[n] for n in node.inputs])
        self.fix(self.found[self.graph.output])
        named = {
            name: Channels(each.axis, np.array([self.root(int(n)) for n in each.numbers], np.int64))
            for name, each in self.found.items()
        }
        return Couplings(self.graph, named, len(self.parents))

    def channels(self, node: Node, inputs: Sequence[Channels]) -> Channels:
        first, shape = inputs[0], self.graph.shapes[node.output]
        match node:
            case nodes.Convolution():
                return self.convolution(node, first)
            case nodes.Linear():
                return Channels(0, self.fresh(shape[0]))
            case nodes.Pool() | nodes.GlobalMean() | nodes.Scale():
                return first if first.axis == len(shape) - 1 else self.unknown(inputs, shape)
            case nodes.Function():
                return first
            case nodes.Binary():
                return self.binary(node, inputs, shape)
            case nodes.Concatenation():
                return self.concatenation(node, inputs, shape)
            case nodes.Padded():
                before, after = node.padding[first.axis]
                around = [self.fixed(before), first.numbers, self.fixed(after)]
                return Channels(first.axis, np.concatenate(around))
            case nodes.Reshaped():
                return self.reshaped(first, self.graph.shapes[node.inputs[0]], shape)
            case nodes.Rearranged() if node.steps[first.axis] == node.repeats[first.axis] == 1:
                chosen = node.indices[first.axis]
                return Channels(node.axes[first.axis], first.numbers[chosen])
        return self.unknown(inputs, shape)

    def convolution(self, node: nodes.Convolution, image: Channels) -> Channels:
        """A convolution in groups loses whole groups: what one reads and makes goes together."""
        made, read = self.fresh(len(node.weights)), image.numbers
        if image.axis != 2:
            self.fix(image)
            read = self.fixed(node.weights.shape[3] * node.groups)
        if node.groups > 1:
            reads, makes = read.reshape(node.groups, -1), made.reshape(node.groups, -1)
            for group in zip(reads, makes, strict=True):
                self.tie(*(int(number) for part in group for number in part))
        return Channels(2, made)

    def binary(self, node: nodes.Binary, inputs: Sequence[Channels], shape: Shape) -> Channels:
        """Axes are counted from the last, as they broadcast."""
        shapes = [self.graph.shapes[name] for name in node.inputs]
        places = {each.axis - len(own) for each, own in zip(inputs, shapes, strict=True)}
        if len(places) > 1:
            return self.unknown(inputs, shape)
        axis = places.pop() + len(shape)
        wide = [each.numbers for each in inputs if len(each.numbers) == shape[axis]]
        if not wide:  # a constant has more channels
            return self.unknown(inputs, shape)
        for other in wide[1:]:
            for pair in zip(wide[0], other, strict=True):
                self.tie(*map(int, pair))
        return Channels(axis, wide[0])

    def concatenation(
        self, node: nodes.Concatenation, inputs: Sequence[Channels], shape: Shape
    ) -> Channels:
        if len({each.axis for each in inputs}) > 1:
            return self.unknown(inputs, shape)
        if node.axis == inputs[0].axis:
            return Channels(node.axis, np.concatenate([each.numbers for each in inputs]))
        for several in zip(*(each.numbers for each in inputs), strict=True):
            self.tie(*map(int, several))
        return inputs[0]

    def reshaped(self, source: Channels, before: Shape, after: Shape) -> Channels:
        """Follow channels through a reshape; a flattened image has them again and again."""
        one = [1] * len(before)
        one[source.axis] = -1
        numbers = np.broadcast_to(source.numbers.reshape(one), before).reshape(after)
        for axis in reversed(range(len(after))):
            lines = np.moveaxis(numbers, axis, -1).reshape(-1, after[axis])
            if (lines == lines[0]).all() and after[axis] > 1:
                return Channels(axis, lines[0].copy())
        if len(set(source.numbers)) == 1:
            return Channels(len(after) - 1, np.full(after[-1], source.numbers[0]))
        return self.unknown([source], after)

    def unknown(self, inputs: Sequence[Channels], shape: Shape) -> Channels:
        for each in inputs:
            self.fix(each)
        return Channels(len(shape) - 1, self.fixed(shape[-1]))

    def fresh(self, count: int) -> Numbers:
        first = len(self.parents)
        self.parents.extend(range(first, first + count))
        return np.arange(first, first + count)

    def fixed(self, count: int) -> Numbers:
        return np.full(count, FIXED, np.int64)

    def fix(self, channels: Channels) -> None:
        self.tie(FIXED, *map(int, channels.numbers))

    def tie(self, *numbers: int) -> None:
        """The least number stands for all, so that what is tied to ``FIXED`` is fixed."""
        roots = sorted({self.root(number) for number in numbers})
        for root in roots[1:]:
            self.parents[root] = roots[0]

    def root(self, number: int) -> int:
        while self.parents[number] != number:
            self.parents[number] = self.parents[self.parents[number]]
            number = self.parents[number]
        return number
