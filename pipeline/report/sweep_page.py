"""``sweep.html``: a sweep's jobs as a table, as a front over two metrics, and their memory maps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.artifacts import read_json
from pipeline.metrics import METRICS
from pipeline.report.template import embedded, environment
from pipeline.report.words import called, counts

MORE = ("accuracy_", "agreement_", "throughput_fps", "wear_years_")
"""Of metrics whose names begin so, more is better; of the others less."""

FIRST = ("sram_bytes", "pmu_bytes", "accuracy_int", "latency_us", "energy_uj", "flash_bytes")
"""Metrics that people look at first: the columns of the table begin with these."""

Job = Mapping[str, Any]


def html(
    folder: Path, jobs: Sequence[Job], rows: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> str:
    """
    Args:
        folder: of the sweep, in which the page will lie.
        jobs: their results; rows: the same, flat; names: what tells them apart.
    """
    metrics = known(rows)
    content = {
        "metrics": [
            {"key": key, "name": called(key), "counts": counts(key), "more": key.startswith(MORE)}
            for key in metrics
        ],
        "jobs": [
            {
                "name": name,
                "status": job["status"],
                "values": {key: row[key] for key in metrics if key in row},
                "why": why(job),
                "page": link(folder, Path(job["run_dir"])),
                "map": thumbnail(Path(job["run_dir"])),
            }
            for job, row, name in zip(jobs, rows, names, strict=True)
        ],
    }
    page = environment().get_template("sweep.html.j2")
    return page.render(title=f"{len(jobs)} jobs", content=content, data=embedded(content))


def known(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The metrics that any job has as a number; those that tell jobs apart first."""
    found = [
        key
        for key in dict.fromkeys((*FIRST, *METRICS))
        if any(isinstance(row.get(key), int | float) for row in rows)
        and not (key.startswith("accuracy_") and any(row.get("random_weights") for row in rows))
    ]
    return sorted(found, key=lambda key: len({row[key] for row in rows if key in row}) < 2)


def why(job: Job) -> str:
    """What became of a job that has no place on the front."""
    if job["status"] == "infeasible" and job.get("needed_bytes") is not None:
        lacks = job["needed_bytes"] - job["available_bytes"]
        return f"{job['resource']}: {lacks:,.0f} B too many"
    return str(job.get("error", ""))


def link(folder: Path, run: Path) -> str:
    """From the sweep's page to the job's own, if there is one."""
    pages = (run / name for name in ("report.html", "plan.html"))
    found = next((page for page in pages if page.is_file()), None)
    return Path(os.path.relpath(found, folder)).as_posix() if found else ""


def thumbnail(run: Path) -> dict[str, Any] | None:
    report = run / "schedule.json"
    return read_json(report).get("thumbnail") if report.is_file() else None
