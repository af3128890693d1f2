"""A sweep's jobs as a picture: memory against what it buys, and which jobs no other one beats.

A job is on the front when no other is at least as good on both axes and better on one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from matplotlib.figure import Figure

from pipeline.report import style
from pipeline.report.style import INK, LINE, PAPER, PEAK

MEMORY = {
    "sram_bytes": "SRAM, bytes (measured)",
    "planned_sram_bytes": "SRAM needed, bytes (planned)",
    "pmu_bytes": "peak memory of the activations, bytes (planned)",
    "flash_bytes": "flash, bytes",
}
BOUGHT = {
    "accuracy_int": "accuracy, %",
    "accuracy_float": "accuracy in float, %",
    "latency_us": "latency, ms",
    "modelled_us": "time of the core, ms (modelled)",
    "energy_uj": "energy of an inference, mJ",
    "flash_bytes": "flash, bytes",
    "macs_executed": "multiply-accumulates",
}
"""Metrics for the axes, the preferred one first, and their labels. Less is better, but for
accuracy."""

SCALE = {"accuracy_int": 100.0, "accuracy_float": 100.0, "latency_us": 1e-3, "energy_uj": 1e-3}
SCALE["modelled_us"] = 1e-3
NAMED = 12
"""More points than that carry a name on the front only."""

Job = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """A job, in the units of the axes; ``y`` is nan for one that does not fit."""

    number: int
    name: str
    x: float
    y: float

    @property
    def fits(self) -> bool:
        return not isnan(self.y)


def axes_of(jobs: Sequence[Job]) -> tuple[str, str | None]:
    """The metrics for x and y: the first of each kind that differs between jobs that fit.

    ``y`` is None when nothing but memory differs; ``x`` is then shown job by job.
    """
    fit = [job for job in jobs if job["status"] == "ok"]
    memory = [name for name in MEMORY if _known(name, fit)]
    x = next((name for name in memory if _differs(name, fit)), memory[0] if memory else "")
    y = next((name for name in BOUGHT if name != x and _differs(name, fit)), None)
    return x, y


def front(points: Sequence[Point], more_is_better: bool) -> list[Point]:
    """The points that no other beats, by x; ``more_is_better`` is said of y. Unfit ones are not."""
    sign = -1.0 if more_is_better else 1.0
    best: list[Point] = []
    whole = [(point.x, sign * point.y, point) for point in points if point.fits]
    for _, cost, point in sorted(whole, key=lambda item: item[:2]):
        if not best or cost < sign * best[-1].y:
            best.append(point)
    return best


def png(jobs: Sequence[Job], names: Sequence[str]) -> bytes | None:
    """The picture; None when fewer than two jobs fit, or all of them are alike."""
    x, y = axes_of(jobs)
    fit = [job for job in jobs if job["status"] == "ok"]
    if not x or len(fit) < 2 or (y is None and not _differs(x, fit)):
        return None
    points = [
        Point(number, _short(name), at, _scaled(y, job) if job["status"] == "ok" else nan)
        for number, (name, job) in enumerate(zip(names, jobs, strict=True))
        if (at := _place(x, job)) is not None
    ]
    limits = {job.get(x.replace("_bytes", "_limit_bytes")) for job in jobs}
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    if y is None:
        _by_job(figure, points)
    else:
        _against(figure, points, y)
    axes = figure.axes[0]
    axes.set_xlabel(MEMORY[x])
    limit = limits.pop() if len(limits) == 1 else None
    if limit and axes.get_xlim()[0] < limit < axes.get_xlim()[1]:
        axes.axvline(limit, color=PEAK, linewidth=0.8, linestyle=":")
        axes.annotate(
            f"the board's {limit:,} B ", (limit, 1.01), xycoords=("data", "axes fraction"),
            ha="center", va="bottom", color=PEAK,
        )  # fmt: skip
    return style.png(figure, 150, bbox_inches="tight", pad_inches=0.15)


def _against(figure: Figure, points: Sequence[Point], y: str) -> None:
    """x against y, the front as steps. Points are numbered, the names stand beside: they would hide
    each other. A job that does not fit has no y, so it is named, but has no point."""
    axes = figure.add_subplot()
    best = front(points, more_is_better=y.startswith("accuracy"))
    beaten = [point for point in points if point.fits and point not in best]
    unfit = [point for point in points if not point.fits]
    axes.plot([p.x for p in best], [p.y for p in best], color=INK, linewidth=1.2, alpha=0.6,
              drawstyle="steps-post")  # fmt: skip
    if beaten:
        axes.scatter([p.x for p in beaten], [p.y for p in beaten], color=PAPER, edgecolor=INK,
                     linewidth=0.8, zorder=3, label="beaten by another job")  # fmt: skip
    axes.scatter([p.x for p in best], [p.y for p in best], color=INK, zorder=4,
                 label="not beaten by any")  # fmt: skip
    named = [*beaten, *best, *unfit] if len(points) <= NAMED else best
    places: dict[tuple[float, float], list[str]] = {}
    for point in sorted(named, key=lambda point: point.number):
        if point.fits:
            places.setdefault((point.x, point.y), []).append(str(point.number))
    for at, numbers in places.items():
        axes.annotate(", ".join(numbers), at, xytext=(5, 5), textcoords="offset points",
                      fontsize=8)  # fmt: skip
    left, right = (end(p.x for p in points if p.fits) for end in (min, max))
    margin = 0.08 * (right - left) or 1.0
    axes.set_xlim(left - margin, right + margin)
    axes.margins(y=0.2)
    axes.set_ylabel(BOUGHT[y])
    names = "\n".join(
        f"{point.number:>3}  {point.name}{'' if point.fits else ': does not fit'}"
        for point in sorted(named, key=lambda point: point.number)
    )
    figure.legend(loc="outside right upper", frameon=False, fontsize=8,
                  title=names, title_fontsize=8, alignment="left")  # fmt: skip


def _by_job(figure: Figure, points: Sequence[Point]) -> None:
    """A row for each job, the least memory on top."""
    ordered = sorted(points, key=lambda point: -point.x)
    figure.set_size_inches(9.0, 1.2 + 0.32 * len(ordered))
    axes = figure.add_subplot()
    for row, point in enumerate(ordered):
        axes.plot([0, point.x], [row, row], color=LINE, linewidth=1.0)
        axes.scatter(
            [point.x], [row], color=INK if point.fits else PEAK, marker="o" if point.fits else "x"
        )
        said = f"{point.x:,g}" if point.fits else f"{point.x:,g}, does not fit"
        axes.annotate(said, (point.x, row), xytext=(7, -3), textcoords="offset points", fontsize=8)
    axes.set_yticks(range(len(ordered)), [point.name for point in ordered])
    axes.set_xlim(0, 1.2 * ordered[0].x)
    axes.set_ylim(-0.7, len(ordered) - 0.3)


def _known(name: str, jobs: Sequence[Job]) -> bool:
    return bool(jobs) and all(job.get(name) is not None for job in jobs)


def _differs(name: str, jobs: Sequence[Job]) -> bool:
    return _known(name, jobs) and len({job[name] for job in jobs}) > 1


def _short(name: str) -> str:
    """``herringbone, slots`` of ``strategy=herringbone strategy.layout=slots``."""
    values = [word.partition("=")[2] for word in name.split(" ")]
    return ", ".join(values) if all(values) else name


def _scaled(name: str | None, job: Job) -> float:
    """A metric in the unit of its axis; 0 without one."""
    return 0.0 if name is None else float(job[name]) * SCALE.get(name, 1.0)


def _place(x: str, job: Job) -> float | None:
    """Place a job on the axis of memory; one that does not fit is where it would have to be."""
    needed = job.get("needed_bytes") if job["status"] == "infeasible" else None
    kind = "flash" if x == "flash_bytes" else "sram"
    if needed is not None and x != "pmu_bytes" and str(job.get("resource", "")).lower() == kind:
        return float(needed)
    ended = job["status"] in ("ok", "infeasible")
    return float(job[x]) if ended and job.get(x) is not None else None
