"""The baseline of Pex: the first layers patch by patch, what overlaps computed again (MCUNetV2)."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.search.moves.patches import in_patches
from pipeline.strategies.base import Strategy


@dataclass(frozen=True)
class Patch(Strategy):
    """
    Attributes:
        rows, columns: of patches.
        until: the tensor at which the part in patches ends; empty: where the peak is least.
    """

    name: ClassVar[str] = "patch"
    quick_plan_macs: ClassVar[int] = 50_000_000
    rows: int = 4
    columns: int = 4
    until: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.rows, self.columns) < 1:
            raise ThimbleError(
                f"strategy.rows={self.rows} strategy.columns={self.columns}: at least one patch"
            )

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        return in_patches(graph, hardware, (self.rows, self.columns), self.until)
