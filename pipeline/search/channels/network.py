"""A graph as Pex sees it: tensors that are there fully or a few channels at a time, and operators
that are channel-wise, aggregating, or neither (Pex, definitions 1 to 5).

Sets of tensors are bit masks; sizes are in nibbles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator, Tensors
from pipeline.search.work import Task, Work, members

Kind = Literal["channelwise", "aggregating", "other"]


@dataclass(frozen=True)
class Node:
    """An operator: the tensors it reads, the one it makes, and those whose place it may take."""

    op: Operator
    kind: Kind
    makes: int
    reads: int
    over: int


@dataclass(frozen=True)
class Network:
    """
    Attributes:
        names: of the tensors, in the order they are made; the first is there at the start.
        sizes: of each tensor when it is there fully.
        elements: of each tensor.
        channels: of each tensor: the extent of its last axis.
        nodes: the operators; number n makes tensor n + 1.
        result: the tensor to be made.
        accumulator_nibbles: of one element while contributions are added to it.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    elements: tuple[int, ...]
    channels: tuple[int, ...]
    nodes: tuple[Node, ...]
    result: int
    accumulator_nibbles: int

    @classmethod
    def of(
        cls, graph: Graph, start: str, operators: Sequence[Operator], accumulator_bits: int
    ) -> Network:
        names = (start, *(op.output for op in operators))
        number = {name: n for n, name in enumerate(names)}

        def mask(tensors: Sequence[str]) -> int:
            return sum(1 << number[name] for name in dict.fromkeys(tensors))

        tensors = [graph.tensors[name] for name in names]
        nodes = tuple(
            Node(
                op,
                kind(op, graph.tensors),
                number[op.output],
                mask(op.inputs),
                mask(op.overwritable(graph.tensors)),
            )
            for op in operators
        )
        return cls(
            names,
            tuple(t.size * max(1, t.dtype.bits // 4) for t in tensors),
            tuple(t.size for t in tensors),
            tuple(t.shape[-1] for t in tensors),
            nodes,
            number[graph.output],
            accumulator_bits // 4,
        )

    @property
    def work(self) -> Work:
        """The network as the planner of ordinary execution sees it."""
        tasks = (
            Task(tuple(members(node.reads)), node.makes, tuple(members(node.over)))
            for node in self.nodes
        )
        return Work(self.sizes, tuple(tasks), 0, self.result)

    def with_places(self, able: Callable[[Operator], bool]) -> Network:
        """The same, where an operator that is ``able`` may take its first input's place."""
        nodes = tuple(
            replace(node, over=node.over | node.reads) if able(node.op) else node
            for node in self.nodes
        )
        return replace(self, nodes=nodes)

    def reordered(self, tasks: Sequence[int]) -> Network:
        """The same network with its operators in the order ``tasks``."""
        old = (0, *(task + 1 for task in tasks))
        new = {tensor: n for n, tensor in enumerate(old)}

        def mask(tensors: int) -> int:
            return sum(1 << new[tensor] for tensor in members(tensors))

        nodes = tuple(
            replace(node, makes=new[node.makes], reads=mask(node.reads), over=mask(node.over))
            for node in (self.nodes[task] for task in tasks)
        )
        return replace(
            self,
            names=tuple(self.names[tensor] for tensor in old),
            sizes=tuple(self.sizes[tensor] for tensor in old),
            elements=tuple(self.elements[tensor] for tensor in old),
            channels=tuple(self.channels[tensor] for tensor in old),
            nodes=nodes,
            result=new[self.result],
        )

    def node(self, tensor: int) -> Node | None:
        """What makes ``tensor``; nothing makes the first."""
        return self.nodes[tensor - 1] if tensor else None

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """For each tensor the mask of those it is computed from, directly or not."""
        found = [0]
        for node in self.nodes:
            found.append(reduce(or_, (found[t] for t in members(node.reads)), node.reads))
        return tuple(found)

    def part(self, tensor: int) -> int:
        """Nibbles of one channel."""
        return self.sizes[tensor] // self.channels[tensor]

    def widened(self, tensor: int) -> int:
        """What ``tensor`` takes more while it is accumulated; an accumulator at least as narrow as
        the tensor takes its room."""
        return max(0, self.elements[tensor] * self.accumulator_nibbles - self.sizes[tensor])


def kind(op: Operator, tensors: Tensors) -> Kind:
    if op.channel_wise(tensors):
        return "channelwise"
    return "aggregating" if op.weighted else "other"
