"""A sweep's jobs as a table: on the terminal, as CSV and JSON, and as a picture."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.artifacts import read_json, write_bytes, write_json, write_text
from pipeline.report import repeats
from pipeline.runner.relative import FIGURES
from pipeline.runner.results import reports
from pipeline.runner.scores import SEARCH
from pipeline.runner.screen import difference, number, published, shown
from pipeline.words import METRICS

COLUMNS = (
    ("status", "status"),
    ("pmu_bytes", "peak B"),
    ("sram_bytes", "SRAM B"),
    ("flash_bytes", "flash B"),
    ("latency_us", "latency ms"),
    ("makespan_us", "plan ms"),
    ("accuracy_int", "accuracy %"),
)

ALWAYS = ("status", "model", "data", "hardware", "strategy", "target")
"""Columns of the files besides the overrides and the metrics."""

FILE_WIDTH = 160
"""Columns of the table where there is no terminal to say how many it has."""


def names(jobs: Sequence[Sequence[str]]) -> list[str]:
    """What tells jobs apart: the overrides that not all of them have."""
    common = set.intersection(*(set(job) for job in jobs)) if jobs else set()
    return [
        " ".join(word for word in job if word not in common) or f"job {place}"
        for place, job in enumerate(jobs)
    ]


def keep(folder: Path, jobs: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Write ``table.csv``, ``table.json``, ``sweep.html``, ``seeds.csv`` where jobs differ by their
    seed alone, and, if there is something to draw, ``pareto.png`` and ``profile.png``.

    Returns those that a person may want to open.
    """
    with contextlib.suppress(OSError):  # a full disk: the table on the screen remains
        rows = flat(jobs)
        write_json(folder / "table.json", rows)
        files = [_table(folder / "table.csv", rows)]
        if averages := repeats.rows(jobs):
            files.append(_table(folder / "seeds.csv", averages))
        from pipeline.report import sweep_page  # with it comes jinja2

        called = names([job["overrides"] for job in jobs])
        files += picture(
            folder / "sweep.html", lambda: sweep_page.html(folder, jobs, rows, called).encode()
        )
        if sum(job["status"] == "ok" for job in jobs) > 1:
            from pipeline.report.pareto import png  # matplotlib takes a second

            files += picture(folder / "pareto.png", lambda: png(jobs, called))
            files += picture(folder / "profile.png", lambda: profiles(jobs, called))
        if (folder / SEARCH).is_file():
            from pipeline.report.architectures import png as drawn

            search = read_json(folder / SEARCH)
            files += picture(folder / "architectures.png", lambda: drawn(search))
        return files
    return []


def _table(file: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    text = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(file, text.getvalue())
    return file


def picture(file: Path, draw: Callable[[], bytes | None]) -> list[Path]:
    """Write what ``draw`` gives, if anything, and return the files written. A picture that fails
    is said on stderr: it is not worth a sweep's result."""
    try:
        content = draw()
    except Exception as error:
        print(f"{file.name} could not be drawn: {error}", file=sys.stderr)
        content = None
    if content:
        write_bytes(file, content)
    return [file] if content else []


def profiles(jobs: Sequence[Mapping[str, Any]], called: Sequence[str]) -> bytes | None:
    """The memory of each layer, where all jobs are plans for one network."""
    from pipeline.report.profile import Profile, png

    found = []
    for job, name in zip(jobs, called, strict=True):
        report = Path(job["run_dir"]) / "schedule.json"
        layers = read_json(report).get("profile", []) if report.is_file() else []
        found.append(Profile(name, tuple((each["layer"], each["bytes"]) for each in layers)))
    return png(found) if len({job.get("model") for job in jobs}) == 1 else None


def keep_rows(
    folder: Path, result: Mapping[str, Any], figure: Mapping[str, Any] | None
) -> list[Path]:
    """Of an experiment, write ``rows.csv``, published figures beside ours, and ``figure.png``.

    Returns what there is.
    """
    files = []
    with contextlib.suppress(OSError):
        if rows := result.get("rows"):
            beside = [row | {"difference": difference(row)} for row in rows]
            files.append(_table(folder / "rows.csv", beside))
        if figure:
            from pipeline.report.figures import png as drawn

            jobs = [
                {**job, **(reports(Path(job["run_dir"])) if FIGURES & job.keys() else {})}
                for job in result["jobs"]
            ]
            files += picture(folder / "figure.png", lambda: drawn(figure, jobs))
    return files


def flat(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A flat row for each job: its overrides, a column each, what it is, its metrics, its end."""
    rows = []
    for place, job in enumerate(jobs):
        words = (word.partition("=") for word in job["overrides"])
        row = {"job": place} | {key.lstrip("+~"): value for key, _, value in words}
        row |= {key: job[key] for key in (*ALWAYS, *METRICS) if job.get(key) is not None}
        for key in ("resource", "needed_bytes", "available_bytes", "error"):
            if job.get(key) is not None:
                row[key] = job[key]
        rows.append(row | {"run_dir": job["run_dir"]})
    return rows


def show(result: Mapping[str, Any], files: Sequence[Path] = ()) -> None:
    """The table for a person, what failed and why, and where to look further."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    jobs = result["jobs"]
    table = Table(title=f"{len(jobs)} jobs in {shown(Path(result['run_dir']))}")
    table.add_column("job", overflow="fold")
    for _, title in COLUMNS:
        table.add_column(title, justify="right")
    called = names([job["overrides"] for job in jobs])
    for name, job in zip(called, jobs, strict=True):
        table.add_row(Text(name), *(cell(key, meant(job).get(key)) for key, _ in COLUMNS))
    console.print(table)
    for line in published(result):
        console.print(line, markup=False)
    for name, job in zip(called, jobs, strict=True):
        if job.get("error"):
            console.print(f"  {name}: {job['error']}", markup=False, soft_wrap=True)
    for line in dict.fromkeys(line for job in jobs for line in job.get("warnings", ())):
        console.print(f"  {line}", markup=False, soft_wrap=True)
    for file in files:
        console.print(f"  {file.stem:<10} {shown(file)}", markup=False, soft_wrap=True)


def meant(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """``job`` without an accuracy that means nothing."""
    if not job.get("random_weights"):
        return job
    return {key: value for key, value in job.items() if key != "accuracy_int"}


def cell(key: str, value: Any) -> str:
    if value is None:
        return "–"
    if key in ("latency_us", "makespan_us"):
        return f"{value / 1000:.1f}"
    if key == "accuracy_int":
        return f"{100 * value:.2f}"
    return value if isinstance(value, str) else number(value)
