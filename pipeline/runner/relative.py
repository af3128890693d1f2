"""Compare what jobs of a sweep need with ordinary execution of the same network; figures that mean
something else are not beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.words import METRICS

FIGURES = {*METRICS, "modelled_us", "layers"} - {"sram_limit_bytes", "flash_limit_bytes"}
"""Keys of a job's result that ``metrics_version`` gives their meaning."""

RELATIVE = (("instructions_over_ordinary", "instructions"), ("pmu_over_ordinary", "pmu_bytes"))
"""Metrics of a job, and of which the sweep's ordinary job is the divisor."""


def compared(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``jobs`` with RELATIVE metrics, in their rows too, where an ordinary one of the same network
    has the figure."""
    bases = {network(job): job for job in jobs if job.get("strategy") == "ordinary"}
    found = []
    for job in jobs:
        pairs = {name: (job.get(of), bases.get(network(job), {}).get(of)) for name, of in RELATIVE}
        ratios = {name: ours / base for name, (ours, base) in pairs.items() if ours and base}
        found.append(_with_rows({**job, **ratios}, ratios))
    return found


def of_one_version(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``jobs``; those measured by an older ``metrics_version`` than others without their figures,
    and with a warning."""
    versions = [job.get("metrics_version", 1) if FIGURES & job.keys() else 0 for job in jobs]
    newest = max(versions, default=0)
    found = [dict(job) for job in jobs]
    for number, version in enumerate(versions):
        if 0 < version < newest:
            said = (
                f"{found[number]['run_dir']} was measured by metrics_version {version}, others by "
                f"{newest}: other things under the same names; its figures are left out, run it "
                "again"
            )
            kept = {key: value for key, value in found[number].items() if key not in FIGURES}
            none = {row["metric"]: None for row in kept.get("rows", ())}
            found[number] = _with_rows({**kept, "warnings": [said]}, none)
    return found


def network(job: Mapping[str, Any]) -> tuple[Any, ...]:
    """Its name and everything that was said about it, and the core that counts."""
    words = tuple(sorted(word for word in job["overrides"] if word.startswith("model")))
    return job.get("model"), job.get("hardware"), words


def _with_rows(job: dict[str, Any], ours: Mapping[str, float | None]) -> dict[str, Any]:
    """``job`` with the figures ``ours`` in its rows, by their metrics."""
    rows = [{**row, "ours": ours.get(row["metric"], row["ours"])} for row in job.get("rows", ())]
    return {**job, "rows": rows} if rows else job
