"""Compare what jobs of a sweep need with ordinary execution of the same network; figures that mean
something else are not beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.words import METRICS

FIGURES = {*METRICS, "modelled_us", "layers"} - {"sram_limit_bytes", "flash_limit_bytes"}
"""Keys of a job's result that ``metrics_version`` gives their meaning."""

RELATIVE = {
    "instructions_over_ordinary": "instructions",
    "pmu_over_ordinary": "pmu_bytes",
}
"""Metrics of a job, and of which the sweep's ordinary job is the divisor."""


def compared(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``jobs`` with RELATIVE metrics, in their rows too, where an ordinary one of the same network
    has the figure."""
    bases = {network(job): job for job in jobs if job.get("strategy") == "ordinary"}
    return [_against(bases.get(network(job), {}), job) for job in jobs]


def of_one_version(jobs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``jobs``; those measured by an older ``metrics_version`` than others without their figures,
    and with a warning."""
    versions = [job.get("metrics_version", 1) if FIGURES & job.keys() else 0 for job in jobs]
    newest = max(versions, default=0)
    return [
        _without_figures(job, f"{version}, others by {newest}") if 0 < version < newest else {**job}
        for job, version in zip(jobs, versions, strict=True)
    ]


def _without_figures(job: Mapping[str, Any], versions: str) -> dict[str, Any]:
    said = (
        f"{job['run_dir']} was measured by metrics_version {versions}: other things under the same "
        "names; its figures are left out, run it again"
    )
    kept = {key: value for key, value in job.items() if key not in FIGURES}
    rows = [{**row, "ours": None} for row in job.get("rows", ())]
    return {**kept, **({"rows": rows} if rows else {}), "warnings": [said]}


def network(job: Mapping[str, Any]) -> tuple[Any, ...]:
    """Its name and everything that was said about it, and the core that counts."""
    words = tuple(sorted(word for word in job["overrides"] if word.startswith("model")))
    return job.get("model"), job.get("hardware"), words


def _against(base: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: job[metric] / base[metric]
        for name, metric in RELATIVE.items()
        if job.get(metric) and base.get(metric)
    }
    rows = [
        row | ({"ours": found[row["metric"]]} if row["metric"] in found else {})
        for row in job.get("rows", ())
    ]
    return {**job, **found, **({"rows": rows} if rows else {})}
