"""Many trials of one small network, trained side by side; the weaker are given up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from pipeline.models.network import Model
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training.checkpoint import Checkpoint
from pipeline.training.environment import Run
from pipeline.training.loop import Phase, Row
from pipeline.training.paper_engine import Engine, Epoch
from pipeline.training.paper_images import SoftLabelled
from pipeline.training.paper_kernel import F32, FLOAT, FROZEN, QUANTIZED, U32, Batches
from pipeline.training.paper_polish import sweep
from pipeline.training.paper_progress import Steps
from pipeline.training.paper_rows import to_network, to_row

MODES = {
    "float_probe": FLOAT,
    "quantized_probe": QUANTIZED,
    "float": FLOAT,
    "quantized": QUANTIZED,
    "frozen": FROZEN,
}
EVALUATE_EVERY = 5
"""Epochs; the first and the last of a phase are evaluated, too. It takes half an epoch."""
POLISHED = 20_000
"""Images that say how each integer should change; as many others have to agree."""


ROWS = ("row", "float_row")


@dataclass
class Trial:
    """``number`` names its random numbers; ``float_row`` is the row before it was last quantized.

    ``score`` and ``loss`` are accuracy and mean cross-entropy on all validation images: a trial is
    kept or given up by its loss, which tells two networks apart sooner, in the end by its score.
    """

    number: int
    row: F32
    float_row: F32
    score: float = -1.0
    loss: float = math.inf
    validation_accuracy: float = 0.0

    def state(self) -> dict[str, Any]:
        return vars(self) | {name: torch.from_numpy(getattr(self, name)) for name in ROWS}

    @classmethod
    def of(cls, state: dict[str, Any]) -> Trial:
        return cls(**(state | {name: state[name].numpy() for name in ROWS}))


def fresh(model: Model, run: Run, number: int, orthogonal: bool = True) -> Trial:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.generator(number).initial_seed())
        network = model.chain()
        for layer in () if orthogonal else network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                layer.reset_parameters()
        row = to_row(QuantizedNetwork(network))
    return Trial(number, row, row)


@dataclass
class Trials:
    """The trials that are left, and what they learn from.

    Attributes:
        epoch: images a trial sees in an epoch, drawn from ``batches`` without repetition.
        validation: labelled images; the first ``clean`` are undistorted.
    """

    model: Model
    engine: Engine
    run: Run
    _: KW_ONLY
    batches: Batches
    epoch: int
    validation: SoftLabelled
    clean: int
    steps: Steps
    contenders: list[Trial]
    rows: list[Row] = field(default_factory=list)

    def phase(
        self, name: str, epochs: int, rate: float, batch: int, images: U32, keep: Checkpoint
    ) -> None:
        """Train every trial by ``epochs`` on ``images`` (indices); the best come first then."""
        phase = Phase(name, len(self.rows), epochs, rate, batch)
        moments = [np.zeros((2, len(t.row)), np.float32) for t in self.contenders]
        done = 0
        if (state := keep.load()) is not None:
            self.contenders = [Trial.of(each) for each in state["contenders"]]
            moments = [each.numpy().copy() for each in state["moments"]]
            done = state["done"]
            self.rows += [Row(**row) for row in state["rows"]]
        else:
            self._enter(MODES[name])
        while done < epochs:
            losses = self._epoch(phase, done, images, moments)
            done += 1
            if done in (1, epochs) or done % EVALUATE_EVERY == 0:
                self._judge(MODES[name])
            best = max(self.contenders, key=lambda trial: trial.score)
            self.rows.append(
                Row(phase.first + done, name, float(np.mean(losses)), best.validation_accuracy)
            )
            self._save(keep, moments, done, self.rows[phase.first :])
            text = f"loss {np.mean(losses):.4f}, best of {len(self.contenders)} trials: "
            text += f"score {best.score:.3%}, validation {best.validation_accuracy:.2%}"
            self.steps.done(name, done, epochs, text)
        last = name == "frozen"
        self.contenders.sort(key=lambda trial: -trial.score if last else trial.loss)

    def polish(self, sweeps: int, images: U32, keep: Checkpoint) -> None:
        """Sweeps over the integers of the best trial, each on other ``images`` (indices); of what
        they leave, and of what was there before, the best score stays."""
        best = self.contenders[0]
        row, done, first = best.row, 0, len(self.rows)
        if (state := keep.load()) is not None:
            best = Trial.of(state["best"])
            row, done = state["row"].numpy().copy(), state["done"]
            self.rows += [Row(**each) for each in state["rows"]]
        while done < sweeps:
            seed = self.run.generator(best.number, first + done).initial_seed()
            drawn = np.random.default_rng(seed).permutation(images)[: 2 * POLISHED]
            halves = (self.batches.of(np.sort(each)) for each in (drawn[::2], drawn[1::2]))
            row, loss, changes = sweep(row, self.model, self.engine, *halves)
            self.contenders, done = [replace(best, row=row)], done + 1
            self._judge(FROZEN)
            best = max([best, *self.contenders], key=lambda trial: trial.score)
            self.rows.append(Row(first + done, "polished", loss, best.validation_accuracy))
            keep.save(
                {
                    "best": best.state(),
                    "row": torch.from_numpy(row.copy()),
                    "done": done,
                    "rows": [vars(each) for each in self.rows[first:]],
                }
            )
            text = f"loss {loss:.4f}, {changes} integers changed, score {best.score:.3%}"
            self.steps.done("polished", done, sweeps, text)
        self.contenders = [best]

    def _enter(self, mode: int) -> None:
        if mode == QUANTIZED:
            images = torch.from_numpy(self.batches.images[:2_000]).permute(0, 3, 1, 2) / 16
        for trial in self.contenders:
            network = to_network(self.model, trial.float_row if mode == FLOAT else trial.row)
            if mode == QUANTIZED:
                trial.float_row = trial.row.copy()
                network.calibrate(images)
            elif mode == FROZEN:
                network.freeze()
            trial.row = to_row(network)

    def _epoch(self, phase: Phase, done: int, images: U32, moments: Sequence[F32]) -> list[float]:
        steps = max(1, min(self.epoch, len(images)) // phase.batch)
        seeds = [
            self.run.generator(trial.number, phase.first + done).initial_seed()
            for trial in self.contenders
        ]
        shares = (done + (np.arange(steps) + 0.5) / steps) / phase.epochs
        rates = np.array([phase.rate(share) for share in shares], np.float32)
        epoch = Epoch(MODES[phase.name], done * steps, images, seeds, rates, phase.batch)
        rows = [trial.row for trial in self.contenders]
        return self.engine.train(rows, moments, self.batches, epoch)

    def _judge(self, mode: int) -> None:
        rows = [trial.row for trial in self.contenders]
        labels = torch.from_numpy(self.validation.labels).long()
        found = self.engine.logits(rows, mode, self.validation.images)
        for trial, logits in zip(self.contenders, found, strict=True):
            right = logits.argmax(1) == self.validation.labels
            trial.loss = float(cross_entropy(torch.from_numpy(logits), labels))
            trial.validation_accuracy = float(right[: self.clean].mean())
            trial.score = float(right.mean())

    def _save(
        self, keep: Checkpoint, moments: Sequence[F32], done: int, rows: Sequence[Row]
    ) -> None:
        keep.save(
            {
                "contenders": [trial.state() for trial in self.contenders],
                "moments": [torch.from_numpy(each.copy()) for each in moments],
                "done": done,
                "rows": [vars(row) for row in rows],
            }
        )
