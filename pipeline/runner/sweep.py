"""Many jobs: where they are, what became of each, one table and one JSON object at the end."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table

from pipeline.artifacts import read_json, write_json
from pipeline.runner.screen import json_line, number, published, shown
from pipeline.tracking import spool
from pipeline.tracking.checkout import code_version

FOLDER = "THIMBLE_SWEEP"
"""The environment variable that names the sweep's folder to this process and its workers."""

ABOUT = "sweep.json"
"""In the sweep's folder: what it was started with."""

COLUMNS = (
    ("status", "status"),
    ("pmu_bytes", "peak B"),
    ("sram_bytes", "SRAM B"),
    ("flash_bytes", "flash B"),
    ("latency_us", "latency ms"),
    ("accuracy_int", "accuracy %"),
)

FILE_WIDTH = 160
"""Columns of the table where there is no terminal to say how many it has."""


class Start(Callback):
    """Hydra calls this before a sweep's first job."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        folder = Path(str(OmegaConf.select(config, "hydra.sweep.dir"))).absolute()
        about = {
            "begin": time.time(),
            "output": config.output.name,
            "tracking": config.tracking.name,
            "overrides": list(config.hydra.overrides.task),
            "tags": code_version(),
        }
        write_json(folder / ABOUT, about)
        os.environ[FOLDER] = str(folder)


def finish(folder: Path, error: str = "") -> dict[str, Any]:
    """Collect the jobs of the sweep in ``folder``; keep, show and track them; returns the result.

    A sweep is ok when each job has a result; "does not fit" is one.
    """
    jobs = collect(folder)
    ended = {job["status"] for job in jobs} <= {"ok", "infeasible"}
    result: dict[str, Any] = {
        "status": "ok" if ended and jobs and not error else "failed",
        "run_dir": str(folder),
        "jobs": jobs,
    }
    if rows := [row for job in jobs for row in job.get("rows", ())]:
        result["rows"] = rows
    if error:
        result["error"] = error
    about = read_json(folder / ABOUT)
    result["overrides"] = about["overrides"]
    write_json(folder / "result.json", result)
    if about["output"] == "json":
        json_line(result)
    else:
        show(result)
    if about["tracking"] != "none":
        with contextlib.suppress(OSError):  # a full disk, a read-only cache: the jobs say so
            spool.add_sweep(folder, result, about["begin"], about["tags"])
            spool.start_tracking(wait=about["tracking"] == "wait")
    return result


def collect(folder: Path) -> list[dict[str, Any]]:
    """The jobs' results in job order; a job without one was killed."""
    jobs: list[dict[str, Any]] = []
    started = [path for path in folder.iterdir() if (path / ".hydra").is_dir()]
    for path in sorted(started, key=lambda p: (len(p.name), p.name)):
        try:
            jobs.append(json.loads((path / "result.json").read_text()))
        except (OSError, ValueError):
            jobs.append({"status": "failed", "run_dir": str(path), "error": "its process died"})
    return jobs


def show(result: Mapping[str, Any]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    table = Table(title=f"{len(result['jobs'])} jobs in {shown(Path(result['run_dir']))}")
    table.add_column("job", overflow="fold")
    for _, title in COLUMNS:
        table.add_column(title, justify="right")
    for name, job in zip(names(result["jobs"]), result["jobs"], strict=True):
        table.add_row(name, *(cell(key, job.get(key)) for key, _ in COLUMNS))
    console.print(table)
    for line in published(result):
        console.print(line)
    for name, job in zip(names(result["jobs"]), result["jobs"], strict=True):
        if job.get("error"):
            console.print(f"  {name}: {job['error']}")


def names(jobs: list[dict[str, Any]]) -> list[str]:
    """What tells the jobs apart: the overrides that not all of them have."""
    common = set.intersection(*(set(job.get("overrides", ())) for job in jobs)) if jobs else set()
    return [
        " ".join(word for word in job.get("overrides", ()) if word not in common)
        or Path(job["run_dir"]).name
        for job in jobs
    ]


def cell(key: str, value: Any) -> str:
    if value is None:
        return "–"
    if key == "latency_us":
        return f"{value / 1000:.1f}"
    if key == "accuracy_int":
        return f"{100 * value:.2f}"
    return value if isinstance(value, str) else number(value)
