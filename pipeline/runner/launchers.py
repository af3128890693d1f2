"""How a sweep's jobs become processes: one after another, or side by side on this machine.

Hydra's own plugins give up a whole sweep when one process dies. Here its job is a row that says so
and the others go on. Clusters are in ``clusters.py``.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import psutil
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

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
    """What all launchers share: ``start`` has to run each call, and note those that got lost."""

    def __init__(self, **options: Any) -> None:
        content = OmegaConf.to_container(OmegaConf.create(options), resolve=True)
        assert isinstance(content, dict)
        self.options: dict[str, Any] = {str(key): value for key, value in content.items()}
        self.composed: dict[int, DictConfig] = {}

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.context, self.task, self.config = hydra_context, task_function, config

    def compose(self, sweep: Path, number: int, overrides: Sequence[str]) -> DictConfig:
        """The config of job ``number``; kept until it is launched, composing takes a while."""
        config = self.context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = config.hydra.job.num = number
            config.hydra.sweep.dir = str(sweep)  # else each process puts its own time there
        self.composed[number] = config
        return config

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> list[JobReturn]:
        """Run the jobs from ``initial_job_idx`` that are composed; what they give is in their
        folders."""
        numbers = range(initial_job_idx, initial_job_idx + len(job_overrides))
        state, folder, env = Singleton.get_state(), str(Path.cwd()), environment()
        self.start(
            [
                Call(number, self.composed.pop(number), self.task, self.context, state, folder, env)
                for number in numbers
                if number in self.composed
            ]
        )
        return []

    def start(self, calls: list[Call]) -> None:
        raise NotImplementedError


class Serial(Jobs):
    """One job after another, in this process."""

    def start(self, calls: list[Call]) -> None:
        for call in calls:
            run(call)


class Local(Jobs):
    """``n_jobs`` side by side on this machine, -1 for as many as it has cores.

    Each has a joblib (loky) pool of a single process: a pool breaks as a whole when one of its
    processes is killed.
    """

    def start(self, calls: list[Call]) -> None:
        from joblib import cpu_count

        wanted = int(self.options["n_jobs"])
        width = min(len(calls), wanted if wanted > 0 else max(1, cpu_count() + 1 + wanted))
        waiting: SimpleQueue[Call] = SimpleQueue()
        for call in calls:
            waiting.put(call)
        slots = [Slot(waiting) for _ in range(width)]
        with ThreadPoolExecutor(width, initializer=deaf) as threads:
            try:
                for future in [threads.submit(slot.work) for slot in slots]:
                    future.result()
            except BaseException:  # Ctrl-C: what runs is ended with its stages, the rest not begun
                for slot in slots:
                    slot.stop()
                raise


def deaf() -> None:
    """This thread, and workers started from it, do not hear Ctrl-C, which a terminal sends to all
    processes: the main thread ends them, and each would print a trace of its own."""
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # loky wants it, and its start would let the signal in again
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


class Slot:
    """One worker process; another takes its place when it is killed."""

    def __init__(self, waiting: SimpleQueue[Call]) -> None:
        self._waiting = waiting
        self._stopped = False
        self._lock = threading.Lock()
        self._pool: Any = None

    def work(self) -> None:
        """Run what is waiting until there is no more, or ``stop`` is called."""
        from joblib.externals.loky.process_executor import (
            ShutdownExecutorError,
            TerminatedWorkerError,
        )

        with suppress(Empty, ShutdownExecutorError):
            while True:
                call = self._waiting.get_nowait()
                try:
                    self._submit(call).result()
                except TerminatedWorkerError:
                    self._pool = None
                    if not self._stopped:
                        lost(call.sweep, call.number, KILLED)
        self.stop()

    def stop(self) -> None:
        """End the process and those it started.

        loky kills these first: a process that still ran would note that its stage was killed.
        """
        with self._lock:
            self._stopped = True
            if self._pool is not None:
                for pid in list(self._pool._processes):
                    with suppress(psutil.NoSuchProcess):
                        psutil.Process(pid).suspend()
                self._pool.shutdown(wait=False, kill_workers=True)

    def _submit(self, call: Call) -> Any:
        from joblib.externals.loky.process_executor import (
            ProcessPoolExecutor,
            ShutdownExecutorError,
        )

        with self._lock:
            if self._stopped:
                raise ShutdownExecutorError
            self._pool = self._pool or ProcessPoolExecutor(1)
            return self._pool.submit(run, call)


def environment() -> dict[str, str]:
    """This process's variables that a job needs, wherever it runs."""
    kept = {k: v for k, v in os.environ.items() if k.startswith(("THIMBLE_", "HYDRA_"))}
    return {**kept, "THIMBLE_HOME": str(home.home())}


@contextmanager
def importable() -> Iterator[None]:
    """For processes started in here, this project can be imported wherever they are started."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(home.ROOT), before]))
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def register(classes: Mapping[str, type[Any]]) -> None:
    """Make plugins known to Hydra, which takes them from the package ``hydra_plugins`` only."""
    for name, plugin in classes.items():
        Plugins.instance().class_name_to_class[f"hydra_plugins.thimble.{name}"] = plugin
    # what people know it by; a file of that name would clash with the plugin, where it is installed
    node = {"_target_": "hydra_plugins.thimble.Local", "n_jobs": -1}
    ConfigStore.instance().store("joblib", node, group="hydra/launcher")
