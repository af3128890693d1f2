"""One phase of training with selection by validation; may be killed and resumed at any moment."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from pipeline.errors import ThimbleError
from pipeline.training.checkpoint import Checkpoint
from pipeline.training.examples import accuracy
from pipeline.training.progress import Reporter

WARM_UP = 0.2
"""The share of a phase in which the learning rate rises."""

WHERE_DIVERGED = {
    "float": "lower train.float_rate",
    "quantized": "lower train.quantized_rate",
    "frozen": "lower train.frozen_rate",
    "teacher": "use train=quick",
    "gates": "lower prune.rate",
    "tune": "lower prune.rate",
    "tune-frozen": "lower prune.rate",
}
"""Advice on a phase that diverges."""


@dataclass(frozen=True)
class Row:
    """One line of ``training.csv``: an epoch's mean loss and the accuracy after it."""

    epoch: int
    phase: str
    loss: float
    validation_accuracy: float


@dataclass
class Place:
    """``epoch`` comes next; ``best`` is the state the phase would hand on now."""

    epoch: int = 0
    best_accuracy: float = -1.0
    best: dict[str, Tensor] = field(default_factory=dict)
    rows: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Phase:
    """``epochs`` of Adam, ``batch`` images a step; ``first`` epochs of other phases went before."""

    name: str
    first: int
    epochs: int
    learning_rate: float
    batch: int

    def rate(self, share: float) -> float:
        """One cycle (Smith 2018) at ``share`` of the phase: a cosine up, then one down to 0."""
        rising = share < WARM_UP
        height = share / WARM_UP if rising else (1 - share) / (1 - WARM_UP)
        return self.learning_rate * (1 - math.cos(math.pi * height)) / 2

    def share(self, epoch: int, step: int, steps: int) -> float:
        """Return how much of the phase is over in the middle of a step, of ``steps`` an epoch."""
        return (epoch * steps + step + 0.5) / (self.epochs * steps)

    @property
    def mend(self) -> str:
        return WHERE_DIVERGED[self.name]

    def check(self, loss: float, epoch: int, finite: bool = True) -> None:
        """Raises ThimbleError when ``epoch``, counted from 0, ended with a ``loss`` or weights that
        are not ``finite``: nothing that follows mends them."""
        if not (math.isfinite(loss) and finite):
            raise ThimbleError(
                f"training diverged in epoch {epoch + 1} of {self.epochs} ({self.name}): the loss "
                f"is {loss:g} at a learning rate of up to {self.learning_rate:g}; {self.mend}"
            )

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters)

    def loss(self, network: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of one batch; a scalar."""
        return cross_entropy(network(images), labels)

    def run(
        self,
        network: nn.Module,
        batches: Callable[[int], tuple[Tensor, Tensor]],
        validation: tuple[Tensor, Tensor],
        checkpoint: Checkpoint,
        reporter: Reporter,
    ) -> list[Row]:
        """Train what ``network`` lets be trained; it is left in its best state.

        Args:
            network: from pooled images (n, c, h, w) to logits (n, classes).
            batches: from an epoch's number to its shuffled images and labels, always the same.
            validation: pooled images and labels; the epoch best on them is kept.
            checkpoint: written after every epoch; a phase that was finished is not trained again.
            reporter: told of every epoch.
        """
        optimizer = self.optimizer([p for p in network.parameters() if p.requires_grad])
        place = Place()
        if (state := checkpoint.load()) is not None:
            network.load_state_dict(state["network"])
            optimizer.load_state_dict(state["optimizer"])
            place = Place(**state["place"])
        while place.epoch < self.epochs:
            images, labels = batches(self.first + place.epoch)
            loss = self.epoch(network, optimizer, images, labels, place.epoch)
            self.check(loss, place.epoch, finite(network.parameters()))
            place.epoch += 1
            network.eval()
            score = accuracy(network, *validation)
            if score >= place.best_accuracy:
                place.best_accuracy = score
                place.best = {k: v.detach().clone() for k, v in network.state_dict().items()}
            row = Row(self.first + place.epoch, self.name, loss, score)
            place.rows.append(asdict(row))
            checkpoint.save(
                {
                    "network": network.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "place": asdict(place),
                }
            )
            reporter.epoch(row.epoch, self.name, score)
        if place.best:
            network.load_state_dict(place.best)
        return [Row(**row) for row in place.rows]

    def epoch(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        images: Tensor,
        labels: Tensor,
        index: int,
    ) -> float:
        """Whole batches only, unless there is just an incomplete one; returns the mean loss."""
        steps = max(1, len(images) // self.batch)
        total = 0.0
        network.train()
        for step in range(steps):
            part = slice(step * self.batch, (step + 1) * self.batch)
            for group in optimizer.param_groups:
                group["lr"] = self.rate(self.share(index, step, steps))
            optimizer.zero_grad()
            loss = self.loss(network, images[part], labels[part])
            torch.autograd.backward(loss)
            optimizer.step()
            total += float(loss.detach())
        return total / steps


def finite(parameters: Iterable[Tensor]) -> bool:
    return all(bool(torch.isfinite(each.detach()).all()) for each in parameters)


def to_csv(rows: Sequence[Row]) -> str:
    """``training.csv``; no times, so that equal trainings give equal bytes."""
    lines = [
        f"{row.epoch},{row.phase},{row.loss:.6f},{row.validation_accuracy:.6f}" for row in rows
    ]
    return "\n".join(["epoch,phase,loss,validation_accuracy", *lines]) + "\n"
