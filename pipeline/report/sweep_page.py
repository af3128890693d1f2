"""``sweep.html``: a sweep's jobs as a table, as a front over two metrics, and their memory maps."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.artifacts import read_json
from pipeline.report.memory_map.thumbnail import LETTERS
from pipeline.report.template import embedded, environment
from pipeline.words import METRICS, MORE, called, counts

FIRST = (
    *("sram_bytes", "planned_sram_bytes", "pmu_bytes", "accuracy_int", "latency_us", "modelled_us"),
    *("energy_uj", "flash_bytes", "planned_flash_bytes"),
)
"""Metrics that people look at first: the columns of the table begin with these."""

Job = Mapping[str, Any]


def html(
    folder: Path,
    jobs: Sequence[Job],
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    compared: Mapping[str, Any] | None = None,
) -> str:
    """
    Args:
        folder: of the sweep, in which the page will lie.
        jobs: their results; rows: the same, flat; names: what tells them apart.
        compared: what differs, as docs/compare.schema.json has it, of a few runs that are no sweep.
    """
    metrics = known(rows)
    content: dict[str, Any] = {
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
    letters = {letter for job in content["jobs"] if job["map"] for row in job["map"]["rows"]
               for letter in row.lower()}  # fmt: skip
    return (
        environment()
        .get_template("sweep.html.j2")
        .render(
            title=title(jobs, "run" if compared else "job"),
            compared=compared,
            command="" if compared else command(folder),
            counted=counted([job["status"] for job in jobs]),
            present=[kind for kind, shades in LETTERS.items() if letters & set(shades)],
            data=embedded(content),
        )
    )


def title(jobs: Sequence[Job], what: str = "job") -> str:
    """Say how many jobs, and of what, where that is the same for all of them."""
    alike = []
    for key, before in (("model", "of"), ("hardware", "on")):
        values = {str(job.get(key, "")) for job in jobs}
        alike += [f"{before} {value}" for value in values if value and len(values) == 1]
    return " ".join([f"{len(jobs)} {what}{'s' if len(jobs) > 1 else ''}", *alike])


def command(folder: Path) -> str:
    """Say what was typed for the sweep in ``folder``; "" where that is not known."""
    about = folder / "sweep.json"
    words = read_json(about)["overrides"] if about.is_file() else []
    return " ".join(["python run.py -m", *words]) if words else ""


def counted(states: Sequence[str]) -> str:
    """``7 fit, 1 does not``."""
    found = Counter(states)
    words = {"ok": ("fits", "fit"), "infeasible": ("does not fit", "do not fit")}
    order = sorted(found, key=lambda state: [*words, state].index(state))
    return ", ".join(
        f"{found[state]} {words.get(state, (state, state))[found[state] > 1]}" for state in order
    )


def known(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the metrics that any job has as a number; those that tell jobs apart first."""
    found = [
        key
        for key in dict.fromkeys((*FIRST, *METRICS))
        if any(isinstance(row.get(key), int | float) for row in rows)
        and not (key.startswith("accuracy_") and any(row.get("random_weights") for row in rows))
    ]
    return sorted(found, key=lambda key: len({row[key] for row in rows if key in row}) < 2)


def why(job: Job) -> str:
    """Say what became of a job that has no place on the front."""
    if job["status"] == "infeasible" and job.get("needed_bytes") is not None:
        lacks = job["needed_bytes"] - job["available_bytes"]
        return f"{job['resource']}: {lacks:,.0f} {job.get('unit', 'B')} too many"
    return str(job.get("error", ""))


def link(folder: Path, run: Path) -> str:
    """Return the link from the sweep's page to the job's own; "" if there is none."""
    pages = (run / name for name in ("report.html", "plan.html"))
    found = next((page for page in pages if page.is_file()), None)
    return Path(os.path.relpath(found, folder)).as_posix() if found else ""


def thumbnail(run: Path) -> dict[str, Any] | None:
    report = run / "schedule.json"
    return read_json(report).get("thumbnail") if report.is_file() else None
