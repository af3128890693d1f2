"""Memory over modelled latency, or over repeated work: a panel for each network, its presets, the
joint schedule at several limits; what others publish of memory, each a line: their latency is of
other boards. Repeated work is everybody's: a published figure that says it is a point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.report.style import INK, LINE, SERIES, label_sizes

Job = Mapping[str, Any]


def figure(spec: Mapping[str, Any], jobs: Sequence[Job]) -> Figure | None:
    """None where no job has a latency.

    Args:
        spec: with ``published``, of each figure the ``model``, who (``name``), ``bytes``, what it
            ``counts``, its ``source``; ``work``: over repeated work, ``published`` with ``pct``.
    """
    models = list(dict.fromkeys(str(job["model"]) for job in jobs if job.get("modelled_us")))
    if not models:
        return None
    found = Figure(figsize=(10.0, 0.6 + 3.4 * len(models)), layout="constrained")
    for axes, model in zip(found.subplots(len(models), squeeze=False)[:, 0], models, strict=True):
        mine = [
            job
            for job in jobs
            if job.get("model") == model
            and job.get("modelled_us")
            and job.get("modelled_by") != "cycles_per_mac"
            and job.get("status") != "infeasible"
        ]
        published = [each for each in spec.get("published", ()) if each["model"] == model]
        _panel(axes, mine, published, spec.get("work", False))
        words = [word for word in mine[0].get("overrides", ()) if word.startswith("model.")]
        axes.set_title(" ".join([model, *words]), loc="left", fontsize=10)
    lines, names = found.axes[0].get_legend_handles_labels()
    found.legend(lines, names, frameon=False, fontsize=8, loc="outside lower center", ncols=9)
    return found


def _panel(
    axes: Axes, jobs: Sequence[Job], published: Sequence[Mapping[str, Any]], work: bool
) -> None:
    for number, (name, points) in enumerate(_series(jobs, work).items()):
        at, line = sorted(points), len(points) > 1
        axes.plot(
            [size for size, _ in at], [time for _, time in at],
            marker="o", markersize=4 if line else 8 + 3 * number,
            fillstyle="full" if line else "none", linewidth=1 if line else 0,
            color=SERIES[number % len(SERIES)], label=name,
        )  # fmt: skip
    axes.set_xscale("log")
    for each in published:
        if "pct" in each:
            axes.plot([each["bytes"]], [each["pct"]], marker="x", color=INK, linewidth=0)
        axes.axvline(each["bytes"], color=LINE, linewidth=1, linestyle="--")
    low, high = axes.get_xlim()
    for number, each in enumerate(published):
        side = 1 if each["bytes"] < (low * high) ** 0.5 else -1
        axes.annotate(
            f"{each['name']}, {each['counts']}", (each["bytes"], 1),
            (2 * side, -9 - 10 * (number % 5)), ha="left" if side > 0 else "right",
            xycoords=("data", "axes fraction"), textcoords="offset points", fontsize=7, color=INK,
        )  # fmt: skip
    label_sizes(axes.xaxis)
    axes.tick_params("x", labelsize=7)
    costs = [_cost(job, work) for job in jobs] + [each.get("pct", 0.0) for each in published]
    axes.set_ylim(0, 1.35 * max(costs))
    axes.set_xlabel("peak memory of the activations, bytes")
    axes.set_ylabel("multiply-accumulates repeated, %" if work else "modelled time of the core, ms")


def _cost(job: Job, work: bool) -> float:
    """Compute per cent of repeated multiply–accumulates, or milliseconds."""
    if work:
        return float(100 * job["macs_executed"] / job["macs"] - 100)
    return float(job["modelled_us"] / 1e3)


def _series(jobs: Sequence[Job], work: bool) -> dict[str, list[tuple[float, float]]]:
    """List (bytes, cost) of jobs of one strategy and its study; what may repeat work apart."""
    found: dict[str, list[tuple[float, float]]] = {}
    for job in jobs:
        given = [word.lower() for word in job.get("overrides", ())]
        streamed = ", streamed" * ("hardware.streams_input=true" in given)
        again = ", repeated work" * ("strategy.extra_macs" in job.get("set", ()))
        name = f"{job['strategy']}{streamed}{again}"
        found.setdefault(name, []).append((job["pmu_bytes"], _cost(job, work)))
    return found
