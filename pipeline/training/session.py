"""Phases on one data set, each with its checkpoint, epochs numbered through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from torch import Tensor, nn

from pipeline.training.ahead import one_ahead
from pipeline.training.augment import Distortion
from pipeline.training.checkpoint import Checkpoint, fingerprint
from pipeline.training.environment import Run
from pipeline.training.examples import Examples
from pipeline.training.loop import Phase, Row
from pipeline.training.progress import Reporter, reporting


@dataclass
class Session:
    """State that the phases of one training share.

    Attributes:
        batches: from an epoch's number to its shuffled images and labels.
        validation: pooled images and labels that epochs are selected by.
        key: tells this training's checkpoints from any other's.
        batch: images a step.
        rows: of all epochs so far.
    """

    batches: Callable[[int], tuple[Tensor, Tensor]]
    validation: tuple[Tensor, Tensor]
    run: Run
    key: str
    batch: int
    reporter: Reporter
    rows: list[Row] = field(default_factory=list)

    def phase(self, name: str, network: nn.Module, epochs: int, rate: float) -> None:
        """Train ``network`` (pooled images to logits) further; it is left in its best state."""
        if epochs:
            self.train(Phase(name, len(self.rows), epochs, rate, self.batch), network)

    def train(self, phase: Phase, network: nn.Module) -> None:
        checkpoint = Checkpoint(self.run.checkpoints, fingerprint(self.key, phase))
        self.rows += phase.run(network, self.batches, self.validation, checkpoint, self.reporter)


@contextmanager
def session(
    pool: nn.Module,
    train: Examples,
    validation: Examples,
    distortion: Distortion,
    run: Run,
    *,
    key: str,
    batch: int,
    epochs: int,
) -> Iterator[Session]:
    """Yield a session of ``epochs`` in all phases together; progress is shown while it is open."""

    def images(epoch: int) -> tuple[Tensor, Tensor]:
        return train.epoch(pool, distortion, run, epoch)

    held = validation.pooled(pool), validation.labels
    ahead = one_ahead(images, epochs) if run.threads > 1 else nullcontext(images)
    with reporting(epochs) as reporter, ahead as batches:
        yield Session(batches, held, run, key, batch, reporter)
