"""Engines of the trials: compiled loops, a core for each trial, or a GPU for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from pipeline.training import paper_kernel
from pipeline.training.paper_kernel import F32, U8, U32, Batches


@dataclass(frozen=True)
class Epoch:
    """One epoch of every trial.

    Attributes:
        done: steps that went before in this phase.
        images: those that are drawn from, indices.
        seeds: of each trial's order.
        rates: of Adam, one a step.
        size: images of a step.
    """

    mode: int
    done: int
    images: U32
    seeds: Sequence[int]
    rates: F32
    size: int


class Engine(Protocol):
    def train(
        self, rows: Sequence[F32], moments: Sequence[F32], batches: Batches, epoch: Epoch
    ) -> list[float]:
        """Steps of Adam for every trial; changes ``rows`` and ``moments`` (2, n).

        Returns:
            The mean loss of each.
        """

    def logits(self, rows: Sequence[F32], mode: int, images: U8) -> list[F32]:
        """Return each trial's logits for all images: (n, side, side, c) -> (n, classes)"""


@dataclass(frozen=True)
class Cores:
    """``paper_kernel.c`` on ``threads`` cores, a trial on each."""

    kernel: paper_kernel.Kernel
    threads: int

    def train(
        self, rows: Sequence[F32], moments: Sequence[F32], batches: Batches, epoch: Epoch
    ) -> list[float]:
        steps = len(epoch.rates)

        def one(row: F32, moment: F32, seed: int) -> float:
            chosen = np.random.default_rng(seed).permutation(epoch.images)
            order: U32 = chosen[: steps * epoch.size].reshape(steps, -1)
            return self.kernel.train(
                row, moment, epoch.done, epoch.mode, batches, order, epoch.rates
            )

        with ThreadPoolExecutor(max_workers=self.threads) as pool:
            return list(pool.map(one, rows, moments, epoch.seeds))

    def logits(self, rows: Sequence[F32], mode: int, images: U8) -> list[F32]:
        with ThreadPoolExecutor(max_workers=self.threads) as pool:
            return list(pool.map(lambda row: self.kernel.logits(row, mode, images), rows))


def device(name: str) -> str:
    """``auto`` is a GPU if there is one."""
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"
