"""A search for networks: drawn, planned, and the best trained further and further.

Successive halving (Jamieson & Talwalkar 2016): of those trained on one rung, a share goes on to the
next, which trains longer and from the beginning, so that a survivor is an ordinary model with an
ordinary training. Networks that no strategy fits on the board are dropped before any training. On
the first rung the best may have children, each with one thing changed, which are planned and
trained as their parents were (evolution; Real et al. 2019, without the forgetting of the old).
Every plan and every training is a job of a sweep, with its cache: the same command goes on.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

from omegaconf import OmegaConf

from pipeline.artifacts import read_npz, write_json
from pipeline.errors import ThimbleError
from pipeline.metrics import SCORE
from pipeline.runner import sweep
from pipeline.runner.screen import shown
from pipeline.runner.space import Space, described, some
from pipeline.runner.sweeper import Sweeps
from pipeline.runner.table import SEARCH

STREAMED, UNTRAINED = "model.input_pool=1", "train=random"
Network = dict[str, Any]


@dataclass(eq=False, kw_only=True)
class Architectures(Sweeps):
    """A search whose attributes conf/sweep/architectures.yaml explains."""

    networks: int
    from_model: bool
    seed: int
    halving: int
    generations: int
    children: int
    fits: str
    limits: dict[str, float | None]
    strategies: dict[str, dict[str, str] | None]
    rungs: list[str]
    space: Space

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plans = {str(name): words for name, words in self.strategies.items() if words}
        if self.networks < 1 or self.halving < 2 or not self.rungs or not self.plans:
            raise ThimbleError(
                "hydra.sweeper: a search takes a network, a rung and a strategy or more, and "
                "halving=2 or more"
            )
        self.space = OmegaConf.to_object(self.checked.space)  # type: ignore[assignment]
        self.found: list[Network] = []

    def search(self, arguments: list[str]) -> None:
        assert self.config is not None
        self.typed = self.words(arguments)
        if len(self.combinations(self.typed)) > 1:
            raise ThimbleError("sweep=architectures takes one value of each key, not several")
        image, random = self.config.model.input_shape, Random(self.seed)
        networks = self.space.networks(self.networks, image, self.seed)
        if self.from_model:
            own = described(self.config.model)
            networks = [own, *(network for network in networks if network != own)]
        alive = self._tried(networks)
        for _ in range(self.generations):
            parents, known = _best(alive, self.halving), [each["overrides"] for each in self.found]

            def child(parents: Sequence[Network] = parents) -> list[str] | None:
                return self.space.varied(random.choice(parents)["overrides"], image, random)

            alive += self._tried(some(self.children if parents else 0, child, known))
        if not alive:
            raise ThimbleError(
                f"hydra.sweeper: none of {len(self.found)} networks fits under any strategy: try "
                "fewer channels in hydra.sweeper.space, a larger board, or more networks; what "
                f"each needs is in {shown(self.folder)}"
            )
        for rung in self.rungs[1:]:
            alive = _best(alive, self.halving)
            self._train(alive, rung)
        alive = _best(alive, self.halving)
        for each in alive:
            each["survives"] = True
        self._keep()
        last = self.rungs[-1].split()
        results = self._round([self._job(each, k, *last) for each in alive for k in each["bytes"]])
        if any(result["status"] == "ok" for result in results):
            self.tries += range(len(self.jobs))  # it came to something: a refusal is a result
            sweep.go_on(self.folder, self.jobs, self.tries)

    def _tried(self, networks: Sequence[list[str]]) -> list[Network]:
        """Note of each network how many bytes of activations each strategy that fits takes, and
        train those that fit on the first rung; returns them. One that a stage refuses, such as for
        sums too large, is dropped like one that does not fit."""
        new: list[Network] = [{"overrides": each, "rungs": [], "bytes": {}} for each in networks]
        self.found += new
        asked = [(each, name) for each in new for name in self.plans]
        jobs = [self._job(each, name, UNTRAINED, f"until={self.fits}") for each, name in asked]
        limits = [(key, most) for key, most in self.limits.items() if most is not None]
        for (each, name), result in zip(asked, self._round(jobs), strict=True):
            if result["status"] == "ok" and all(
                self.figure(result, key) <= most for key, most in limits
            ):
                each["bytes"][name] = result["pmu_bytes"]
        fitting = [each for each in new if each["bytes"]]
        self._train(fitting, self.rungs[0])
        return fitting

    def _train(self, networks: Sequence[Network], rung: str) -> None:
        """Note what each came to. One whose training is refused, or diverges, goes no further."""
        jobs = [  # with the strategy of the fewest bytes: a training does not depend on it
            self._job(each, min(each["bytes"], key=each["bytes"].get), *rung.split(), "until=train")
            for each in networks
        ]
        for each, result in zip(networks, self._round(jobs), strict=True):
            each["rungs"].append(validation(Path(result["run_dir"])))
        self._keep()

    def _keep(self) -> None:
        """So that a search that is interrupted has what it found so far."""
        known = {"networks": self.found, "strategies": list(self.plans)}
        write_json(self.folder / SEARCH, known)

    def _job(self, network: Network, name: str, *last: str) -> list[str]:
        """Return the overrides of a job for ``network`` with the strategy ``name``, and ``last``;
        without what was typed of a training, where there is none."""
        plan = self.plans[name]["streamed" if STREAMED in network["overrides"] else "pooled"]
        but = ("train=", "train.") if UNTRAINED in last else ()
        typed = [word for word in self.typed if not word.startswith(but)]
        return [*typed, *network["overrides"], *plan.split(), *last]


def _best(networks: Sequence[Network], halving: int) -> list[Network]:
    """Return one of ``halving``: those with the greatest accuracy of their last rung, in the order
    they were drawn in; none whose training came to no end."""
    ended = [n for n, each in enumerate(networks) if each["rungs"][-1] >= 0]
    ranked = sorted(ended, key=lambda n: -networks[n]["rungs"][-1])
    return [networks[n] for n in sorted(ranked[: ceil(len(networks) / halving)])]


def validation(folder: Path) -> float:
    """Return the accuracy, of 1, that a run's training handed on: the best of its last phase, or
    where the recipe chose by more than the validation images, such as distorted copies of them, by
    that; -1 where it came to no end."""
    file = folder / "training.csv"
    rows = list(csv.DictReader(file.read_text().splitlines())) if file.is_file() else []
    if not rows:
        return -1.0
    weights = read_npz(folder / "weights.npz")
    if SCORE in weights:
        return float(weights[SCORE])
    last = [row for row in rows if row["phase"] == rows[-1]["phase"]]
    return max(float(row["validation_accuracy"]) for row in last)
