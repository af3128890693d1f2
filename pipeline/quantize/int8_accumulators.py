"""int8, tuned with the accumulators of partial execution: they round as the plan's will."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.lower import lower
from pipeline.quantize.accumulators import Accumulating, accumulators
from pipeline.quantize.int8_qat import Int8Qat
from pipeline.quantize.int8_rounded import Rounded
from pipeline.search.channels.search import Search
from pipeline.strategies.partial import Partial


@dataclass(frozen=True)
class Int8Accumulators(Int8Qat):
    """Int8Qat for strategy=partial. What is set here has to be the strategy's.

    Attributes:
        accumulator_bits, search, channels: those of ``strategy=partial``.
    """

    accumulator_bits: Literal[8, 16, 32] = 8
    search: Search = "exact"
    channels: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.strategy  # noqa: B018 - refuses what it does not know

    @property
    def strategy(self) -> Partial:
        return Partial(
            search=self.search, accumulator_bits=self.accumulator_bits, channels=self.channels
        )

    def simulated(self, graph: FloatGraph, affines: Mapping[str, Affine]) -> Rounded:
        found = accumulators(lower(graph, affines), self.strategy)
        return Accumulating(graph, affines, found)
