"""Partial execution along channels (Liberis & Lane, "Pex", 2023): no operator runs twice, and what
would be the largest tensors never exist whole.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.search.channels.search import Search
from pipeline.search.moves.channels import ByChannels
from pipeline.strategies.base import ANY, Strategy


@dataclass(frozen=True)
class Partial(Strategy):
    """
    Attributes:
        search: ``pex`` is Algorithm 1 as published; ``exact`` finds the least peak of all
            sequences of its rules, and with it the fewest accumulating layers.
        accumulator_bits: of an element of a tensor that is accumulated in a loop: 8, 16 or 32.
        channels: computed at once in every loop; 0: in each as many as don't raise the peak.
    """

    name: ClassVar[str] = "partial"
    glance_macs: ClassVar[int] = ANY
    search: Search = "exact"
    accumulator_bits: Literal[8, 16, 32] = 32
    channels: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.choose("search", ("pex", "exact"))
        self.choose("accumulator_bits", (8, 16, 32))
        if not isinstance(self.channels, int) or self.channels < 0:
            raise ThimbleError(
                f"strategy.channels={self.channels}: how many channels a loop computes at once, or "
                "0 for as many as don't raise the peak"
            )

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        return self.move.plan(graph, hardware)

    @property
    def move(self) -> ByChannels:
        return ByChannels(self.search, self.accumulator_bits, self.channels)
