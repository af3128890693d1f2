"""A sweep's jobs on a cluster: SLURM, through submitit, and a Ray cluster that already runs.

Both libraries are imported when they are asked for: they are the extras ``slurm`` and ``ray``.
"""

from __future__ import annotations

import logging
import re
import socket
import time
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.runner.launchers import Call, Jobs, importable, run
from pipeline.runner.progress import KILLED, lost

POLL_SECONDS = 1.0


class Submitit(Jobs):
    """A job array. ``cluster`` is slurm, or local to try it out: processes here, all at once.

    The other options are submitit's; those of SLURM alone begin with ``slurm_``.
    """

    def start(self, calls: list[Call]) -> None:
        try:
            import submitit
        except ImportError:
            raise _missing("submitit", "slurm") from None
        options = {key: value for key, value in self.options.items() if value is not None}
        try:
            executor = submitit.AutoExecutor(
                folder=calls[0].sweep / ".submitit" / "%j", cluster=options.pop("cluster")
            )
            executor.update_parameters(**options)
            with importable():
                jobs = executor.map_array(run, calls)
        except (RuntimeError, TypeError, ValueError, submitit.core.utils.FailedJobError) as error:
            raise ThimbleError(f"hydra.launcher: {str(error).splitlines()[0]}") from None
        waiting = list(zip(jobs, calls, strict=True))
        try:
            while waiting:
                time.sleep(POLL_SECONDS)
                for pair in [pair for pair in waiting if pair[0].done()]:
                    waiting.remove(pair)
                    _account(*pair)
        except BaseException:
            for job, _ in waiting:
                job.cancel()
            raise


def _account(job: Any, call: Call) -> None:
    """Note a job that ended without a word: killed, out of memory or of time."""
    try:
        job.result()
    except Exception:  # whatever it was, submitit wraps it
        where = f"job {job.job_id}, state {job.state}, log {job.paths.stderr}"
        lost(call.sweep, call.number, f"{KILLED} ({where})")


class Ray(Jobs):
    """Tasks on the cluster at ``ray.init.address``; ``ray.remote`` are Ray's options of a task."""

    def start(self, calls: list[Call]) -> None:
        try:
            import ray
        except ImportError:
            raise _missing("ray", "ray") from None
        with redirect_stdout(StringIO()):  # Ray writes there, and it is the JSON line's
            self._start(ray, calls)

    def _start(self, ray: Any, calls: list[Call]) -> None:
        given = self.options["ray"]
        init = {key: value for key, value in given.get("init", {}).items() if value is not None}
        env = {"env_vars": {"PYTHONPATH": str(ROOT)}}
        try:
            _reach(init.get("address", "auto"))
            ray.init(log_to_driver=False, logging_level=logging.ERROR, runtime_env=env, **init)
        except (OSError, TypeError, ValueError) as error:
            said = str(error).splitlines()[0]
            raise ThimbleError(
                f"Ray: {said}: start a cluster (ray start --head), or give hydra.launcher.ray"
                ".init.address=HOST:PORT"
            ) from None
        task = ray.remote(**{"max_retries": 0, **given.get("remote", {})})(run)
        waiting = {task.remote(call): call for call in calls}
        try:
            while waiting:
                for reference in ray.wait(list(waiting))[0]:
                    call = waiting.pop(reference)
                    try:
                        ray.get(reference)
                    except ray.exceptions.RayError as error:
                        lost(call.sweep, call.number, f"{KILLED} ({type(error).__name__})")
        except BaseException:
            for reference in waiting:
                ray.cancel(reference, force=True)
            raise
        finally:
            ray.shutdown()


def _reach(address: str) -> None:
    """Raise OSError at once if nobody listens there: Ray would try for minutes."""
    if found := re.fullmatch(r"([\w.-]+):(\d+)", address):
        socket.create_connection((found[1], int(found[2])), timeout=10).close()


def _missing(package: str, extra: str) -> ThimbleError:
    return ThimbleError(
        f"{package} is not installed: pip install -e '.[{extra}]' -c constraints.txt"
    )
