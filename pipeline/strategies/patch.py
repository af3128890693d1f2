"""The baseline of Pex: the first layers patch by patch, what overlaps computed again (MCUNetV2)."""

from dataclasses import dataclass, replace
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import modelled_cycles
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.lower import Laid, Region, lay, needed, with_room
from pipeline.schedules.patches import Patches
from pipeline.search.moves.patches import least, stages
from pipeline.strategies.base import Strategy


@dataclass(frozen=True)
class Patch(Strategy):
    """
    Attributes:
        rows, columns: of patches.
        until: the tensor at which the part in patches ends; empty: where the peak is least.
    """

    name: ClassVar[str] = "patch"
    glance_macs: ClassVar[int] = 50_000_000
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
        if hardware.streams_input:
            raise ThimbleError(
                f"strategy=patch reads the image again and again; on {hardware.name} it streams "
                "in: try strategy=auto"
            )
        stage, regions = self.regions(graph, hardware)
        each = [replace(r, apart=True) if r == stage else r for r in regions]
        laid = min(
            (self._laid(way, graph, hardware) for way in (regions, each)),
            key=lambda laid: modelled_cycles(laid.plan(self.name), graph, hardware),
        )
        once = sum(op.macs(graph.tensors) for op in stage.operators)
        again = stage.macs(graph) - once
        return laid.plan(
            self.name,
            (
                ("patch_stage_end", stage.end),
                ("patch_stage_overhead_pct", round(100 * again / max(1, once), 2)),
                ("patch_overhead_pct", round(100 * again / max(1, graph.macs), 2)),
            ),
        )

    def _laid(self, regions: list[Region], graph: Graph, hardware: Hardware) -> Laid:
        return with_room(lambda scratch: lay(regions, graph, hardware, scratch=scratch))

    def regions(self, graph: Graph, hardware: Hardware) -> tuple[Patches, list[Region]]:
        """The stage that ends where the whole network's peak is least, then with the least work."""
        operators = needed(graph)
        found = stages(graph, graph.input, operators, (self.rows, self.columns))
        if self.until:
            found = [stage for stage in found if stage.end == self.until]
        if not found:
            where = f"until {self.until}" if self.until else "for any of its first layers"
            raise ThimbleError(
                f"strategy=patch: {graph.name} cannot run in {self.rows}x{self.columns} patches "
                f"{where}: try strategy=auto, or fewer strategy.rows and .columns"
            )
        return least(graph, hardware, found, operators)
