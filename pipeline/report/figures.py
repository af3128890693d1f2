"""The figure of an experiment: what its jobs found, drawn as the paper draws it.

``figure:`` of an experiment says what: ``each`` is ``layer`` (the layers of each job), ``study``
(a job and those of its study, which have other values of keys), ``timeline`` (the tracks),
``frontier`` or ``seeds`` (the files of these names); ``y`` the metrics; ``keys`` those of a study
that may differ from the job's; ``log`` a logarithmic axis; ``line`` a level to mark; ``title``. A
job is a panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.report import frontier, seeds, style
from pipeline.report.style import INK, SERIES, TIME

Job = Mapping[str, Any]


def png(spec: Mapping[str, Any], jobs: Sequence[Job]) -> bytes | None:
    """Return the picture; None when no job has anything to draw.

    Args:
        jobs: results, with what schedule.json holds.
    """
    figure = _figure(spec, jobs)
    if figure is None:
        return None
    figure.suptitle(spec.get("title", ""), color=INK)
    return style.png(figure)


def _figure(spec: Mapping[str, Any], jobs: Sequence[Job]) -> Figure | None:
    if spec["each"] == "frontier":
        return frontier.figure(spec, jobs)
    if spec["each"] == "seeds":
        return seeds.figure(spec, jobs)
    drawn = [job for job in jobs if job.get("traffic") and job.get("status") != "infeasible"]
    if not drawn:
        return None
    if spec["each"] == "timeline":
        return _timelines(drawn)
    panels = _panels(drawn)
    figure = Figure(figsize=(10.0, 0.6 + 3.2 * len(panels)), layout="constrained")
    for axes, panel in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
        _bars(axes, panel, spec)
    return figure


def _panels(jobs: Sequence[Job]) -> list[list[Job]]:
    """Return each job with those of its study, which come after it."""
    found = list[list[Job]]()
    for job in jobs:
        if not job.get("set") or not found:
            found.append([])
        found[-1].append(job)
    return found


def _bars(axes: Axes, jobs: Sequence[Job], spec: Mapping[str, Any]) -> None:
    """A group of bars for each place, one a metric."""
    places = _places(jobs, spec)
    metrics = list(spec["y"])
    wide = 0.8 / len(metrics)
    for n, metric in enumerate(metrics):
        values = [place.get(metric) or 0.0 for _, place in places]
        at = [place + wide * (n - (len(metrics) - 1) / 2) for place in range(len(places))]
        axes.bar(at, values, wide, color=SERIES[n % len(SERIES)], label=metric)
    axes.set_xticks(range(len(places)), [name for name, _ in places])
    if len(places) > 8:
        axes.tick_params("x", labelsize=8)
        axes.set_xticks(axes.get_xticks(), [name for name, _ in places], rotation=40,
                        ha="right", rotation_mode="anchor")  # fmt: skip
    axes.set_title(str(jobs[0].get("model", "")), loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=9)
    if spec.get("log"):
        axes.set_yscale("log")
    if "line" in spec:
        axes.axhline(spec["line"], color=INK, linewidth=0.8, linestyle=":")


def _places(jobs: Sequence[Job], spec: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the name of each group of bars, and its figures."""
    if spec["each"] == "layer":
        return [(row["layer"], row) for row in jobs[0]["traffic"]]
    return [
        (_label(one), one)
        for one in jobs
        if one.get("set", {}).keys() <= set(spec.get("keys", one.get("set", {})))
        and any(one.get(metric) is not None for metric in spec["y"])
    ]


def _label(one: Mapping[str, Any]) -> str:
    values = []
    for key, value in one.get("set", {}).items():
        name = key.rpartition(".")[2]
        size = name.endswith("_bytes")
        told = f"{value // 1024} KB" if size else str(value)
        values.append(f"{name.removesuffix('_bytes')} {told}")
    return "\n".join(values) or "as the job"


def _timelines(jobs: Sequence[Job]) -> Figure:
    """Return the tracks of each job on a time axis of its own; where a bar stands for several
    steps, it is as high as its share of time is busy."""
    rows = [
        (_label(job).replace("\n", ", ") if job.get("set") else str(job.get("model", "")), job)
        for job in jobs
        if job.get("segments")
    ]
    figure = Figure(figsize=(10.0, 0.6 + 1.7 * len(rows)), layout="constrained")
    for axes, (name, found) in zip(
        figure.subplots(len(rows), squeeze=False)[:, 0], rows, strict=True
    ):
        tracks = found["segments"]
        for place, track in enumerate(tracks):
            took = [each / 1e6 for each in track["took"]]
            start = [each / 1e6 for each in track["start"]]
            shares = zip(track["busy"], track["took"], strict=True)
            high = [0.7 * (busy / whole if whole else 1.0) for busy, whole in shares]
            low = [place + 0.35 - each / 2 for each in high]  # bars stand on one line
            axes.barh(low, took, high, start, color=[TIME[kind] for kind in track["kind"]])
        axes.set_yticks(range(len(tracks)), [track["name"] for track in tracks])
        axes.invert_yaxis()
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xlabel("s")
    return figure
