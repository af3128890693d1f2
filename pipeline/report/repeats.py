"""Average jobs that differ by their seed alone, and say how far apart they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

Job = Mapping[str, Any]
METRICS = (
    "accuracy_int", "accuracy_float", "pmu_bytes", "sram_bytes", "weight_bytes", "macs",
    "latency_us", "energy_uj",
)  # fmt: skip
SEED = "seed="


@dataclass(frozen=True)
class Repeated:
    """``jobs`` came to an end, of ``tried`` whose ``overrides`` are these but for the seed."""

    overrides: tuple[str, ...]
    jobs: Sequence[Job]
    tried: int

    def of(self, metric: str) -> tuple[float, float, float] | None:
        """Mean, least and greatest; None where a job has none."""
        values = [job.get(metric) for job in self.jobs]
        known = [float(value) for value in values if value is not None]
        whole = known and len(known) == len(values)
        return (mean(known), min(known), max(known)) if whole else None


def repeated(jobs: Sequence[Job]) -> list[Repeated]:
    """Return jobs that differ by their seed alone, in the order in which they were asked for."""
    found: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        words = (str(word) for word in job.get("overrides", ()))
        key = tuple(word for word in words if not word.startswith(SEED))
        found.setdefault(key, []).append(job)
    if max(map(len, found.values()), default=0) < 2:
        return []
    return [
        Repeated(key, [job for job in group if job.get("status") == "ok"], len(group))
        for key, group in found.items()
    ]


def rows(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """A flat row for each: its overrides, how many ended, mean, least and greatest of metrics."""
    listed = []
    for each in repeated(jobs):
        words = (word.partition("=") for word in each.overrides)
        row: dict[str, Any] = {key.lstrip("+~"): value for key, _, value in words}
        row |= {"seeds": len(each.jobs), "tried": each.tried}
        for metric in METRICS:
            if (found := each.of(metric)) is not None:
                names = (f"{metric}_mean", f"{metric}_least", f"{metric}_most")
                row |= dict(zip(names, found, strict=True))
        listed.append(row)
    return listed
