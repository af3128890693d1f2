"""Turn a sweep's jobs into processes: one after another, or side by side on this machine.

Hydra's own plugins give up a whole sweep when one process dies. Here its job is a row that says so
and the others go on. Clusters are in ``clusters.py``.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from typing import Any

import psutil
from hydra._internal.config_loader_impl import get_overrides_dirname
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import OverrideType
from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from pipeline import home
from pipeline.runner.progress import FOLDER, KILLED, lost


@dataclass(frozen=True)
class Call:
    """All that another process, on another machine perhaps, needs to run a job of a sweep.

    The project, ``folder`` and the cache are expected at the same paths there.
    """

    number: int
    config: DictConfig
    task: TaskFunction
    context: HydraContext
    singletons: Any
    folder: str
    environment: dict[str, str]

    @property
    def sweep(self) -> Path:
        return Path(self.environment[FOLDER])

    @cached_property
    def network(self) -> str:
        """All that may be said of what is trained and quantized."""
        groups = ("seed", "data", "frontend", "model", "train", "quantize")
        return str([self.config.get(group) for group in groups])


def first(waiting: Sequence[Call], making: Collection[str]) -> Call:
    """Return the first call that does not wait for one of the networks ``making``, or the first."""
    return next((call for call in waiting if call.network not in making), waiting[0])


def run(call: Call) -> None:
    """Run a job in this process. It keeps its result in its folder; a bug's error is noted."""
    home.close_to_others()  # on a cluster nothing of run.py's has been inherited
    os.environ.update(call.environment)
    os.chdir(call.folder)
    setup_globals()
    Singleton.set_state(call.singletons)
    HydraConfig.instance().set_config(call.config)
    done = run_job(
        task_function=call.task,
        config=call.config,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
        hydra_context=call.context,
    )
    if done.status == JobStatus.FAILED:
        error = done._return_value
        lost(call.sweep, call.number, f"{type(error).__name__}: {error}")
        if os.environ.get("THIMBLE_TRACE") == "1":
            traceback.print_exception(error)


class Jobs(Launcher):
    """Base of all launchers: ``start`` has to run each call, and note those that got lost."""

    def __init__(self, **options: Any) -> None:
        self.options: Any = OmegaConf.to_container(OmegaConf.create(options), resolve=True)
        self.composed: dict[int, DictConfig] = {}
        self._bases: dict[tuple[str, ...], DictConfig] = {}

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.context, self.task, self.config = hydra_context, task_function, config

    def compose(self, sweep: Path, number: int, overrides: Sequence[str]) -> DictConfig:
        """The config of job ``number``; kept until it is launched, composing takes a while."""
        config = self._config(list(overrides))
        with open_dict(config):
            config.hydra.job.id = config.hydra.job.num = number
            config.hydra.sweep.dir = str(sweep)  # else each process puts its own time there
        self.composed[number] = config
        return config

    def _config(self, words: list[str]) -> DictConfig:
        """Compose ``words`` with Hydra, which takes a quarter of a second: it does so once for
        jobs that have the same options of groups, and each job's values are put into a copy."""
        loader, choices = self.context.config_loader, self.config.hydra.runtime.choices
        parsed = OverridesParser.create(config_loader=loader).parse_overrides(words)
        values = [
            each
            for each in parsed
            if not (each.is_hydra_override() or "/" in each.key_or_group or each.package)
            and each.key_or_group not in choices
        ]
        options = tuple(str(each.input_line) for each in parsed if each not in values)
        if options not in self._bases:
            self._bases[options] = loader.load_sweep_config(self.config, list(options))
        config = deepcopy(self._bases[options])
        try:
            for each in values:
                if each.type != OverrideType.CHANGE:
                    raise OmegaConfBaseException
                OmegaConf.update(config, each.key_or_group, each.value(), merge=True)
        except OmegaConfBaseException:  # Hydra can do it, or says why not
            return loader.load_sweep_config(self.config, words)
        task = [each for each in parsed if not each.is_hydra_override()]
        config.hydra.overrides.task = [each.input_line for each in task]
        config.hydra.job.override_dirname = get_overrides_dirname(
            task, **config.hydra.job.config.override_dirname
        )
        return config

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> list[JobReturn]:
        """Run the jobs from ``initial_job_idx`` that are composed; what they give is in their
        folders."""
        env = {k: v for k, v in os.environ.items() if k.startswith(("THIMBLE_", "HYDRA_"))}
        env["THIMBLE_HOME"] = str(home.home())
        state, folder = Singleton.get_state(), str(Path.cwd())
        if calls := [
            Call(number, self.composed.pop(number), self.task, self.context, state, folder, env)
            for number in range(initial_job_idx, initial_job_idx + len(job_overrides))
            if number in self.composed
        ]:
            self.start(calls)
        return []

    def start(self, calls: list[Call]) -> None:
        raise NotImplementedError


class Serial(Jobs):
    """One job after another, in this process."""

    def start(self, calls: list[Call]) -> None:
        for call in calls:
            run(call)


EVERY_CORE = {"_target_": "hydra_plugins.thimble.Local", "n_jobs": -1}


class Local(Jobs):
    """``n_jobs`` side by side on this machine, -1 for as many as it has cores. Those of a network
    that one of them is making wait for it while there are others.

    Each runs in a joblib (loky) pool of a single process: a pool breaks as a whole when one of its
    processes is killed.
    """

    def start(self, calls: list[Call]) -> None:
        from joblib import cpu_count
        from joblib.externals.loky.process_executor import ProcessPoolExecutor as Pool
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        width = self.options["n_jobs"]
        waiting, running = list(calls), dict[Future[None], tuple[Call, Any]]()
        made = set[str]()
        ensure_running()  # loky wants it, and its start would let the signal in again
        pools = [Pool(1) for _ in range(min(len(calls), width if width > 0 else cpu_count()))]
        free = list(pools)
        try:
            while waiting or running:
                while waiting and free:
                    making = {each.network for each, _ in running.values()} - made
                    call, pool = first(waiting, making), free.pop()
                    waiting.remove(call)
                    # the new process does not hear Ctrl-C, which a terminal sends to all of a
                    # command: this one ends it, and it would print a trace of its own
                    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                    try:
                        running[pool.submit(run, call)] = call, pool
                    finally:
                        signal.pthread_sigmask(signal.SIG_SETMASK, heard)
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    call, pool = running.pop(ended)
                    made.add(call.network)
                    try:
                        ended.result()
                    except TerminatedWorkerError:
                        lost(call.sweep, call.number, KILLED)
                        pools.append(pool := Pool(1))
                    free.append(pool)
        finally:  # after Ctrl-C, too: what runs is ended with its stages, the rest not begun
            known = [pid for pool in pools for pid in pool._processes or ()]
            for child in psutil.Process().children():
                with suppress(psutil.NoSuchProcess):
                    if child.pid in known:  # its stage is killed before it: it would note that
                        child.suspend()
                    elif "popen_loky" in str(child.cmdline()):  # Ctrl-C came as it began
                        child.kill()
            for pool in pools:
                pool.shutdown(wait=False, kill_workers=True)


def register(classes: Mapping[str, type[Any]]) -> None:
    """Make plugins known to Hydra, which takes them from the package ``hydra_plugins`` only."""
    for name, plugin in classes.items():
        Plugins.instance().class_name_to_class[f"hydra_plugins.thimble.{name}"] = plugin
    # what people know it by; a file of that name would clash with the plugin, where it is installed
    ConfigStore.instance().store("joblib", EVERY_CORE, group="hydra/launcher")
