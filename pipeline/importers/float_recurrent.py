"""LSTM and GRU of a float graph: whole sequences, and single steps that keep states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.importers.deferred import F, torch
from pipeline.importers.float_graph import Node, Shape
from pipeline.importers.float_nodes import Floats, tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells(Node):
    """(1, steps, features) -> (1, steps, units); see the integer graph's ``Recurrent``: gates,
    their order, and of a single step the states (1, 1, units) behind the first input."""

    weights: Floats
    back: Floats
    bias: Floats
    reverse: bool = False

    gates: ClassVar[str] = "ifgo"

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        (rows, features), units = self.weights.shape, self.back.shape[1]
        known = [(1, shapes[0][1], features), *[(1, 1, units)] * (len(shapes) - 1)]
        if list(shapes) != known or self.back.shape[0] != rows or rows != len(self.gates) * units:
            raise self.refuse(f"weights for {features} features, the input is {list(shapes[0])}")
        return 1, shapes[0][1], units

    def sums(self, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(n, features), (n, units) -> sums of both, each (n, gates, units)."""
        own = F.linear(x, tensor(self.weights, x), tensor(self.bias, x))
        both = own, F.linear(h, tensor(self.back, x))
        return tuple(each.reshape(len(x), len(self.gates), -1) for each in both)

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        x, *states = (each[:, 0] for each in values)
        kept = [each[:, 0] for each in states] or [x.new_zeros(len(x), self.back.shape[1])] * 2
        made, order = list[torch.Tensor](), range(x.shape[1])
        for at in reversed(order) if self.reverse else order:
            kept = self.step(x[:, at], kept)
            made.append(kept[0])
        return torch.stack(made[::-1] if self.reverse else made, 1)[:, None]

    def step(self, x: torch.Tensor, kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Compute what is kept, what it makes first, of what was kept."""
        h, c = kept
        own, was = self.sums(x, h)
        gates = dict(zip(self.gates, (own + was).unbind(1), strict=True))
        if "f" in gates:
            c = gates["f"].sigmoid() * c + gates["i"].sigmoid() * gates["g"].tanh()
        return [gates["o"].sigmoid() * c.tanh(), c] if "o" in gates else [c]


@dataclass(frozen=True, eq=False, kw_only=True)
class Lstm(Cells):
    """A sequence, of all gates."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LstmMemory(Cells):
    """(x, h, c) -> c'"""

    gates: ClassVar[str] = "ifg"


@dataclass(frozen=True, eq=False, kw_only=True)
class LstmHidden(Cells):
    """(x, h, c') -> h'"""

    gates: ClassVar[str] = "o"


@dataclass(frozen=True, eq=False, kw_only=True)
class Gru(Cells):
    """A sequence; ``more`` is added to what n reads of h."""

    more: Floats
    after: bool = True

    gates: ClassVar[str] = "zrn"

    def step(self, x: torch.Tensor, kept: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        h, more = kept[0], tensor(self.more, x)
        own, was = self.sums(x, h)
        z, r = (own + was)[:, :2].sigmoid().unbind(1)
        last = r * (was[:, 2] + more) if self.after else self.sums(x, r * h)[1][:, 2] + more
        n = (own[:, 2] + last).tanh()
        return [n + z * (h - n)]


@dataclass(frozen=True, eq=False, kw_only=True)
class GruStep(Gru):
    """(x, h) -> h'"""
