"""Phases on one data set, each with its checkpoint, epochs numbered through."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor, nn

from pipeline.training.augment import Distortion
from pipeline.training.checkpoint import Checkpoint, fingerprint
from pipeline.training.environment import Run
from pipeline.training.examples import Examples
from pipeline.training.loop import Phase, Row
from pipeline.training.progress import Reporter


@dataclass
class Session:
    """What the phases of one training share.

    Attributes:
        pool: makes the network's input from pixels.
        key: tells this training's checkpoints from any other's.
        batch: images a step.
        rows: of all epochs so far.
    """

    pool: nn.Module
    train: Examples
    validation: Examples
    distortion: Distortion
    run: Run
    key: str
    batch: int
    reporter: Reporter
    rows: list[Row] = field(default_factory=list)

    def phase(self, name: str, network: nn.Module, epochs: int, rate: float) -> None:
        """Train ``network`` (pooled images to logits) further; it is left in its best state."""
        if not epochs:
            return
        phase = Phase(name, len(self.rows), epochs, rate, self.batch)
        self.rows += phase.run(
            network,
            self._batches,
            (self.validation.pooled(self.pool), self.validation.labels),
            Checkpoint(self.run.checkpoints, fingerprint(self.key, phase)),
            self.reporter,
        )

    def _batches(self, epoch: int) -> tuple[Tensor, Tensor]:
        return self.train.epoch(self.pool, self.distortion, self.run, epoch)
