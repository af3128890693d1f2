"""Whole tensors, one operator after the other, as inference engines do it; alias ``naive``."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.search.moves.whole import one_by_one
from pipeline.strategies.base import ANY, Strategy


@dataclass(frozen=True)
class Ordinary(Strategy):
    """For any graph. ``objective``: with ``memory`` kernels that trade flash and scratch for speed
    are left out; with the others they run what they are faster at, as far as both suffice.

    Attributes:
        preserve_input: nothing is written over the input, so that it need not be given anew.
    """

    name: ClassVar[str] = "ordinary"
    quick_plan_macs: ClassVar[int] = ANY
    preserve_input: bool = False

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        fast = self.objective != "memory"
        return one_by_one(graph, hardware, keep_input=self.preserve_input, fast=fast)
