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
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

from pipeline.artifacts import write_json
from pipeline.errors import ThimbleError
from pipeline.runner import sweep
from pipeline.runner.scores import SEARCH, validation
from pipeline.runner.screen import shown
from pipeline.runner.space import Space, another, described
from pipeline.runner.sweeper import Sweeps

STREAMED = "model.input_pool=1"
Network = dict[str, Any]


@dataclass(eq=False)
class Architectures(Sweeps):
    """
    Attributes:
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

    networks: int
    from_model: bool
    seed: int
    halving: int
    generations: int
    children: int
    fits: str
    limits: Mapping[str, float | None]
    strategies: Mapping[str, Mapping[str, str] | None]
    rungs: Sequence[str]
    space: Mapping[str, Any]
    params: Mapping[str, Any] | None = None
    jobs: list[list[str]] = field(default_factory=list)
    max_batch_size: int | None = None

    def __post_init__(self) -> None:
        if self.jobs or self.max_batch_size:
            raise ThimbleError(
                "hydra.sweeper: a search has jobs of its own, leave jobs and max_batch_size out"
            )
        for key in ("networks", "seed", "halving", "generations", "children"):
            value = getattr(self, key)
            if not isinstance(value, int) or value < 0:
                raise ThimbleError(f"hydra.sweeper.{key}={value}: a whole number from 0")
        for key, most in self.limits.items():
            if not isinstance(most, int | float | None):
                raise ThimbleError(f"hydra.sweeper.limits.{key}={most}: a number, or null for none")
        self.most = {key: most for key, most in self.limits.items() if most is not None}
        self.plans = {str(name): words for name, words in self.strategies.items() if words}
        if self.networks < 1 or self.halving < 2 or not self.rungs or not self.plans:
            raise ThimbleError(
                "hydra.sweeper: a search takes a network, a rung and a strategy or more, and "
                "halving=2 or more"
            )
        self.drawn = Space(**{str(key): value for key, value in self.space.items()})
        self.found: list[Network] = []
        self.jobs, self.tries = [], []

    def sweep(self, arguments: list[str]) -> None:
        assert self.config is not None
        words = self.words(arguments)
        if any(len(found) > 1 for found in self.combinations(words)):
            raise ThimbleError("sweep=architectures takes one value of each key, not several")
        self.folder = Path(self.config.hydra.sweep.dir).absolute()
        self.typed = [word for word in words if not word.startswith("until=")]
        until = [word for word in words if word.startswith("until=")]
        image = self.config.model.input_shape
        networks = list(islice(self.drawn.networks(image, self.seed), self.networks))
        if self.from_model:
            own = described(self.config.model)
            networks = [own, *(network for network in networks if network != own)]
        alive = self._tried(networks)
        random = Random(self.seed)
        for _ in range(self.generations):
            alive += self._tried(self._varied(alive, image, random))
        if not alive:
            raise ThimbleError(
                f"hydra.sweeper: none of {len(self.found)} networks fits under any strategy: try "
                "fewer channels in hydra.sweeper.space, a larger board, or more networks; what "
                f"each needs is in {shown(self.folder)}"
            )
        for rung in self.rungs[1:]:
            alive = self._promoted(alive)
            self._train(alive, rung)
        alive = self._promoted(alive)
        for each in alive:
            each["survives"] = True
        self._keep()
        last = [*self.rungs[-1].split(), *until]
        jobs = [self._job(each, name, last) for each in alive for name in each["bytes"]]
        results = self._round(jobs)
        # answers of one may come too late for the board's line; that all do is a failure
        self._may_fail(jobs, any(result["status"] == "ok" for result in results))
        sweep.go_on(self.folder, self.jobs, self.tries)

    def _tried(self, networks: Sequence[list[str]]) -> list[Network]:
        """Note of each network how many bytes of activations each strategy that fits takes, and
        train those that fit on the first rung; returns them. One that a stage refuses, such as for
        sums too large, is dropped like one that does not fit."""
        new: list[Network] = [{"overrides": each, "rungs": [], "bytes": {}} for each in networks]
        self.found += new
        asked = [(each, name) for each in new for name in self.plans]
        untrained = ["train=random", f"until={self.fits}"]
        jobs = [self._job(each, name, untrained, ("train=", "train.")) for each, name in asked]
        self.tries += range(len(self.jobs), len(self.jobs) + len(jobs))
        for (each, name), result in zip(asked, self._round(jobs), strict=True):
            if result["status"] == "ok" and self._within_limits(result):
                each["bytes"][name] = result["pmu_bytes"]
        fitting = [each for each in new if each["bytes"]]
        self._train(fitting, self.rungs[0])
        return fitting

    def _varied(
        self, alive: Sequence[Network], image: Sequence[int], random: Random
    ) -> list[list[str]]:
        """Children of the best, none of which was found before; fewer where there are no others."""
        parents = self._promoted(alive)
        known = {tuple(each["overrides"]) for each in self.found}

        def child() -> list[str] | None:
            return self.drawn.varied(random.choice(parents)["overrides"], image, random)

        found = (another(child, known) for _ in range(self.children if parents else 0))
        return [each for each in found if each]

    def _train(self, networks: Sequence[Network], rung: str) -> None:
        """Note what each came to. One whose training is refused, or diverges, goes no further; that
        none came to an end is a failure of the search."""
        jobs = [  # with the strategy of the fewest bytes: a training does not depend on it
            self._job(
                each, min(each["bytes"], key=each["bytes"].get), [*rung.split(), "until=train"]
            )
            for each in networks
        ]
        for each, result in zip(networks, self._round(jobs), strict=True):
            each["rungs"].append(validation(Path(result["run_dir"])))
        self._may_fail(jobs, any(each["rungs"][-1] >= 0 for each in networks))
        self._keep()

    def _promoted(self, networks: Sequence[Network]) -> list[Network]:
        return _best(networks, ceil(len(networks) / self.halving))

    def _may_fail(self, jobs: Sequence[Sequence[str]], some_ended: bool) -> None:
        """That one of the last ``jobs`` failed is a result, if another one did not."""
        if some_ended:
            self.tries += range(len(self.jobs) - len(jobs), len(self.jobs))

    def _keep(self) -> None:
        """So that a search that is interrupted has what it found so far."""
        known = {"networks": self.found, "strategies": list(self.plans)}
        write_json(self.folder / SEARCH, known)

    def _within_limits(self, result: Mapping[str, Any]) -> bool:
        """Raises ThimbleError for a limit of what the stage ``fits`` does not measure."""
        if unknown := self.most.keys() - result.keys():
            raise ThimbleError(
                f"hydra.sweeper.limits.{min(unknown)}: until={self.fits} gives no such figure; "
                "give another, or let networks come through a later stage, such as "
                "hydra.sweeper.fits=build for sizes in flash"
            )
        return all(result[key] <= most for key, most in self.most.items())

    def _job(
        self, network: Network, name: str, last: Sequence[str], but: tuple[str, ...] = ()
    ) -> list[str]:
        """The overrides of a job for ``network`` with the strategy ``name``, and ``last``; without
        what was typed that begins with one of ``but``."""
        streamed = STREAMED in network["overrides"]
        plan = self.plans[name]["streamed" if streamed else "pooled"].split()
        typed = [word for word in self.typed if not word.startswith(but)] if but else self.typed
        return [*typed, *network["overrides"], *plan, *last]


def _best(networks: Sequence[Network], count: int) -> list[Network]:
    """Those with the greatest accuracy of their last rung, in the order they were drawn in; none
    whose training came to no end."""
    ended = [n for n, each in enumerate(networks) if each["rungs"][-1] >= 0]
    ranked = sorted(ended, key=lambda n: -networks[n]["rungs"][-1])
    return [networks[n] for n in sorted(ranked[:count])]
