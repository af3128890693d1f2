"""A search by Optuna for the jobs that serve best, within limits: ``hydra/sweeper=optuna``.

The space is given as Hydra's users know it: ``strategy=ordinary,joint``, ``range``, ``interval``. A
trial is a job. What became of it is kept in a database at once, so that the same command goes on: a
study is known by its settings, and by the config, the code, the tools and the files of the jobs
that there may be.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer
from omegaconf import OmegaConf

from pipeline import home
from pipeline.artifacts import write_json
from pipeline.errors import ThimbleError
from pipeline.runner import options, progress, sweep, table, workspace
from pipeline.runner.code import Code
from pipeline.runner.live import View
from pipeline.runner.sweeper import Sweeps

if TYPE_CHECKING:  # it takes half a second
    from optuna import Study, Trial
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

RESULTS = "optimization_results.yaml"
"""In the sweep's folder, in the form of Hydra's own plugin for Optuna: the best trials."""

STUBBORN = 20
"""Draws of known parameters in a row, after which they are drawn at random."""

ASIDE = ("output", "tracking", "cache")
"""Keys of the config that change no result."""


class Optuna(Sweeps):
    """
    Args:
        minimize, maximize: figures of a result, such as ``latency_us``; of several, the trials that
            no other one beats in all are the best.
        limits: by a figure, such as ``sram_bytes``, the most that is taken; None for any.
        at_least: by a figure, such as ``accuracy_int``, the least.
        n_trials: how many there are at the end, with those of earlier commands.
        n_jobs: how many a launcher gets at a time; -1 is one a core.
        sampler: a class of ``optuna.samplers``.
        storage: the database's URL; None for one of the study's own, beside the cache.
        params: overrides of all jobs; those on the command line come before them.
    """

    def __init__(
        self,
        minimize: Sequence[str],
        maximize: Sequence[str],
        limits: Mapping[str, float | None],
        at_least: Mapping[str, float | None],
        n_trials: int,
        n_jobs: int,
        sampler: str,
        seed: int,
        storage: str | None,
        params: Mapping[str, Any] | None,
        **others: Any,
    ) -> None:
        if others:
            raise ThimbleError(f"hydra.sweeper.{min(others)}: not with hydra/sweeper=optuna")
        goals: dict[str, Any] = dict.fromkeys(minimize, "minimize") | dict.fromkeys(
            maximize, "maximize"
        )
        if not goals or n_trials < 1:
            raise ThimbleError("hydra.sweeper: give a figure to minimize or maximize, and n_trials")
        self.goals = goals
        self.limits, self.at_least = (
            {key: float(each) for key, each in given.items() if each is not None}
            for given in (limits, at_least)
        )
        self.n_trials, self.n_jobs, self.storage = n_trials, n_jobs, storage
        self.kind, self.seed, self.params = sampler, seed, dict(params or {})

    def sweep(self, arguments: list[str]) -> None:
        words = [*(f"{key}={value}" for key, value in self.params.items()), *arguments]
        given = {each.get_key_element(): each for each in self.parsed(words)}
        self.space = {k: _distribution(v) for k, v in given.items() if v.is_sweep_override()}
        self.fixed: list[str] = [
            f"{key}={each.get_value_element_as_str()}"
            for key, each in given.items()
            if key not in self.space
        ]
        if not self.space:
            raise ThimbleError(
                "hydra/sweeper=optuna has nothing to choose: give a key several values, such as "
                "strategy=ordinary,joint or model.width=interval(0.25,1.0)"
            )
        self.size = math.prod(map(_size, self.space.values()))
        self.n_trials = int(min(self.n_trials, self.size))
        others = self._each_value()
        with self._study(self._identity(others)) as study:
            ended = self._found(study)
            jobs = [self._overrides(trial.params) for trial in ended]
            self.begin(others, f"{self.n_trials} trials")
            self.jobs += jobs
            sweep.go_on(self.folder, self.jobs, others=others)
            for number, trial in enumerate(ended):
                place = self.folder / str(number)
                write_json(place / "result.json", trial.user_attrs["result"])
                progress.lost(self.folder, number, "")  # it ended elsewhere, well
            left = [""] * (self.n_trials - len(jobs))
            names = [*table.names([*jobs, *others])[: len(jobs)], *left]
            self._keep(study)
            with View(self.folder, names) as view:
                while batch := self._asked(study):
                    jobs = [self._overrides(trial.params) for trial in batch]
                    numbers = self.add(jobs, others=others)
                    view.names.update(zip(numbers, table.names([*jobs, *others]), strict=False))
                    self.jobs_launcher.launch(jobs, numbers.start)
                    results = sweep.collect(self.folder, self.jobs)[numbers.start :]
                    for asked, result in zip(batch, results, strict=True):
                        self._tell(study, asked, result)
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

        own = [str(each) for each in (self.space, self.goals, self.limits, self.at_least)]
        known: list[Any] = [*own, self.kind, self.seed]
        for job in jobs:
            config = self.jobs_launcher.compose(self.folder, -1, job)
            options.check(config)
            plain = resolved(
                OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
            )
            params = {k: v for k, v in workspace.params(plain).items() if k not in ASIDE}
            code = Code(params)
            known += [params, *(code.text(stage) for stage in workspace.stages(params))]
        digest = hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode())
        return f"{'-'.join(self.goals)}-{digest.hexdigest()[:16]}"

    @contextmanager
    def _study(self, name: str) -> Iterator[Study]:
        """The study called ``name``, new or gone on with, while no other command has it."""
        import optuna

        assert self.config is not None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        place = home.home() / "studies" / f"{name}.db"
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.config.cache.fresh
        lock = FileLock(home.lock_file(f"study-{name}"))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            print("another command is at this study: waiting for its end", file=sys.stderr)
            lock.acquire()
        with lock:
            yield optuna.create_study(
                storage=None if fresh else self.storage or f"sqlite:///{place}",
                study_name=name,
                directions=[*self.goals.values()],
                load_if_exists=True,
            )

    def _sampler(self, number: int, draws: int) -> BaseSampler:
        """Of trial ``number``, whose seed depends on nothing else: a study that is gone on with
        asks for what it would have asked for; ``draws`` gave nothing new."""
        from optuna import samplers

        try:
            kind = getattr(samplers, self.kind if draws < STUBBORN else "RandomSampler")
            return kind(seed=self.seed + number)  # type: ignore[no-any-return]
        except (AttributeError, ImportError, TypeError) as error:
            raise ThimbleError(
                f"hydra.sweeper.sampler={self.kind}: not to be had ({error}): give TPESampler, "
                "NSGAIISampler, GPSampler, RandomSampler or another class of optuna.samplers"
            ) from None

    def _found(self, study: Study) -> list[FrozenTrial]:
        """The trials that have a result. Those that failed, or were cut short, come again first."""
        from optuna.trial import TrialState

        study.sampler = self._sampler(0, 0)
        trials = study.get_trials(deepcopy=False)
        ended = [trial for trial in trials if trial.state == TrialState.COMPLETE]
        self.known = {_text(trial.params) for trial in ended}
        again = dict[str, dict[str, Any]]()
        for trial in trials:
            if trial.state == TrialState.RUNNING:  # when its command was killed
                study.tell(trial.number, state=TrialState.FAIL)
            if trial not in ended and trial.params.keys() == self.space.keys():
                again[_text(trial.params)] = trial.params
        for text, params in again.items():
            if text not in self.known:
                study.enqueue_trial(params)
        self.numbers = {trial.number: number for number, trial in enumerate(ended)}
        return ended

    def _asked(self, study: Study) -> list[Trial]:
        """The next trials, whose parameters are new; fewer at the end."""
        from joblib import cpu_count
        from optuna.trial import TrialState

        width = self.n_jobs if self.n_jobs > 0 else cpu_count()
        room = min(width, self.n_trials - len(self.jobs))
        found: list[Trial] = []
        draws = 0
        while len(found) < room:
            study.sampler = self._sampler(len(study.get_trials(deepcopy=False)), draws)
            trial = study.ask(self.space)
            if _text(trial.params) in self.known:
                draws += 1
                study.tell(trial, state=TrialState.FAIL)
            else:
                draws = 0
                self.known.add(_text(trial.params))
                self.numbers[trial.number] = len(self.jobs) + len(found)
                found.append(trial)
        return found

    def _tell(self, study: Study, trial: Trial, result: Mapping[str, Any]) -> None:
        """What became of a trial. One that does not fit breaks a constraint, by the share that it
        needs more; one that failed tells a sampler nothing."""
        from optuna.trial import TrialState

        fits = result["status"] == "ok"
        if not fits and result["status"] != "infeasible":
            study.tell(trial, state=TrialState.FAIL)
            return
        asked = (*self.goals, *self.limits, *self.at_least)
        known = {key: result[key] for key in asked if isinstance(result.get(key), int | float)}
        if fits and (lacking := sorted(set(asked) - set(known))):
            raise ThimbleError(
                f"hydra.sweeper: {lacking[0]} is no figure of {result['run_dir']}: give another, "
                "or a later stage with until="
            )
        needed, there = result.get("needed_bytes"), result.get("available_bytes")
        over = needed / there - 1 if needed and there else 1.0
        trial.set_constraint("fits", 0.0 if fits else max(over, 1e-9))
        for sign, bounds in ((1, self.limits), (-1, self.at_least)):
            for key, bound in bounds.items():
                excess = sign * (known.get(key, bound) - bound) / (abs(bound) or 1)
                trial.set_constraint(f"{key}{'>-<'[sign + 1]}", excess)
        worst = {"minimize": math.inf, "maximize": -math.inf}
        trial.set_user_attr("result", dict(result))
        study.tell(trial, [known[key] if fits else worst[way] for key, way in self.goals.items()])

    def _keep(self, study: Study) -> None:
        """So that a search that is interrupted has what it found so far."""
        best = study.best_trials
        numbers = [self.numbers[trial.number] for trial in best]
        sweep.go_on(self.folder, self.jobs, best=numbers)
        found = [{"params": each.params, "values": each.values} for each in best]
        content: dict[str, Any] = {"solutions": found}
        if len(self.goals) == 1 and best:
            content = {"best_params": best[0].params, "best_value": best[0].value}
        OmegaConf.save(OmegaConf.create({"name": "optuna", **content}), self.folder / RESULTS)


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
        whole = all(isinstance(each, int) for each in value.range())
        numbers: Any = IntDistribution if whole else FloatDistribution
        ends = sorted([float(choices[0]), float(choices[-1])])
        return numbers(*(map(int, ends) if whole else ends), step=abs(value.step))
    return CategoricalDistribution(choices)


def _size(space: Any) -> float:
    """How many values there are."""
    if choices := getattr(space, "choices", None):
        return len(set(choices))
    return 1 + (space.high - space.low) // space.step if space.step else math.inf


def _text(params: Mapping[str, Any]) -> str:
    return json.dumps(params, sort_keys=True)
