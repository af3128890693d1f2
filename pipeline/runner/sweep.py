"""Many jobs: where they are, what became of each, one table and one JSON object at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline.artifacts import read_json, write_json
from pipeline.runner import disk, progress, table
from pipeline.runner.progress import FOLDER, KILLED
from pipeline.runner.screen import fail, json_line
from pipeline.tracking import spool
from pipeline.tracking.checkout import code_version
from pipeline.tracking.entry import Entry

ABOUT = "sweep.json"
"""File in the sweep's folder: what it was started with."""

NOT_STARTED = "not started"
"""The ``status`` of a job that the sweep ended before; the same command goes on with it."""

RELATIVE = {"instructions_over_ordinary": "instructions", "pmu_over_ordinary": "pmu_bytes"}
"""Metrics of a job, and of which the sweep's ordinary job is the divisor."""


def begin(folder: Path, config: DictConfig, title: str) -> None:
    """Make ``folder`` that of a sweep, whose jobs ``go_on`` adds; processes started from now on
    belong to it. It is tracked as ``title``."""
    shutil.rmtree(folder / progress.JOBS, ignore_errors=True)
    about: dict[str, Any] = {
        "jobs": [],
        "output": config.output.name,
        "tracking": config.tracking.name,
        "overrides": list(config.hydra.overrides.task),
        "figure": OmegaConf.to_container(config.figure),
    }
    if about["tracking"] != "none":
        about["entry"] = asdict(spool.begin(folder, title, code_version(), parent=True))
    write_json(folder / ABOUT, about)
    os.environ[FOLDER] = str(folder)


def go_on(
    folder: Path, jobs: Sequence[Sequence[str]], tries: Sequence[int] = (), **more: Any
) -> None:
    """Have the sweep in ``folder`` the ``jobs``, those that it has and others after them.

    Args:
        tries: the numbers of jobs whose refusal is a result, not a failure of the sweep.
        more: ``sets``, of each job of a study, the other values that it has; ``others``, jobs that
            there may be, for the names of those that there are; ``best``, numbers of jobs.
    """
    about = read_json(folder / ABOUT)
    write_json(folder / ABOUT, {**about, **more, "jobs": list(jobs), "tries": list(tries)})


def finish(folder: Path, error: str = "") -> dict[str, Any]:
    """Collect the jobs of the sweep in ``folder``; keep, show and track them; returns the result.

    A sweep is ok when each job has a result; "does not fit" is one.
    """
    about = read_json(folder / ABOUT)
    full = _keep(folder, {"status": "failed"})
    if full and not error:  # what jobs wanted to say is lost, too
        fail(error := full)
    jobs = compared(collect(folder, about["jobs"], why=error or KILLED))
    for job, values in zip(jobs, about.get("sets", ()), strict=False):
        job["set"] = values
    tries = set(about.get("tries", ()))
    counting = {job["status"] for number, job in enumerate(jobs) if number not in tries}
    result: dict[str, Any] = {
        "status": "ok" if counting <= {"ok", "infeasible"} and not error else "failed",
        "run_dir": str(folder),
        "jobs": jobs,
        "overrides": about["overrides"],
    }
    unknown = (line for job in jobs for line in job.get("unpublished", ()))
    more = {
        "best": about.get("best"),
        "rows": [row for job in jobs for row in job.get("rows", ())],
        "unpublished": list(dict.fromkeys(unknown)),
        "error": error,
    }
    result |= {key: value for key, value in more.items() if value}
    _keep(folder, result)
    files = table.keep(folder, result, about.get("figure"))
    if about["output"] == "json":
        json_line(result)
    else:
        table.show(result, files)
    if about.get("entry"):
        entry = Entry(**about["entry"])
        with contextlib.suppress(OSError):  # a full disk, a read-only cache: the jobs say so
            if all(job.get("began") is False for job in jobs):
                spool.forget(entry)
            else:
                spool.end(entry, result)
                spool.start_tracking(wait=about["tracking"] == "wait")
    return result


def _keep(folder: Path, result: Mapping[str, Any]) -> str:
    """Write the sweep's result; returns why it cannot be, "" if it can."""
    try:
        write_json(folder / "result.json", result)
    except OSError as error:
        return disk.said(error, folder)
    return ""


def collect(folder: Path, jobs: Sequence[Sequence[str]], why: str = KILLED) -> list[dict[str, Any]]:
    """Return a result for each of ``jobs``, in order: of those that have none, what became of them:
    ``why`` of those that had started."""
    notes, found = progress.read(folder), []
    for number, overrides in enumerate(jobs):
        result = {"status": NOT_STARTED, "run_dir": str(folder / str(number))}
        if note := notes.get(number):
            result = progress.result(note, why) or result
        found.append({"overrides": list(overrides), **result})
    return found


def compared(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``jobs`` with RELATIVE metrics, in their rows too, where an ordinary one of the same network
    has the figure."""

    def network(job: Mapping[str, Any]) -> str:
        """Return its name and everything that was said about it, and the core that counts."""
        words = sorted(word for word in job["overrides"] if word.startswith("model"))
        return str((job.get("model"), job.get("hardware"), words))

    bases = {network(job): job for job in jobs if job.get("strategy") == "ordinary"}
    found = []
    for job in jobs:
        pairs = (
            (k, job.get(of), bases.get(network(job), {}).get(of)) for k, of in RELATIVE.items()
        )
        own = {name: ours / base for name, ours, base in pairs if ours and base}
        rows = [row | {"ours": own.get(row["metric"], row["ours"])} for row in job.get("rows", ())]
        found.append({**job, **own, **({"rows": rows} if rows else {})})
    return found
