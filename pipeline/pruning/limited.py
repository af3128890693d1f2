"""Hold what all methods of pruning by channels are given: limits, epochs, how they train."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipeline.budget import limits, times_over
from pipeline.errors import ThimbleError
from pipeline.pruning.method import Pruning
from pipeline.pruning.planner import Needs, Planner
from pipeline.training.augment import Distorting


@dataclass(frozen=True)
class Limited(Distorting, Pruning):
    """
    Attributes:
        pmu_bytes, weight_bytes, macs, latency_us: limit on the plan that ``strategy`` makes for
            ``hardware``; 0: none.
        epochs: epochs of all training here; the one best on the validation images counts. 0: none.
        rate: the learning rate's greatest value; 0 is 0.05.
        label_share: share of the labels in the loss; the rest is learned from the outputs of the
            unpruned network, divided by ``temperature``.
        temperature: see ``label_share``.
        batch: images a step.
        momentum, decay: of the optimizer; decay of layers' weights alone.
        images: training images used; 0 is all.
        strategy, hardware, passes: taken from the rest of the config; not to be set here.
    """

    pmu_bytes: int = 0
    weight_bytes: int = 0
    macs: int = 0
    latency_us: float = 0.0
    epochs: int = 8
    rate: float = 0.0
    batch: int = 128
    momentum: float = 0.9
    decay: float = 5e-4
    images: int = 0
    label_share: float = 1.0
    temperature: float = 2.0
    strategy: Mapping[str, Any] = field(default_factory=dict)
    hardware: Mapping[str, Any] = field(default_factory=dict)
    passes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.limits  # noqa: B018 - refuses negative ones
        if self.epochs < 0 or self.batch < 1 or self.images < 0 or self.rate < 0:
            raise ThimbleError(
                f"prune.epochs={self.epochs}, prune.images={self.images} and prune.rate="
                f"{self.rate:g} must be at least 0, prune.batch={self.batch} at least 1"
            )
        if not 0 <= self.label_share <= 1 or self.temperature <= 0:
            raise ThimbleError(
                f"prune.label_share={self.label_share:g} must be between 0 and 1, "
                f"prune.temperature={self.temperature:g} above 0"
            )

    @cached_property
    def limits(self) -> dict[str, float]:
        return limits(vars(self))

    @cached_property
    def planner(self) -> Planner:
        return Planner.of(self.strategy, self.hardware, self.passes)

    def over(self, needs: Needs) -> float:
        """Say by what factor the worst limit is exceeded."""
        return times_over(needs.amounts, self.limits)
