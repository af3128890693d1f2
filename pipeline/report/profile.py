"""The memory that each layer needs, of several plans for one network, in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from pipeline.report import style
from pipeline.report.style import LINE, SERIES

COLOURS = (LINE, *SERIES)
"""Colours of the plans, in order; the first is filled."""

MOST_NAMES = 24
"""Layers that are named below the axis; of more, evenly spaced ones."""


@dataclass(frozen=True)
class Profile:
    """``layers``: (operator, bytes in use while it runs), in the order they run."""

    name: str
    layers: tuple[tuple[str, float], ...]

    @property
    def peak_bytes(self) -> float:
        return max(size for _, size in self.layers)


def png(profiles: Sequence[Profile]) -> bytes | None:
    """Return the picture, layers in the order of the first plan; None where there are fewer than
    two plans, more than there are colours, or they are not all of the same layers."""
    known = {frozenset(name for name, _ in profile.layers) for profile in profiles}
    if not 2 <= len(profiles) <= len(COLOURS) or len(known) != 1 or not profiles[0].layers:
        return None
    order = [name for name, _ in profiles[0].layers]
    places = range(len(order))
    figure = Figure(figsize=(10.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for number, profile in enumerate(profiles):
        sizes = dict(profile.layers)
        kilobytes = [sizes[name] / 1000 for name in order]
        label = f"{profile.name}: peak {profile.peak_bytes:,.0f} B"
        if number == 0:
            axes.bar(places, kilobytes, 1.0, color=COLOURS[0], label=label)
        else:
            edges = [n - 0.5 for n in range(len(order) + 1)]
            axes.stairs(kilobytes, edges, color=COLOURS[number], linewidth=1.8, label=label)
    shown = [*places][:: max(1, -(-len(order) // MOST_NAMES))]
    axes.set_xticks(shown, [order[n] for n in shown], rotation=40, ha="right", fontsize=7)
    axes.set_xlim(-0.5, len(order) - 0.5)
    axes.set_ylabel("activations in use, kB")
    axes.legend(frameon=False, loc="upper right")
    return style.png(figure, 150)
