"""Uniform scaling: every layer keeps the same share of its channels, its strongest ones."""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.budget import enough
from pipeline.errors import ThimbleError
from pipeline.importers.float_graph import FloatGraph
from pipeline.pruning.channels import ChannelPruning
from pipeline.pruning.couplings import Couplings, Mask, couplings
from pipeline.pruning.cut import cut
from pipeline.pruning.shares import Scores, completed, strength, strongest
from pipeline.pruning.work import Work

HALVINGS = 9
"""Halvings of the interval that the share is searched in: to a 512th."""

Choice = Callable[[Couplings, Scores, float], Mask]
"""The units to keep of a share (0…1) of all."""


@dataclass(frozen=True)
class Width(ChannelPruning):
    """
    Attributes:
        width: share of its channels that each layer keeps; 0: the greatest that limits allow.
    """

    width: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.width <= 1:
            raise ThimbleError(f"prune.width={self.width:g} must be more than 0 and at most 1")
        enough({"name": "width", **vars(self)})

    def choose(self, network: FloatGraph, work: Work) -> FloatGraph:
        if self.width:
            found = couplings(network)
            return work.cut(found, uniform(found, strength(found), self.width))
        return widest(self, network, work, uniform)


def uniform(found: Couplings, scores: Scores, share: float) -> Mask:
    kept = ~found.everything()
    for group in found.groups:
        kept[strongest(scores, group.units, round(share * len(group.units)))] = True
    return completed(found, kept, scores)


def widest(method: ChannelPruning, network: FloatGraph, work: Work, choice: Choice) -> FloatGraph:
    """Return the network with the greatest share that keeps to the limits, found by halving; the
    least there is where none does."""
    found = couplings(network)
    scores = strength(found)

    def needs(share: float) -> tuple[float, Mask]:
        kept = choice(found, scores, share)
        needed = work.ask(cut(found, kept))
        work.note(needed)
        return method.over(needed), kept

    over, best = needs(1.0)
    if over <= 1:
        return work.cut(found, best)
    low, high = 0.0, 1.0
    over, best = needs(low)
    if over > 1:
        return work.cut(found, best)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        over, kept = needs(middle)
        if over <= 1:
            low, best = middle, kept
        else:
            high = middle
    return work.cut(found, best)
