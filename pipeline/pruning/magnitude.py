"""The channels with the smallest weights go, wherever they are.

A channel's magnitude is the L1 norm of its weights (Li et al. 2017, "Pruning filters for efficient
ConvNets") over the mean of its layer, so that layers can be compared.
"""

from dataclasses import dataclass

from pipeline.artifacts import Arrays
from pipeline.datasets.dataset import seen
from pipeline.errors import ThimbleError
from pipeline.importers.float_graph import FloatGraph
from pipeline.models.network import Model
from pipeline.pruning.chain import Chain
from pipeline.pruning.channels import ChannelPruning
from pipeline.pruning.couplings import Couplings, Mask, couplings
from pipeline.pruning.method import Pruned
from pipeline.pruning.shares import Scores, completed, strength, strongest
from pipeline.pruning.width import uniform, widest
from pipeline.pruning.work import Work
from pipeline.training.environment import Run


@dataclass(frozen=True)
class Magnitude(ChannelPruning):
    """
    Attributes:
        ratio: share of every layer's channels that goes, where there are no limits; with limits
            the weakest of the whole network go.
        rate: the learning rate's greatest value; 0 is 0.05, or 0.003 for a chain in 4 bits.
    """

    ratio: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.ratio < 1:
            raise ThimbleError(f"prune.ratio={self.ratio:g} must be at least 0 and less than 1")
        super().__post_init__()

    def prune(self, model: Model, weights: Arrays, data: Arrays, run: Run) -> Pruned:
        if not any(name.endswith(".weight_log2") for name in weights):
            return super().prune(model, weights, data, run)
        if self.limits:
            raise ThimbleError(
                f"prune.{next(iter(self.limits))}: a chain for quantize=int4 is pruned by "
                "prune.ratio alone; leave the limit out"
            )
        chain = Chain(self.ratio, self.epochs, self.rate, self.batch, self.images, self.distortion)
        return chain.prune(model, weights, seen(data), run)

    def choose(self, network: FloatGraph, work: Work) -> FloatGraph:
        if not self.limits:
            found = couplings(network)
            return work.cut(found, uniform(found, strength(found), 1 - self.ratio))
        return widest(self, network, work, weakest_last)


def weakest_last(found: Couplings, scores: Scores, share: float) -> Mask:
    units = [unit for group in found.groups for unit in group.units]
    kept = ~found.everything()
    kept[strongest(scores, units, round(share * len(units)))] = True
    return completed(found, kept, scores)
