"""A search by Optuna for the jobs that serve best, within limits: ``hydra/sweeper=optuna``.

A trial is a job; the space is given as Hydra's users know it: ``strategy=ordinary,joint``,
``range``, ``interval``. Trials with a result are kept in a database, so that the same command goes
on: a study is known by its settings, and by config, code, tools and files of the jobs there may be.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from filelock import FileLock
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer
from omegaconf import OmegaConf

from pipeline import home
from pipeline.artifacts import write_json
from pipeline.errors import ThimbleError
from pipeline.runner import options, progress, sweep, titles, workspace
from pipeline.runner.code import Code
from pipeline.runner.live import View
from pipeline.runner.sweeper import Sweeps

if TYPE_CHECKING:  # it takes half a second
    from optuna import Study, Trial
    from optuna.samplers import BaseSampler

RESULTS = "optimization_results.yaml"
"""In the sweep's folder, in the form of Hydra's own plugin for Optuna: the best trials."""

STUBBORN = 20
"""Known trials in a row that a sampler may ask for; the next ones are drawn at random."""

ASIDE = ("output", "tracking", "cache")
"""Keys of the config that change no result."""


@dataclass(eq=False)
class Optuna(Sweeps):
    """
    Attributes:
        minimize, maximize: figures of a result, such as ``latency_us``; of several, the trials that
            no other one beats in all are the best.
        limits, at_least: by a figure, the most and the least that is taken; None for any.
        n_trials: how many there are at the end, with those of earlier commands.
        n_jobs: how many a launcher gets at a time; -1 is one a core.
        sampler: a class of ``optuna.samplers``.
        storage: the database's URL; None for one of the study's own, beside the cache.
        params: overrides of all jobs; those on the command line come before them.
    """

    minimize: Sequence[str]
    maximize: Sequence[str]
    limits: Mapping[str, float | None]
    at_least: Mapping[str, float | None]
    n_trials: int
    n_jobs: int
    sampler: str
    seed: int
    storage: str | None = None
    params: Mapping[str, Any] | None = None
    jobs: list[list[str]] = field(default_factory=list)
    max_batch_size: int | None = None

    def __post_init__(self) -> None:
        if self.jobs or self.max_batch_size:
            raise ThimbleError(
                "hydra.sweeper: Optuna makes jobs, leave jobs and max_batch_size out"
            )
        self.goals: dict[str, Any] = dict.fromkeys(self.minimize, "minimize")
        self.goals |= dict.fromkeys(self.maximize, "maximize")
        if not self.goals or self.n_trials < 1:
            raise ThimbleError("hydra.sweeper: give a figure to minimize or maximize, and n_trials")
        bounds = [(key, 1, most) for key, most in self.limits.items()]
        bounds += [(key, -1, least) for key, least in self.at_least.items()]
        self.bounds = [(key, sign, float(end)) for key, sign, end in bounds if end is not None]

    def sweep(self, arguments: list[str]) -> None:
        import optuna

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
        total = int(min(self.n_trials, math.prod(map(_size, self.space.values()))))
        others = self._each_value()
        study = optuna.create_study(directions=[*self.goals.values()], sampler=self._seeded(0, 0))
        with self._stored(self._identity(others)) as stored:
            study.add_trials(stored.trials)
            self.begin(others, f"{self.n_trials} trials")
            for number, trial in enumerate(study.trials):
                self.jobs.append(self._overrides(trial.params))
                place = self.folder / str(number)
                write_json(place / "result.json", trial.user_attrs["result"])
                progress.lost(self.folder, number, "")  # to an earlier command, with this result
            self.numbers = {number: number for number in range(len(self.jobs))}
            self.known = set(map(tuple, self.jobs))
            sweep.go_on(self.folder, self.jobs, others=others)
            names = titles.names([*self.jobs, *others])[: len(self.jobs)]
            with View(self.folder, [*names, *[""] * (total - len(names))]) as view:
                self._keep(study)
                while batch := self._asked(study, total - len(self.jobs)):
                    jobs = [self._overrides(trial.params) for trial in batch]
                    numbers = self.add(jobs)
                    view.names.update(zip(numbers, titles.names([*jobs, *others]), strict=False))
                    self.jobs_launcher.launch(jobs, numbers.start)
                    results = sweep.collect(self.folder, self.jobs)[numbers.start :]
                    for number, asked, result in zip(numbers, batch, results, strict=True):
                        self.numbers[asked.number] = number
                        if self._told(study, asked, result):
                            stored.add_trial(study.trials[asked.number])
                    self._keep(study)

    def _overrides(self, params: Mapping[str, Any]) -> list[str]:
        return [*self.fixed, *(f"{key}={params[key]}" for key in self.space)]

    def _each_value(self) -> list[list[str]]:
        """Jobs that between them have each choice, and both ends of each range."""
        ends = {
            key: list(getattr(each, "choices", ())) or [each.low, each.high]
            for key, each in self.space.items()
        }
        first = {key: values[0] for key, values in ends.items()}
        more = [{**first, key: value} for key in ends for value in ends[key][1:]]
        return [self._overrides(params) for params in (first, *more)]

    def _identity(self, jobs: Sequence[Sequence[str]]) -> str:
        """The study's name. Raises ThimbleError for a mistake in ``jobs``."""
        from pipeline.runner.job import resolved

        settings = self.space, self.goals, self.bounds, self.sampler, self.seed
        known: list[Any] = [str(settings)]
        for job in jobs:
            config = self.jobs_launcher.compose(self.folder, -1, job)
            options.check(config)
            task = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
            params = workspace.params(resolved(task))
            code = Code(params)
            known += [code.about(stage)["hash"] for stage in workspace.stages(params)]
            known.append({key: value for key, value in params.items() if key not in ASIDE})
        digest = hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode())
        return f"{'-'.join(self.goals)}-{digest.hexdigest()[:16]}"

    @contextmanager
    def _stored(self, name: str) -> Iterator[Study]:
        """The study called ``name`` in its database, which no other command has meanwhile."""
        import optuna

        assert self.config is not None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        place = home.home() / "studies" / f"{name}.db"
        place.parent.mkdir(parents=True, exist_ok=True)
        url = None if self.config.cache.fresh else self.storage or f"sqlite:///{place}"
        with FileLock(home.lock_file(f"study-{name}")):
            yield optuna.create_study(
                storage=url, study_name=name, directions=[*self.goals.values()], load_if_exists=True
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
        """The next trials, which are new."""
        from joblib import cpu_count
        from optuna.trial import TrialState

        found: list[Trial] = []
        draws = 0
        while len(found) < min(most, self.n_jobs if self.n_jobs > 0 else cpu_count()):
            study.sampler = self._seeded(len(self.known), draws)
            trial = study.ask(self.space)
            job = tuple(self._overrides(trial.params))
            if job in self.known:
                study.tell(trial, state=TrialState.FAIL)
                draws += 1
                continue
            found, draws = [*found, trial], 0
            self.known.add(job)
        return found

    def _told(self, study: Study, trial: Trial, result: Mapping[str, Any]) -> bool:
        """Tell what became of ``trial``; whether it has a result. One that does not fit breaks a
        constraint, by the share that it needs more; from one that failed nothing is learnt."""
        from optuna.trial import TrialState

        fits = result["status"] == "ok"
        if not fits and result["status"] != "infeasible":
            study.tell(trial, state=TrialState.FAIL)
            return False
        for key in (*self.goals, *(key for key, _, _ in self.bounds)):
            if fits and not isinstance(result.get(key), int | float):
                raise ThimbleError(
                    f"hydra.sweeper: {key} is no figure of {result['run_dir']}: give another, or a "
                    "later stage with until="
                )
        over = (result.get("needed_bytes") or 2) / (result.get("available_bytes") or 1) - 1
        trial.set_constraint("fits", 0.0 if fits else max(over, 1e-9))
        for key, sign, end in self.bounds:
            excess = sign * (result.get(key, end) - end) / (abs(end) or 1)
            trial.set_constraint(f"{key} {'<>'[sign < 0]}= {end:g}", excess)
        worst = {"minimize": math.inf, "maximize": -math.inf}
        trial.set_user_attr("result", dict(result))
        values = [result[key] if fits else worst[way] for key, way in self.goals.items()]
        study.tell(trial, values)
        return True

    def _keep(self, study: Study) -> None:
        """So that a search that is interrupted has what it found so far."""
        best = study.best_trials
        numbers = [self.numbers[trial.number] for trial in best]
        sweep.go_on(self.folder, self.jobs, best=numbers)
        found: dict[str, Any] = {
            "solutions": [{"params": each.params, "values": each.values} for each in best]
        }
        if len(self.goals) == 1 and best:
            found = {"best_params": best[0].params, "best_value": best[0].value}
        OmegaConf.save(OmegaConf.create({"name": "optuna", **found}), self.folder / RESULTS)


def _distribution(override: Override) -> Any:
    """The choice that an override with several values gives to Optuna."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    value: Any = override.value()
    if isinstance(value, IntervalSweep):
        whole = isinstance(value.start, int) and isinstance(value.end, int)
        interval: Any = IntDistribution if whole else FloatDistribution
        return interval(value.start, value.end, log="log" in value.tags)
    choices: list[Any] = list(override.sweep_iterator(Transformer.encode))
    if isinstance(value, RangeSweep) and not value.shuffle:
        every: list[Any] = sorted(value.range())
        numbers: Any = IntDistribution if isinstance(every[0], int) else FloatDistribution
        return numbers(every[0], every[-1], step=abs(value.step))
    return CategoricalDistribution(choices)


def _size(space: Any) -> float:
    """How many values there are."""
    if choices := getattr(space, "choices", None):
        return len(set(choices))
    return 1 + (space.high - space.low) // space.step if space.step else math.inf
