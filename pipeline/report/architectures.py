"""Draw what a search for networks found: error over the activations' memory, a series for each
strategy (Gural & Murmann 2019, figures 8 and 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from pipeline.report import style
from pipeline.report.pareto import unbeaten
from pipeline.report.style import SERIES


def png(search: Mapping[str, Any]) -> bytes | None:
    """Return the picture; None where nothing was trained."""
    found = figure(search)
    return style.png(found) if found else None


def figure(search: Mapping[str, Any]) -> Figure | None:
    """Return a point for each network and strategy: small where it was given up, filled where it
    survived; a line along those that no other one of the strategy beats."""
    trained = [each for each in search["networks"] if each["rungs"] and each["rungs"][-1] >= 0]
    if not trained:
        return None
    drawn = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = drawn.add_subplot()
    for number, name in enumerate(search["strategies"]):
        color = SERIES[number % len(SERIES)]
        mine = [each for each in trained if name in each["bytes"]]
        points = [(each["bytes"][name], 100 * (1 - each["rungs"][-1])) for each in mine]
        size = [64 if each.get("survives") else 16 for each in mine]
        faces = [color if each.get("survives") else "none" for each in mine]
        if points:
            found, errors = zip(*points, strict=True)
            axes.scatter(found, errors, s=size, c=faces, edgecolors=color, zorder=3)
        front = unbeaten(points)
        axes.plot([x for x, _ in front], [y for _, y in front], color=color, linewidth=1,
                  drawstyle="steps-post", label=name)  # fmt: skip
    dropped = sum(not each["bytes"] for each in search["networks"])
    axes.set_title(
        f"{len(search['networks'])} networks drawn, {dropped} fit with no strategy, "
        f"{sum(bool(each.get('survives')) for each in trained)} survived (filled)",
        loc="left", fontsize=10,
    )  # fmt: skip
    axes.set_xlabel("peak memory of the activations, bytes (planned)")
    axes.set_ylabel("error by validation after the last rung, %")
    axes.legend(frameon=False, fontsize=8)
    return drawn
