"""Accuracy over memory, of jobs that differ by their seed alone together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from pipeline.report.repeats import repeated
from pipeline.report.style import SERIES, label_sizes

MARKS = "osD^v"


def figure(spec: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Accuracy over the activations' peak: a point for the mean, a line to the least and the
    greatest. None where no two jobs differ by their seed alone.

    Args:
        spec: with ``colors`` and ``marks``, each a key whose values tell points apart.
    """
    drawn = []
    for each in repeated(jobs):
        at, reached = each.of("pmu_bytes"), each.of("accuracy_int")
        if at is not None and reached is not None:
            given = dict(word.split("=", 1) for word in each.overrides)
            drawn.append((given.get(spec["colors"], ""), given.get(spec["marks"], ""), at, reached))
    if not drawn:
        return None
    colors, marks = (list(dict.fromkeys(each[n] for each in drawn)) for n in (0, 1))
    found = Figure(figsize=(9.0, 5.0), layout="constrained")
    axes, named = found.add_subplot(), set[str]()
    for color, mark, at, reached in drawn:
        middle, low, high = (100 * value for value in reached)
        name = ", ".join(filter(None, (color, mark)))
        axes.errorbar(
            [at[0]], [middle], [[middle - low], [high - middle]],
            [[at[0] - at[1]], [at[2] - at[0]]], fmt=MARKS[marks.index(mark) % len(MARKS)],
            color=SERIES[colors.index(color) % len(SERIES)], capsize=3, markersize=6,
            label="_" * (name in named) + name,
        )  # fmt: skip
        named.add(name)
    axes.set_xscale("log")
    label_sizes(axes.xaxis)
    axes.set_xlabel("peak memory of the activations, bytes (planned)")
    axes.set_ylabel("accuracy, %: mean, least and greatest of the seeds")
    found.legend(frameon=False, fontsize=8, loc="outside right upper")
    return found
