"""Pruning that asks the planner (Liberis & Lane, "Pex", 2023, section 3.5).

In turns: gates are trained on all channels, and drawn to zero in the layers that will have to be
narrower, by the plans of the network with fewer channels here or there; the weakest channels there
go until the network needs a share less; the planner is asked again, with the smaller network's own
schedule. The paper builds on differentiable pruning (Liberis & Lane 2021) and gives no more of it
than this; how gates, weights and bytes are weighed is ours.
"""

from dataclasses import dataclass

from pipeline.budget import enough
from pipeline.errors import ThimbleError
from pipeline.importers.float_graph import FloatGraph
from pipeline.pruning.channels import ChannelPruning
from pipeline.pruning.couplings import Couplings, Group, Mask, couplings
from pipeline.pruning.narrowing import Narrowing
from pipeline.pruning.planner import Needs
from pipeline.pruning.savings import savings
from pipeline.pruning.shares import strength
from pipeline.pruning.work import Work


@dataclass(frozen=True)
class Pex(ChannelPruning):
    """
    Attributes:
        gate_epochs: how many of ``epochs`` train gates, with a step of pruning after each; the
            last epoch never does.
        penalty: strength of the L1 penalty that draws the bottleneck's gates to zero.
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
        enough({"name": "pex", **vars(self)})

    def choose(self, network: FloatGraph, work: Work) -> FloatGraph:
        needs = work.ask(network)
        work.note(needs)
        first = self.over(needs)
        steps = max(0, min(self.gate_epochs, self.epochs - 1))
        narrow = set[str]()
        for step in range(1, max(1, steps) + 1):
            if self.over(needs) <= 1:
                break
            found = couplings(network)
            if steps:
                narrow = narrow or self.narrow(found, needs, work)
                aimed = [u for g in found.groups if narrow & {*g.layers} for u in g.units]
                found = couplings(work.gated(found, 1, dict.fromkeys(aimed, self.penalty)))
            target = first ** (1 - step / max(1, steps))
            kept, needs = self.narrowing(found, work).within(needs, target)
            network = work.cut(found, kept)
            work.note(needs)
        return network

    def narrow(self, found: Couplings, needs: Needs, work: Work) -> set[str]:
        """The layers that would have to be narrower, were the present strengths the last word."""
        kept, _ = self.narrowing(found, work).within(needs, 1.0)
        groups = [each for each in found.groups if not kept[list(each.units)].all()]
        return {name for group in groups for name in group.layers}

    def narrowing(self, found: Couplings, work: Work) -> Narrowing:
        return Narrowing(found, strength(found), work.ask, work.estimate, self.over, self.savings)

    def savings(
        self, found: Couplings, kept: Mask, needs: Needs
    ) -> tuple[dict[Group, float], bool]:
        """Return what each group saves of the amount that exceeds its limit most, as shares of it,
        and whether that is no more than a hint, as what is live at the peak is."""
        worst = max(self.limits, key=lambda name: needs.amounts[name] / self.limits[name])
        saved = savings(found, kept, needs, worst)
        shares = {group: each / needs.amounts[worst] for group, each in saved.items()}
        return shares, worst == "pmu_bytes"
