"""Settings that a run depends on besides its recipe, and a switch to repeatability."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


@dataclass(frozen=True)
class Run:
    """Two runs with equal ``seed`` and ``threads`` on one machine give equal weights.

    Of several ``threads`` one distorts the next epoch's images. The networks are so small that
    PyTorch gains little from sharing an operator among threads, and loses a hundredfold while
    another process wants the cores: each operator then waits for a thread that is not running.

    ``checkpoints`` is the folder an interrupted training resumes from; ``None`` keeps none.
    """

    seed: int = 0
    threads: int = 2
    checkpoints: Path | None = None

    @classmethod
    def from_environment(cls, seed: int, threads: int) -> Run:
        """Checkpoints go to the folder that ``THIMBLE_CHECKPOINTS`` names, if any."""
        folder = os.environ.get("THIMBLE_CHECKPOINTS")
        return cls(seed, threads, Path(folder) if folder else None)

    def generator(self, *counters: int) -> torch.Generator:
        """Random numbers for one purpose: equal counters, equal numbers, whatever came before.

        So that an epoch can be repeated without those before it.
        """
        digest = hashlib.sha256(repr((self.seed, *counters)).encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:7]))


@contextmanager
def repeatable(run: Run, device: str = "cpu") -> Iterator[None]:
    """Fix threads, algorithms and PyTorch's global generator; put all back afterwards.

    The threads an operator is shared among decide how sums are split, and so their last bits.
    ``torch.use_deterministic_algorithms`` would import PyTorch's compiler, which takes seconds.
    Other devices than ``cpu`` may take any algorithm. Memory is not filled before it is used: that
    costs a tenth, and only shows reads of what nobody wrote.
    """
    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        torch.set_num_threads(max(1, run.threads - 1))
        if device == "cpu":
            torch.set_deterministic_debug_mode("error")
            memory.fill_uninitialized_memory = False
        try:
            yield
        finally:
            memory.fill_uninitialized_memory = filled
            torch.set_deterministic_debug_mode("error" if deterministic else "default")
            torch.set_num_threads(threads)
