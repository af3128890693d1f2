"""The jobs of a sweep: composed and checked before they begin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from pipeline.errors import ThimbleError
from pipeline.runner import garbage, options, progress, sweep, titles
from pipeline.runner.launchers import EVERY_CORE, Jobs
from pipeline.runner.live import View


@dataclass(eq=False, kw_only=True)
class Sweeps(Sweeper):
    """Base of this project's sweepers: ``params``, overrides of all jobs, and ``jobs``, lines
    of overrides for ``EveryCombination``; from ``setup`` on the jobs, of which more come while the
    sweep goes on."""

    params: dict[str, Any] | None = None
    jobs: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raises ThimbleError for an option of another type."""
        if self.jobs:
            raise ThimbleError("hydra.sweeper.jobs: a search makes jobs of its own, leave them out")
        types = OmegaConf.create({"hydra": {"sweeper": OmegaConf.structured(type(self))}})
        try:
            self.checked = OmegaConf.merge(types, {"hydra": {"sweeper": vars(self)}}).hydra.sweeper
        except OmegaConfBaseException as error:
            said = (
                str(error).splitlines()[0].replace("Key", "there is no").replace(" not in", " in")
            )
            raise ThimbleError(f"{error.full_key}: {said}") from None

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.hydra_context, self.config = hydra_context, config
        self.folder = Path(config.hydra.sweep.dir).absolute()
        self.jobs, self.begun = list[list[str]](), False
        self.tries = list[int]()  # numbers of jobs whose refusal is a result, no failure
        named = any("hydra/launcher" in word for word in config.hydra.overrides.hydra)
        if config.hydra.runtime.choices.get("experiment") and not named:
            with open_dict(config):  # those of an experiment on all cores
                config.hydra.launcher = dict(EVERY_CORE)
        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )
        if not isinstance(launcher, Jobs):
            raise ThimbleError("hydra/launcher: there are serial, local, joblib, slurm and ray")
        self.jobs_launcher = launcher

    def sweep(self, arguments: list[str]) -> None:
        with View(self.folder) as self.view:
            self.search(arguments)

    @abstractmethod
    def search(self, arguments: list[str]) -> None:
        """Run the jobs that follow from ``arguments``, each round of them by ``_round``."""

    def words(self, line: Sequence[str]) -> list[str]:
        """Return the line, and the ``params`` that it does not give itself."""
        own = {word.partition("=")[0] for word in line}
        params = (self.params or {}).items()
        return [*line, *(f"{key}={value}" for key, value in params if key not in own)]

    def parsed(self, words: Sequence[str]) -> list[Override]:
        assert self.hydra_context is not None
        loader = self.hydra_context.config_loader
        return OverridesParser.create(config_loader=loader).parse_overrides(list(words))

    def combinations(self, words: Sequence[str]) -> list[list[str]]:
        """Return every combination of the values in ``words``."""
        from hydra._internal.core_plugins.basic_sweeper import BasicSweeper  # once it is registered

        (found,) = BasicSweeper.split_arguments(self.parsed(words), None)
        return [list(job) for job in found]

    def begin(self, jobs: Sequence[Sequence[str]], count: str = "") -> None:
        """Begin the sweep; it is called by the values in ``jobs``, and ``count``."""
        assert self.config is not None
        choices, typed = self.config.hydra.runtime.choices, self.config.hydra.overrides.task
        sweep.begin(self.folder, self.config, titles.of_sweep(choices, typed, jobs, count))
        OmegaConf.save(self.config, self.folder / "multirun.yaml")
        garbage.collect()
        self.begun = True

    def add(self, jobs: Sequence[Sequence[str]], **about: Any) -> range:
        """Compose and check more ``jobs``; returns their numbers. A mistake in the first ones is
        found before the sweep begins; later, a job that is refused fails alone. ``about`` is
        ``sweep.go_on``'s."""
        numbers = range(len(self.jobs), len(self.jobs) + len(jobs))
        for number, overrides in zip(numbers, jobs, strict=True):
            try:
                options.check(self.jobs_launcher.compose(self.folder, number, overrides))
            except ThimbleError as error:
                if not self.begun:
                    raise
                del self.jobs_launcher.composed[number]
                progress.lost(self.folder, number, str(error))
        if not self.begun:
            self.begin(jobs)
        self.jobs += [list(job) for job in jobs]
        sweep.go_on(self.folder, self.jobs, self.tries, **about)
        return numbers

    def figure(self, result: Mapping[str, Any], key: str) -> float:
        """Raises ThimbleError where a job has none called ``key``."""
        if not isinstance(found := result.get(key), int | float):
            raise ThimbleError(
                f"hydra.sweeper: {key} is no figure of {result['run_dir']}: give another, or a "
                "later stage with until= (of sweep=architectures: hydra.sweeper.fits=)"
            )
        return found

    def _round(
        self, jobs: Sequence[Sequence[str]], total: int = 0, **about: Any
    ) -> list[dict[str, Any]]:
        """Run more jobs of the sweep, of ``total`` or more; returns their results. ``about`` is
        ``sweep.go_on``'s."""
        numbers = self.add(jobs, **about)
        names = titles.names([*jobs, *about.get("others", ())])
        self.view.expect(dict(zip(numbers, names, strict=False)), total)
        self.jobs_launcher.launch(jobs, numbers.start)
        return sweep.collect(self.folder, self.jobs)[numbers.start :]


class EveryCombination(Sweeps):
    """Every combination of the values given, on the command line or as ``params`` in a file.

    ``jobs`` are lines of overrides for what is no combination; each is combined with the others,
    and what it gives comes before ``params``.
    """

    def __post_init__(self) -> None:
        self.lines = [line.split() for line in self.jobs or [""]]

    def search(self, arguments: list[str]) -> None:
        assert self.config is not None
        study: Any = OmegaConf.to_container(self.config.study)
        found = [
            each
            for line in self.lines
            for job in self.combinations([*self.words(line), *arguments])
            for each in variants(job, study)
        ]
        sets = [values for _, values in found]
        self._round([job for job, _ in found], sets=sets if any(sets) else [])


def variants(
    job: Sequence[str], study: Sequence[Mapping[str, Any]]
) -> list[tuple[list[str], dict[str, Any]]]:
    """``job``, a list of overrides, and one more for each mapping of dotted keys to values in
    ``study``: other values that an experiment's jobs are run with, too. With each these values,
    none for the job itself. A job that says ``study=[]`` has no others."""
    sets = [{}, *(() if "study=[]" in job else study)]
    return [
        (
            [word for word in job if _key(word) not in ("study", *values)]
            + [f"{name}={value}" for name, value in values.items()],
            {**values},
        )
        for values in sets
    ]


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~")
