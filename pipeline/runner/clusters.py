"""A sweep's jobs on a cluster: SLURM, through submitit, and a Ray cluster that already runs.

Both libraries are imported when they are asked for: they are the extras ``slurm`` and ``ray``.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import socket
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.runner.launchers import Call, Jobs, run
from pipeline.runner.progress import KILLED, lost


class Submitit(Jobs):
    """A job array. ``cluster`` is slurm, or local to try it out: processes here, all at once.

    The other options are submitit's; those of SLURM alone begin with ``slurm_``.
    """

    def start(self, calls: list[Call]) -> None:
        submitit = _library("submitit", "slurm")
        options = {key: value for key, value in self.options.items() if value is not None}
        folder = calls[0].sweep / ".submitit" / "%j"
        path = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))  # wherever it is started
        try:
            executor = submitit.AutoExecutor(folder=folder, cluster=options.pop("cluster"))
            executor.update_parameters(**options)
            jobs = executor.map_array(run, calls)
        except (RuntimeError, TypeError, ValueError, submitit.core.utils.FailedJobError) as error:
            raise ThimbleError(f"hydra.launcher: {str(error).splitlines()[0]}") from None
        try:
            for job, call in zip(jobs, calls, strict=True):
                try:
                    job.result()
                except Exception:  # killed, out of memory or of time: submitit wraps it
                    where = f"job {job.job_id}, state {job.state}, log {job.paths.stderr}"
                    lost(call.sweep, call.number, f"{KILLED} ({where})")
        except BaseException:
            for job in jobs:
                if not job.done():
                    job.cancel()
            raise


class Ray(Jobs):
    """Tasks on the cluster at ``ray.init.address``; ``ray.remote`` are Ray's options of a task."""

    def start(self, calls: list[Call]) -> None:
        ray = _library("ray", "ray")
        given = self.options["ray"]
        init = {key: value for key, value in given.get("init", {}).items() if value is not None}
        env = {"env_vars": {"PYTHONPATH": str(ROOT)}}
        with redirect_stdout(StringIO()):  # Ray writes there, and it is the JSON line's
            try:
                if found := re.fullmatch(r"([\w.-]+):(\d+)", init.get("address", "auto")):
                    # nobody listens there: Ray would try for minutes
                    socket.create_connection((found[1], int(found[2])), timeout=10).close()
                ray.init(log_to_driver=False, logging_level=logging.ERROR, runtime_env=env, **init)
            except (OSError, TypeError, ValueError) as error:
                said = str(error).splitlines()[0]
                raise ThimbleError(
                    f"Ray: {said}: start a cluster (ray start --head), or give hydra.launcher.ray"
                    ".init.address=HOST:PORT"
                ) from None
            task = ray.remote(**{"max_retries": 0, **given.get("remote", {})})(run)
            tasks = [task.remote(call) for call in calls]
            try:
                for reference, call in zip(tasks, calls, strict=True):
                    try:
                        ray.get(reference)
                    except ray.exceptions.RayError as error:
                        lost(call.sweep, call.number, f"{KILLED} ({type(error).__name__})")
            except BaseException:
                for reference in tasks:
                    ray.cancel(reference, force=True)
                raise
            finally:
                ray.shutdown()


def _library(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ThimbleError(
            f"{name} is not installed: pip install -e '.[{extra}]' -c constraints.txt"
        ) from None
