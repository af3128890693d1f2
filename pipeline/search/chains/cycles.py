"""How long some items take by what kernels declare, wherever elements come to lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import Form, Part, cycles_of_step, offers
from pipeline.schedules.bounds import Box, Range, all_of, needs
from pipeline.search.chains.items import Item

Kind = tuple[str, Box]
"""Steps of an operator that make as much, as if they were all at the first corner."""


@dataclass(frozen=True)
class Cycles:
    graph: Graph
    hardware: Hardware
    known: dict[Kind, float] = field(default_factory=dict)

    def __call__(self, items: Sequence[Item]) -> float:
        """Infinitely many, where there is no kernel for a step."""
        return sum(times * self._of(kind) for item in items for kind, times in _kinds(item))

    def _of(self, kind: Kind) -> float:
        if kind not in self.known:
            form = self._form(*kind)
            able = offers(form, self.hardware)
            self.known[kind] = cycles_of_step(able[0], form, self.hardware) if able else inf
        return self.known[kind]

    def _form(self, name: str, made: Box) -> Form:
        op, tensors = self.graph.operator(name), self.graph.tensors
        boxes = needs(op, tensors, made) | {op.output: made}
        parts = {
            each: Part(tuple(side.size for side in box), (), tensors[each].dtype.bits, "table")
            for each, box in boxes.items()
            if each not in self.graph.constants
        }
        return Form(op, self.graph, parts)


def _kinds(item: Item) -> Iterator[tuple[Kind, int]]:
    """And how many steps there are of each."""
    sizes, times = np.unique(item.sizes, axis=0, return_counts=True)
    for (number, high, wide), count in zip(sizes.tolist(), times.tolist(), strict=True):
        op = item.flow.operators[number]
        *pixels, channels = all_of(item.flow.tensors[op.output].shape)
        if pixels:
            channels = Range(0, channels.size // item.groups)
            yield (op.name, (Range(0, high), Range(0, wide), channels)), count
        else:
            yield (op.name, (Range(0, wide),)), count
