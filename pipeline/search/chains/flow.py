"""Operators in their order: what is live before each, and what dies while some of them run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pipeline.graph.operator import Operator, Tensors

if TYPE_CHECKING:
    from pipeline.search.chains.items import Item

AT_END = 1 << 30


class Span(NamedTuple):
    """Operators ``first`` to ``stop`` (exclusive) of a flow."""

    first: int
    stop: int


@dataclass(frozen=True)
class Flow:
    """
    Attributes:
        start: the tensor that is there at first; ``end``: held at last.
        items: that were made of it.
    """

    operators: tuple[Operator, ...]
    tensors: Tensors
    start: str
    end: str
    items: dict[Hashable, Item] = field(default_factory=dict, compare=False)

    @cached_property
    def made(self) -> dict[str, int]:
        """The operator that makes each tensor; -1 of the first."""
        return {self.start: -1} | {op.output: n for n, op in enumerate(self.operators)}

    @cached_property
    def read_last(self) -> dict[str, int]:
        """The operator that reads each tensor last."""
        found = {name: n for n, op in enumerate(self.operators) for name in op.inputs}
        return {name: found.get(name, made) for name, made in self.made.items()} | {
            self.end: AT_END
        }

    def live(self, number: int) -> list[str]:
        """Tensors that are there before operator ``number``, and needed."""
        return [name for name, made in self.made.items() if made < number <= self.read_last[name]]

    def nibbles(self, number: int) -> int:
        """Of what is live, of any shape."""
        live = [self.tensors[name] for name in self.live(number)]
        return sum(tensor.size * max(1, tensor.dtype.bits // 4) for tensor in live)

    def dying(self, span: Span) -> list[str]:
        """Tensors that are there before ``span`` or made in it, and not needed after it."""
        return [
            name
            for name, made in self.made.items()
            if made < span.stop and span.first <= self.read_last[name] < span.stop
        ]

    def of(self, span: Span) -> Sequence[Operator]:
        return self.operators[span.first : span.stop]

    def spans(self) -> list[Span]:
        """Parts between which one tensor is live: a layer, a block with branches, or a depthwise
        convolution with the 1 × 1 ones around it."""
        ends = [n for n in range(len(self.operators) + 1) if len(self.live(n)) == 1]
        ends = sorted({0, *ends, len(self.operators)})
        found = list[Span]()
        for first, stop in pairwise(ends):
            before = found[-1] if found else Span(0, 0)
            if self._goes_on(before, Span(first, stop)):
                found[-1] = Span(before.first, stop)
            else:
                found.append(Span(first, stop))
        return found

    @property
    def least_nibbles(self) -> int:
        """Of what is live between parts: in place they need no less."""
        return max((self.nibbles(end) for span in self.spans() for end in span), default=0)

    def _goes_on(self, before: Span, span: Span) -> bool:
        """Whether a layer belongs to what is before it: a depthwise one to a 1 × 1, and that to a
        depthwise one."""
        op = self.operators[span.first]
        if before.first == before.stop or span.stop - span.first > 1:
            return False
        last = self.operators[before.stop - 1]
        layers = [each for each in self.of(before) if self._depthwise(each)]
        if self._depthwise(op):
            return before.stop - before.first == 1 and self._pointwise(last)
        return self._pointwise(op) and self._depthwise(last) and len(layers) == 1

    def _depthwise(self, op: Operator) -> bool:
        return op.slides and op.depthwise(self.tensors)

    def _pointwise(self, op: Operator) -> bool:
        windows = op.terms(self.tensors)[0].operands[0].windows[:2]
        return op.mixes_channels(self.tensors) and all(
            window.axis is not None and window.count == 1 for window in windows
        )
