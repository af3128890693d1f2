"""A search for networks: drawn, planned, and the best trained further and further.

Successive halving (Jamieson & Talwalkar 2016): of those trained on one rung, a share goes on to the
next, which trains longer and from the beginning, so that a survivor is an ordinary model with an
ordinary training. Networks that no strategy fits on the board are dropped before any training. On
the first rung the best may have children, each with one thing changed, which are planned and
trained as their parents were (evolution; Real et al. 2019, without the forgetting of the old).
Every plan and every training is a job of a sweep, with its cache: the same command goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

from pipeline.artifacts import write_json
from pipeline.errors import ThimbleError
from pipeline.runner import sweep, titles
from pipeline.runner.live import View
from pipeline.runner.scores import SEARCH, validation
from pipeline.runner.screen import shown
from pipeline.runner.space import Space, another, described
from pipeline.runner.sweeper import Sweeps

STREAMED = "model.input_pool=1"


class Architectures(Sweeps):
    """
    Args:
        networks: how many are drawn; the n-th is the same however many there are.
        from_model: whether the model that ``model=`` names is tried before them, so that it may
            have children.
        seed: of the draws.
        halving: of so many networks on a rung, one goes on.
        generations: how often the best of the first rung, one of ``halving``, have children.
        children: how many they have together each time.
        fits: the stage that a network has to come through with a strategy; from ``build`` on its
            size in flash counts as well.
        limits: by a result's figure, such as ``weight_bytes`` or ``macs``, the most that is taken.
        strategies: by the name that each has in the figure, its overrides for networks with a
            ``pooled`` input and for those that take it as it is ``streamed``.
        rungs: overrides of the training on each, from the shortest to the longest.
        space: the fields of ``Space``.
        params: overrides of all jobs, one value each; the others are ``EveryCombination``'s.
    """

    def __init__(
        self,
        networks: int,
        from_model: bool,
        seed: int,
        halving: int,
        generations: int,
        children: int,
        fits: str,
        limits: Mapping[str, float | None],
        strategies: Mapping[str, Mapping[str, str] | None],
        rungs: Sequence[str],
        space: Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        jobs: Sequence[str] | None = None,
        max_batch_size: int | None = None,
    ) -> None:
        if jobs or max_batch_size:
            raise ThimbleError(
                "hydra.sweeper: a search has jobs of its own, leave jobs and max_batch_size out"
            )
        counts = {
            "networks": networks,
            "seed": seed,
            "halving": halving,
            "generations": generations,
            "children": children,
        }
        for key, value in counts.items():
            if not isinstance(value, int) or value < 0:
                raise ThimbleError(f"hydra.sweeper.{key}={value}: a whole number from 0")
        for key, most in limits.items():
            if not isinstance(most, int | float | None):
                raise ThimbleError(f"hydra.sweeper.limits.{key}={most}: a number, or null for none")
        if networks < 1 or halving < 2 or not rungs or not any(strategies.values()):
            raise ThimbleError(
                "hydra.sweeper: a search takes a network, a rung and a strategy or more, and "
                "halving=2 or more"
            )
        self.networks, self.from_model = networks, from_model
        self.seed, self.halving = seed, halving
        self.generations, self.children, self.fits = generations, children, fits
        self.limits = {key: most for key, most in limits.items() if most is not None}
        self.strategies = {str(name): words for name, words in strategies.items() if words}
        self.rungs = list(rungs)
        self.space = Space(**{str(key): value for key, value in space.items()})
        self.params = dict(params or {})
        self.jobs: list[list[str]] = []
        self.tries: list[int] = []

    def sweep(self, arguments: list[str]) -> None:
        assert self.config is not None
        arguments = [*(f"{key}={value}" for key, value in self.params.items()), *arguments]
        if any(len(found) > 1 for found in self.combinations(arguments)):
            raise ThimbleError("sweep=architectures takes one value of each key, not several")
        self.folder = Path(self.config.hydra.sweep.dir).absolute()
        typed = [word for word in arguments if not word.startswith("until=")]
        until = [word for word in arguments if word.startswith("until=")]
        image = self.config.model.input_shape
        drawn = list(islice(self.space.networks(image, self.seed), self.networks))
        if self.from_model:
            own = described(self.config.model)
            drawn = [own, *(network for network in drawn if network != own)]
        found: list[dict[str, Any]] = []
        alive = self._tried(drawn, found, typed)
        random = Random(self.seed)
        for _ in range(self.generations):
            alive += self._tried(self._varied(alive, found, image, random), found, typed)
        if not alive:
            self._keep(found)
            raise ThimbleError(
                f"hydra.sweeper: none of {len(found)} networks fits under any strategy: try fewer "
                "channels in hydra.sweeper.space, a larger board, or more networks; what each "
                f"needs is in {shown(self.folder)}"
            )
        for rung in self.rungs[1:]:
            alive = _best(alive, ceil(len(alive) / self.halving))
            self._train(alive, typed, rung)
            self._keep(found)
        alive = _best(alive, ceil(len(alive) / self.halving))
        last = [
            [*typed, *each["overrides"], *self._words(each, name), *self.rungs[-1].split(), *until]
            for each in alive
            for name in each["bytes"]
        ]
        for each in alive:
            each["survives"] = True
        self._keep(found)
        self._measure(last)

    def _tried(
        self, networks: Sequence[list[str]], found: list[dict[str, Any]], typed: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Add ``networks`` to those ``found``; train those that fit on the first rung, and return
        them."""
        new: list[dict[str, Any]] = [
            {"overrides": network, "rungs": [], "bytes": {}} for network in networks
        ]
        found += new
        self._plan(new, [word for word in typed if not word.startswith(("train=", "train."))])
        fitting = [each for each in new if each["bytes"]]
        self._train(fitting, typed, self.rungs[0])
        self._keep(found)
        return fitting

    def _varied(
        self,
        alive: Sequence[dict[str, Any]],
        found: Sequence[Mapping[str, Any]],
        image: Sequence[int],
        random: Random,
    ) -> list[list[str]]:
        """Children of the best, none of which was found before; fewer where there are no others."""
        parents = _best(alive, ceil(len(alive) / self.halving))
        known = {tuple(each["overrides"]) for each in found}
        children: list[list[str]] = []
        while parents and len(children) < self.children:
            child = another(
                lambda: self.space.varied(random.choice(parents)["overrides"], image, random), known
            )
            if child is None:
                break
            known.add(tuple(child))
            children.append(child)
        return children

    def _train(self, networks: Sequence[dict[str, Any]], typed: Sequence[str], rung: str) -> None:
        """Note what each came to. One whose training is refused, or diverges, goes no further; that
        none came to an end is a failure of the search."""
        first = len(self.jobs)
        jobs = [
            [*typed, *each["overrides"], *self._least(each), *rung.split(), "until=train"]
            for each in networks
        ]
        for each, result in zip(networks, self._round(jobs), strict=True):
            each["rungs"].append(validation(Path(result["run_dir"])))
        if any(each["rungs"][-1] >= 0 for each in networks):
            self.tries += range(first, len(self.jobs))

    def _measure(self, jobs: Sequence[Sequence[str]]) -> None:
        """Run the survivors. That one's answers come too late for the board's line, say, is found;
        that this happens to all of them is a failure of the search."""
        first = len(self.jobs)
        if any(result["status"] == "ok" for result in self._round(jobs)):
            self.tries += range(first, len(self.jobs))
            sweep.go_on(self.folder, self.jobs, self.tries)

    def _keep(self, found: Sequence[Mapping[str, Any]]) -> None:
        """So that a search that is interrupted has what it found so far."""
        known = {"networks": list(found), "strategies": list(self.strategies)}
        write_json(self.folder / SEARCH, known)

    def _plan(self, found: list[dict[str, Any]], typed: Sequence[str]) -> None:
        """Note of each network how many bytes of activations each strategy that fits takes; one
        that a stage refuses, such as for sums too large, is dropped like one that does not fit."""
        asked = [(each, name) for each in found for name in self.strategies]
        words = ("train=random", f"until={self.fits}")
        self.tries += range(len(self.jobs), len(self.jobs) + len(asked))
        results = self._round(
            [[*typed, *each["overrides"], *self._words(each, name), *words] for each, name in asked]
        )
        for (each, name), result in zip(asked, results, strict=True):
            if result["status"] == "ok" and self._keeps(result):
                each["bytes"][name] = result["pmu_bytes"]

    def _keeps(self, result: Mapping[str, Any]) -> bool:
        """To all limits.

        Raises:
            ThimbleError: for a limit of what the stage ``fits`` does not measure.
        """
        if unknown := self.limits.keys() - result.keys():
            raise ThimbleError(
                f"hydra.sweeper.limits.{min(unknown)}: until={self.fits} gives no such figure; "
                "give another, or let networks come through a later stage, such as "
                "hydra.sweeper.fits=build for sizes in flash"
            )
        return all(result[key] <= most for key, most in self.limits.items())

    def _least(self, network: Mapping[str, Any]) -> list[str]:
        """The strategy of a training, on which it does not depend."""
        return self._words(network, min(network["bytes"], key=network["bytes"].get))

    def _words(self, network: Mapping[str, Any], name: str) -> list[str]:
        """The overrides of strategy ``name`` for a network."""
        streamed = STREAMED in network["overrides"]
        return self.strategies[name]["streamed" if streamed else "pooled"].split()

    def _round(self, jobs: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Run more jobs of the sweep; returns their results."""
        numbers = self.add(jobs)
        if jobs:
            with View(self.folder, titles.names(jobs), first=numbers.start):
                self.jobs_launcher.launch(jobs, numbers.start)
        return sweep.collect(self.folder, self.jobs)[numbers.start :]


def _best(networks: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Those with the greatest accuracy of their last rung, in the order they were drawn in; none
    whose training came to no end."""
    ended = [n for n, each in enumerate(networks) if each["rungs"][-1] >= 0]
    ranked = sorted(ended, key=lambda n: -networks[n]["rungs"][-1])
    return [networks[n] for n in sorted(ranked[:count])]
