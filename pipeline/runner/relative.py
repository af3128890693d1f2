"""What jobs of a sweep need more than ordinary execution of the same network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
