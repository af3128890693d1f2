"""A search by Optuna for the jobs that serve best, within limits: ``hydra/sweeper=optuna``.

A trial is a job; the space is given as Hydra's users know it: ``strategy=ordinary,joint``,
``range``, ``interval``. Trials are kept in a database: the same command asks for them again before
it asks for others, and finds what they came to in the cache, as in any sweep.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from filelock import FileLock
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer
from omegaconf import OmegaConf

from pipeline import home
from pipeline.errors import ThimbleError
from pipeline.runner import options, sweep
from pipeline.runner.sweeper import Sweeps

if TYPE_CHECKING:  # it takes half a second
    from optuna import Study, Trial
    from optuna.samplers import BaseSampler

RESULTS = "optimization_results.yaml"
"""File in the sweep's folder with the best trials, as Hydra's own plugin for Optuna writes it."""

STUBBORN = 20
"""Known trials in a row that a sampler may ask for; the next ones are drawn at random."""


@dataclass(eq=False, kw_only=True)
class Optuna(Sweeps):
    """A search whose attributes conf/hydra/sweeper/optuna.yaml explains."""

    minimize: list[str]
    maximize: list[str]
    limits: dict[str, float | None]
    at_least: dict[str, float | None]
    n_trials: int
    n_jobs: int
    sampler: str
    seed: int
    storage: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.goals: dict[str, Any] = dict.fromkeys(self.minimize, "minimize")
        self.goals |= dict.fromkeys(self.maximize, "maximize")
        if not self.goals or self.n_trials < 1:
            raise ThimbleError("hydra.sweeper: give a figure to minimize or maximize, and n_trials")
        bounds = [(key, 1, most) for key, most in self.limits.items()]
        bounds += [(key, -1, least) for key, least in self.at_least.items()]
        self.bounds = [(key, sign, float(end)) for key, sign, end in bounds if end is not None]

    def search(self, arguments: list[str]) -> None:
        import optuna

        assert self.config is not None
        given = {each.get_key_element(): each for each in self.parsed(self.words(arguments))}
        self.space = {k: _distribution(v) for k, v in given.items() if v.is_sweep_override()}
        if not self.space:
            raise ThimbleError(
                "hydra/sweeper=optuna has nothing to choose: give a key several values, such as "
                "strategy=ordinary,joint or model.width=interval(0.25,1.0)"
            )
        self.fixed = [
            f"{key}={each.get_value_element_as_str()}"
            for key, each in given.items()
            if key not in self.space
        ]
        self._seeded(0, 0)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        ends = {k: getattr(v, "choices", None) or (v.low, v.high) for k, v in self.space.items()}
        others = [  # between them they have each choice, and both ends of each range
            self._overrides({key: values[n % len(values)] for key, values in ends.items()})
            for n in range(max(map(len, ends.values())))
        ]
        for job in others:
            options.check(self.jobs_launcher.compose(self.folder, -1, job))
        self.begin(others, f"{self.n_trials} trials")
        total = int(min(self.n_trials, math.prod(map(_size, self.space.values()))))
        directions = [*self.goals.values()]
        study = optuna.create_study(directions=directions)  # in memory: asking is quick
        with self._stored(directions) as stored:
            before = [(trial.params, trial.values) for trial in stored.trials]
            for params, _ in () if self.config.cache.fresh else before:
                study.enqueue_trial(params)
            while batch := self._asked(study, total - len(self.jobs)):
                jobs = [self._overrides(trial.params) for trial in batch]
                results = self._round(jobs, total, others=others)
                for trial, result in zip(batch, results, strict=True):
                    self._tell(study, trial, result)
                    told = study.trials[trial.number]
                    if told.values and (told.params, told.values) not in before:
                        stored.add_trial(told)
                self._keep(study)

    def _overrides(self, params: Mapping[str, Any]) -> list[str]:
        return [*self.fixed, *(f"{key}={params[key]}" for key in self.space)]

    @contextmanager
    def _stored(self, directions: list[Any]) -> Iterator[Study]:
        """Yield the study of this space in its database, which no other command has meanwhile."""
        import optuna

        digest = hashlib.sha256(str((self.space, self.fixed, self.goals)).encode()).hexdigest()
        name = f"{'-'.join(self.goals)}-{digest[:16]}"
        place = home.home() / "studies" / f"{name}.db"
        place.parent.mkdir(parents=True, exist_ok=True)
        url = self.storage or f"sqlite:///{place}"
        with FileLock(home.lock_file(f"study-{name}")):
            yield optuna.create_study(
                storage=url, study_name=name, directions=directions, load_if_exists=True
            )

    def _seeded(self, known: int, draws: int) -> BaseSampler:
        """It depends on how many trials are ``known``, and on the ``draws`` since that gave one of
        them: a search that goes on asks for what it would have asked for."""
        from optuna import samplers

        try:
            kind = getattr(samplers, self.sampler if draws < STUBBORN else "RandomSampler")
            return kind(seed=hash((self.seed, known, draws)) % 2**32)  # type: ignore[no-any-return]
        except (AttributeError, ImportError, TypeError) as error:
            raise ThimbleError(
                f"hydra.sweeper.sampler={self.sampler}: not to be had ({error}): give TPESampler, "
                "NSGAIISampler, GPSampler, RandomSampler or another class of optuna.samplers"
            ) from None

    def _asked(self, study: Study, most: int) -> list[Trial]:
        """Return the next trials, which are new."""
        from joblib import cpu_count

        found: list[Trial] = []
        jobs, draws = [*self.jobs], 0
        while len(found) < min(most, self.n_jobs if self.n_jobs > 0 else cpu_count()):
            study.sampler = self._seeded(len(jobs), draws)
            trial = study.ask(self.space)
            if (job := self._overrides(trial.params)) in jobs:
                self._tell(study, trial, {"status": "known"})
                draws += 1
            else:
                found, jobs, draws = [*found, trial], [*jobs, job], 0
        return found

    def _tell(self, study: Study, trial: Trial, result: Mapping[str, Any]) -> None:
        """Tell what became of ``trial``. One that does not fit breaks a constraint, by the share
        that it needs more; from others nothing is learnt."""
        from optuna.trial import TrialState

        fits = result["status"] == "ok"
        if not fits and result["status"] != "infeasible":
            study.tell(trial, state=TrialState.FAIL)
            return
        over = (result.get("needed_bytes") or 2) / (result.get("available_bytes") or 1) - 1
        trial.set_constraint("fits", 0.0 if fits else max(over, 1e-9))
        for key, sign, end in self.bounds:
            found = self.figure(result, key) if fits else result.get(key, end)
            excess = sign * (found - end) / (abs(end) or 1)
            trial.set_constraint(f"{key} {'<>'[sign < 0]}= {end:g}", excess)
        worst = {"minimize": math.inf, "maximize": -math.inf}
        trial.set_user_attr("run_dir", result["run_dir"])
        study.tell(
            trial, [self.figure(result, k) if fits else worst[way] for k, way in self.goals.items()]
        )

    def _keep(self, study: Study) -> None:
        """So that a search that is interrupted has what it found so far."""
        best = study.best_trials
        numbers = [self.jobs.index(self._overrides(trial.params)) for trial in best]
        sweep.go_on(self.folder, self.jobs, best=numbers)
        found: dict[str, Any] = {
            "solutions": [{"params": each.params, "values": each.values} for each in best]
        }
        if len(self.goals) == 1 and best:
            found = {"best_params": best[0].params, "best_value": best[0].value}
        OmegaConf.save(OmegaConf.create({"name": "optuna", **found}), self.folder / RESULTS)


def _distribution(override: Override) -> Any:
    """Return the choice that an override with several values gives to Optuna."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    value: Any = override.value()
    more: dict[str, Any] = {}
    if isinstance(value, IntervalSweep):
        low, high, more["log"] = value.start, value.end, "log" in value.tags
    elif isinstance(value, RangeSweep) and not value.shuffle:
        low, high, more["step"] = min(value.range()), max(value.range()), abs(value.step)
    else:
        choices: Any = list(override.sweep_iterator(Transformer.encode))
        return CategoricalDistribution(choices)
    whole = isinstance(low, int) and isinstance(high, int)
    kind: Any = IntDistribution if whole else FloatDistribution
    return kind(low, high, **more)


def _size(space: Any) -> float:
    """Return how many values there are; infinity without a step."""
    if choices := getattr(space, "choices", None):
        return len(set(choices))
    return 1 + (space.high - space.low) // space.step if space.step else math.inf
