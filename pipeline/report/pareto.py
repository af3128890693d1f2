"""A sweep's jobs as a picture: memory against what it buys, and which jobs no other one beats.

A job is on the front when no other is at least as good on both axes and better on one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from pipeline.report import style
from pipeline.report.style import INK, PAPER, PEAK
from pipeline.words import MORE, called

MEMORY = ("sram_bytes", "planned_sram_bytes", "pmu_bytes", "flash_bytes")
BOUGHT = (
    *("accuracy_int", "accuracy_float", "latency_us", "modelled_us", "energy_uj", "flash_bytes"),
    "macs_executed",
)
"""Metrics for the axes, the preferred one first."""

UNITS = {"accuracy": (100, ", %"), "us": (1e-3, ", ms"), "uj": (1e-3, ", mJ"), "bytes": (1, ", B")}
"""Factor and unit of a metric by the first or the last part of its name."""

NAMED = 12
"""More points than that carry a name on the front only."""

Job = Mapping[str, Any]
Place = tuple[float, float]


def axes_of(jobs: Sequence[Job]) -> tuple[str, str] | None:
    """Choose the metrics for x and y: the first of each kind that differs between jobs that fit,
    for x else the first that all have; None where nothing differs but memory."""
    fit = [job for job in jobs if job["status"] == "ok"]
    values = {key: {job.get(key) for job in fit} for key in (*MEMORY, *BOUGHT)}
    known = [key for key in MEMORY if fit and None not in values[key]]
    differ = [key for key in values if None not in values[key] and len(values[key]) > 1]
    x = next((key for key in MEMORY if key in differ), known[0] if known else "")
    y = next((key for key in BOUGHT if key in differ and key != x), "")
    return (x, y) if x and y else None


def unbeaten(places: Sequence[Place], more: bool = False) -> list[Place]:
    """Select those that no other one beats, by x; less is better, ``more`` of y if so said."""
    found: list[Place] = []
    for x, y in sorted(places, key=lambda place: (place[0], -place[1] if more else place[1])):
        if not found or (y > found[-1][1] if more else y < found[-1][1]):
            found.append((x, y))
    return found


def png(jobs: Sequence[Job], names: Sequence[str]) -> bytes | None:
    """Draw the picture, the front as steps; None where there are no axes. Points are numbered, the
    names stand beside: they would hide each other. A job that does not fit is named, but
    has no point."""
    if (found := axes_of(jobs)) is None:
        return None
    x, y = found
    (x_by, x_unit), (y_by, y_unit) = _unit(x), _unit(y)
    fit = {n: (job[x] * x_by, job[y] * y_by) for n, job in enumerate(jobs)
           if job["status"] == "ok"}  # fmt: skip
    best = unbeaten(list(fit.values()), more=y.startswith(MORE))
    beaten = [place for place in fit.values() if place not in best]
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    axes = figure.add_subplot(xlabel=called(x) + x_unit, ylabel=called(y) + y_unit)
    axes.plot(*zip(*best, strict=True), color=INK, linewidth=1.2, alpha=0.6, drawstyle="steps-post")
    for places, face, said in ((beaten, PAPER, "beaten by another job"),
                               (best, INK, "not beaten by any")):  # fmt: skip
        axes.scatter([at[0] for at in places], [at[1] for at in places], color=face, edgecolor=INK,
                     linewidth=0.8, zorder=3, label=said)  # fmt: skip
    told = [n for n, job in enumerate(jobs) if n in fit or job["status"] == "infeasible"]
    named = told if len(told) <= NAMED else [n for n in told if fit.get(n) in best]
    for at in dict.fromkeys(fit[n] for n in named if n in fit):
        numbers = ", ".join(str(n) for n in named if fit.get(n) == at)
        axes.annotate(numbers, at, xytext=(5, 5), textcoords="offset points", fontsize=8)
    axes.margins(0.08, 0.2)
    listed = "\n".join(f"{n:>3}  {_short(names[n])}{'' if n in fit else ': does not fit'}"
                       for n in named)  # fmt: skip
    figure.legend(loc="outside right upper", frameon=False, fontsize=8,
                  title=listed, title_fontsize=8, alignment="left")  # fmt: skip
    limits = {job.get(x.removeprefix("planned_").replace("_bytes", "_limit_bytes")) for job in jobs}
    limit = limits.pop() if len(limits) == 1 else None
    if limit and axes.get_xlim()[0] < limit < axes.get_xlim()[1]:
        axes.axvline(limit, color=PEAK, linewidth=0.8, linestyle=":")
        axes.annotate(f"the board's {limit:,} B ", (limit, 1.01), ha="center", va="bottom",
                      xycoords=("data", "axes fraction"), color=PEAK)  # fmt: skip
    return style.png(figure, 150, bbox_inches="tight", pad_inches=0.15)


def _unit(key: str) -> tuple[float, str]:
    parts = key.split("_")
    return UNITS.get(parts[0]) or UNITS.get(parts[-1]) or (1, "")


def _short(name: str) -> str:
    """``herringbone, slots`` of ``strategy=herringbone strategy.layout=slots``."""
    values = [word.partition("=")[2] for word in name.split(" ")]
    return ", ".join(values) if all(values) else name
