"""Pruning that asks the planner (Liberis & Lane, "Pex", 2023, section 3.5).

In turns: gates are trained on all channels, and drawn to zero where the plan has its bottleneck;
the weakest channels there go until the network needs a share less; the planner says where the
bottleneck is now, with the smaller network's own schedule. The paper builds on differentiable
pruning (Liberis & Lane 2021) and gives no more of it than this; how gates, weights and bytes are
weighed is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.importers.float_graph import FloatGraph
from pipeline.pruning.channels import ChannelPruning
from pipeline.pruning.couplings import Couplings, Group, Mask, couplings
from pipeline.pruning.cut import cut
from pipeline.pruning.planner import Needs
from pipeline.pruning.savings import savings
from pipeline.pruning.shares import Scores, strength
from pipeline.pruning.work import Work

BITE = 0.25
"""Of what a group would have to lose if it were alone: lost before the planner is asked again."""


@dataclass(frozen=True)
class Pex(ChannelPruning):
    """
    Attributes:
        gate_epochs: of ``epochs``, how many train gates, a step of pruning after each; the last
            epoch never does.
        penalty: the slope that draws the gates of the bottleneck's channels to zero.
    """

    gate_epochs: int = 4
    penalty: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gate_epochs < 0 or self.penalty < 0:
            raise ThimbleError(
                f"prune.gate_epochs={self.gate_epochs} and prune.penalty={self.penalty:g} must be "
                "at least 0"
            )
        if not self.limits:
            raise ThimbleError(
                "prune=pex needs a limit: prune.pmu_bytes, weight_bytes, macs or latency_us"
            )

    def choose(self, network: FloatGraph, work: Work) -> FloatGraph:
        needs = work.ask(network)
        work.note(needs)
        first = self.over(needs)
        steps = max(0, min(self.gate_epochs, self.epochs - 1))
        for step in range(1, max(1, steps) + 1):
            if self.over(needs) <= 1:
                break
            found = couplings(network)
            if steps:
                aimed = dict.fromkeys(self.bottleneck(found, needs), self.penalty)
                found = couplings(work.gated(found, 1, aimed))
            target = first ** (1 - step / max(1, steps))
            network, needs = self.shrunk(found, needs, target, work)
            work.note(needs)
        return network

    def bottleneck(self, found: Couplings, needs: Needs) -> list[int]:
        saved = self.savings(found, found.everything(), needs)
        return [unit for group, bytes_ in saved.items() if bytes_ > 0 for unit in group.units]

    def shrunk(
        self, found: Couplings, needs: Needs, target: float, work: Work
    ) -> tuple[FloatGraph, Needs]:
        """Without the weakest channels of the bottleneck, until the worst limit is exceeded by
        ``target`` at most, or nothing there can go; ``needs`` is of the graph of ``found``."""
        scores, kept, network = strength(found), found.everything(), found.graph
        while (over := self.over(needs)) > target:
            chosen = self.weakest(found, kept, needs, scores, 1 - target / over)
            if chosen is None:
                break
            kept[chosen] = False
            network = cut(found, kept)
            needs = work.ask(network)
        return network, needs

    def weakest(
        self, found: Couplings, kept: Mask, needs: Needs, scores: Scores, share: float
    ) -> list[int] | None:
        """Units to drop: of the group that loses least of its strength for what is saved."""
        best, cheapest = None, np.inf
        for group, saved in self.savings(found, kept, needs).items():
            alive = [unit for unit in group.units if kept[unit]]
            order = sorted(alive, key=lambda unit: (scores[unit], unit))
            drop = order[: max(1, int(len(alive) * share * BITE))]
            fewer = kept.copy()
            fewer[drop] = False
            if saved <= 0 or len(drop) == len(alive) or not found.allows(fewer):
                continue
            total = float(scores[list(group.units)].sum()) or 1.0
            price = float(scores[drop].sum()) / total / (saved * len(drop))
            if price < cheapest:
                best, cheapest = drop, price
        return best

    def savings(self, found: Couplings, kept: Mask, needs: Needs) -> dict[Group, float]:
        """Of the limit that is exceeded most."""
        worst = max(self.limits, key=lambda name: needs.amounts[name] / self.limits[name])
        return savings(found, kept, needs, worst)
