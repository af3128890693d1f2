"""Simulation of rounded accumulators (docs/decisions/0010) while a network is trained.

A layer that a loop accumulates adds the contributions of some input channels at a time. Each is
rounded to a multiple of a step, and the sum of them saturates. On the way back rounding counts as
the identity, and what has saturated has no gradient, as for activations (``int8_rounded``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import DType
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.plan.calibrate import step_for
from pipeline.quantize.int8_rounded import Rounded, RoundedLayer
from pipeline.schedules.draft import step_before_calibration
from pipeline.schedules.lower import needed
from pipeline.search.moves.channels import loops
from pipeline.search.view.whole import View
from pipeline.strategies.partial import Partial


@dataclass(frozen=True)
class Accumulator:
    """``bits`` of it, and how many input channels are added ``at_once``."""

    bits: int
    at_once: int

    @property
    def limits(self) -> tuple[int, int]:
        width = DType(self.bits, signed=True)
        return width.minimum, width.maximum


def accumulators(graph: Graph, strategy: Partial) -> dict[str, Accumulator]:
    """By the names of their tensors, those of ``strategy`` for ``graph`` that round."""
    view = View.of(graph.tensors, graph.inputs, needed(graph), *graph.outputs)
    _, schedule = strategy.proposed(view)
    bits = strategy.accumulator_bits
    return {
        tensor: Accumulator(bits, loop.at_once)
        for loop in loops(schedule)
        for tensor in loop.accumulated
        if step_before_calibration(tensor, graph, bits) == 0
    }


class Accumulating(Rounded):
    """``source`` with int8's roundings and those of ``accumulators``, by the names of tensors."""

    def __init__(
        self,
        source: FloatGraph,
        affines: Mapping[str, Affine],
        accumulators: Mapping[str, Accumulator],
    ) -> None:
        self.accumulators = accumulators
        super().__init__(source, affines)

    def layer(self, node: nodes.Weighted) -> RoundedLayer:
        if node.output in self.accumulators:
            return AccumulatedLayer(node, self.affines, self.accumulators[node.output])
        return super().layer(node)

    @torch.no_grad()
    def settle(self, frames: torch.Tensor) -> None:
        """Calibrate every step, as ``pipeline.plan.calibrate`` will."""
        rounding = [layer for layer in self.layers if isinstance(layer, AccumulatedLayer)]
        for layer in rounding:
            layer.step = 0
        self(frames)
        for layer in rounding:
            layer.step = step_for(layer.largest, layer.accumulator.bits)


class AccumulatedLayer(RoundedLayer):
    """Sums are in units of the integer sum; ``step`` of them are a unit of the accumulator, 0 while
    that is not chosen: then sums are exact, and the ``largest`` is remembered."""

    def __init__(
        self, node: nodes.Weighted, affines: Mapping[str, Affine], accumulator: Accumulator
    ) -> None:
        super().__init__(node, affines)
        self.accumulator = accumulator
        self.step, self.largest = 0, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, bias, steps = self.rounded()
        unit = steps * self.scale_in  # (c_out,), real
        exact = self.source.applied(x, weights, torch.zeros_like(bias))
        with torch.no_grad():
            held = self.held(x, weights, unit)
        if not self.step:
            self.largest = int(held.abs().max())
            return self.source.clipped(exact + bias)
        low, high = self.accumulator.limits
        inside = ((held > low) & (held < high)).to(exact.dtype)
        passed = exact * inside  # what has a gradient
        rounded = passed + (held * self.step * unit - passed).detach()
        return self.source.clipped(rounded + bias)

    def held(self, x: torch.Tensor, weights: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
        """Return what the accumulator holds at the end; while no step is chosen, the greatest
        magnitude that it held."""
        low, high = self.accumulator.limits
        total = torch.zeros(())
        greatest = torch.zeros(())
        for more in self.contributions(x, weights, unit):
            if self.step:
                share = more.div_(self.step)
                share.add_(torch.copysign(torch.tensor(0.5), share)).trunc_()
                total = share.add_(total).clamp_(low, high)
            else:
                total = total + more
                greatest = torch.maximum(greatest, total.abs())
        return total if self.step else greatest

    def contributions(
        self, x: torch.Tensor, weights: torch.Tensor, unit: torch.Tensor
    ) -> Iterator[torch.Tensor]:
        """Yield the sums of one pass after the other, whole numbers; each may be overwritten."""
        none, size = torch.zeros_like(unit), self.accumulator.at_once
        grouped = weights.shape[-1] != x.shape[-1]
        for start in range(0, x.shape[-1], size):
            part = slice(start, start + size)
            if grouped:  # a group may have channels in several passes
                inputs = torch.zeros_like(x)
                inputs[..., part] = x[..., part]
                sums = self.source.applied(inputs, weights, none)
            else:
                sums = self.source.applied(x[..., part], weights[..., part], none)
            yield sums.div(unit).round_()
