"""A sweep's jobs as a table: on the terminal, as CSV and JSON, and as pictures."""

from __future__ import annotations

import contextlib
import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from pipeline.artifacts import read_json, write_bytes, write_json
from pipeline.report import repeats
from pipeline.runner.results import reports
from pipeline.runner.screen import console, difference, published, shown, table
from pipeline.runner.titles import names
from pipeline.words import METRICS, valued

COLUMNS = {
    "status": "status",
    "pmu_bytes": "peak",
    "sram_bytes": "SRAM",
    "planned_sram_bytes": "SRAM needed",
    "flash_bytes": "flash",
    "planned_flash_bytes": "flash needed",
    "latency_us": "latency",
    "modelled_us": "modelled",
    "makespan_us": "plan",
    "accuracy_int": "accuracy",
}

PLANNED = {"planned_sram_bytes": "sram_bytes", "planned_flash_bytes": "flash_bytes",
           "modelled_us": "latency_us"}  # fmt: skip
"""Columns that are shown where some job that fits lacks the other, measured one."""

ALWAYS = ("status", "model", "data", "hardware", "strategy", "target")
WHY = ("resource", "needed_bytes", "available_bytes", "error")
"""Columns of the files besides the overrides and the metrics."""

SEARCH = "search.json"
"""File in the folder of a search: of each network drawn its ``overrides``, the ``bytes`` of
activations of each strategy that fits, the ``validation`` after each of its ``rungs``, and whether
it ``survives``; the names of all ``strategies``."""


def keep(folder: Path, result: Mapping[str, Any], figure: Mapping[str, Any] | None) -> list[Path]:
    """Write, and return, what a person may want to open: ``table.csv`` (beside it ``table.json``);
    ``seeds.csv`` where jobs differ by their seed alone; ``rows.csv``, published figures beside
    ours; ``sweep.html``; and pictures, ``figure`` among them, of which there is something to draw.
    One that fails is said on stderr: it is not worth a sweep's result."""
    from pipeline.report import architectures, figures, pareto, sweep_page  # with them matplotlib

    jobs: Sequence[Mapping[str, Any]] = result["jobs"]
    rows, called = flat(jobs), names([job["overrides"] for job in jobs])
    beside = [row | {"difference": difference(row)} for row in result.get("rows", ())]
    drawn: dict[str, Callable[[], bytes | None]] = {
        "table.csv": lambda: _csv(rows),
        "seeds.csv": lambda: _csv(repeats.rows(jobs)),
        "rows.csv": lambda: _csv(beside),
        "sweep.html": lambda: sweep_page.html(folder, jobs, rows, called).encode(),
        "pareto.png": lambda: pareto.png(jobs, called),
        "profile.png": lambda: profiles(jobs, called),
    }
    if figure:
        drawn["figure.png"] = lambda: figures.png(figure, [_whole(job) for job in jobs])
    if (folder / SEARCH).is_file():
        drawn["architectures.png"] = lambda: architectures.png(read_json(folder / SEARCH))
    files: list[Path] = []
    with contextlib.suppress(OSError):  # a full disk: the table on the screen remains
        write_json(folder / "table.json", rows)
        for name, draw in drawn.items():
            try:
                content = draw()
            except Exception as error:
                print(f"{name} could not be drawn: {error}", file=sys.stderr)
                continue
            if content:
                write_bytes(folder / name, content)
                files.append(folder / name)
    return files


def _csv(rows: Sequence[Mapping[str, Any]]) -> bytes | None:
    text = StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode() if rows else None


def profiles(jobs: Sequence[Mapping[str, Any]], called: Sequence[str]) -> bytes | None:
    """Return the memory of each layer, where all jobs are plans for one network."""
    from pipeline.report.profile import png

    found = []
    for job, name in zip(jobs, called, strict=True):
        layers = reports(Path(job["run_dir"])).get("profile", [])
        found.append((name, {each["layer"]: each["bytes"] for each in layers}))
    return png(found) if len({job.get("model") for job in jobs}) == 1 else None


def _whole(job: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**job, **reports(Path(job["run_dir"]))} if "model" in job else job


def flat(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A flat row for each job: its overrides, a column each, what it is, its metrics, its end."""
    rows = []
    for place, job in enumerate(jobs):
        words = (word.partition("=") for word in job["overrides"])
        row = {"job": place} | {key.lstrip("+~"): value for key, _, value in words}
        known = {key: job[key] for key in (*ALWAYS, *METRICS, *WHY) if job.get(key) is not None}
        rows.append(row | known | {"run_dir": job["run_dir"]})
    return rows


def show(result: Mapping[str, Any], files: Sequence[Path] = ()) -> None:
    """The table for a person, what failed and why, and where to look further."""
    screen, jobs = console(), result["jobs"]
    screen.print(f"{len(jobs)} jobs in {shown(Path(result['run_dir']))}", soft_wrap=True)
    planned = [job for job in jobs if job["status"] != "failed"]
    known = [
        key
        for key in COLUMNS
        if any(job.get(key) is not None for job in jobs)
        and not (key in PLANNED and all(PLANNED[key] in job for job in planned))
    ]
    called, rows, errors = names([job["overrides"] for job in jobs]), [], []
    for name, job in zip(called, jobs, strict=True):
        random = {"accuracy_int": None} if job.get("random_weights") else {}  # it means nothing
        rows.append((name, *(valued(key, {**job, **random}.get(key)) for key in known)))
        if job.get("error"):
            errors.append(f"  {name}: {job['error']}")
    columns = [("job", "left"), *((COLUMNS[key], "right") for key in known)]
    screen.print(table(columns, rows, gap=1))
    warnings = dict.fromkeys(f"  {line}" for job in jobs for line in job.get("warnings", ()))
    best = [f"  best       {called[place]}" for place in result.get("best", ())]
    places = [f"  {file.stem:<10} {shown(file)}" for file in files]
    for line in (*published(result), *errors, *warnings, *best, *places):
        screen.print(line, soft_wrap=True)
