"""The memory that each layer needs, of several plans for one network, in one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.report import style
from pipeline.report.style import LINE, SERIES

COLOURS = (LINE, *SERIES)
"""Colours of the plans, in order; the first is filled."""

MOST_NAMES = 24
"""Layers that are named below the axis; of more, evenly spaced ones."""


def png(profiles: Sequence[tuple[str, Mapping[str, float]]]) -> bytes | None:
    """Return the picture, layers in the order of the first plan; None where there are fewer than
    two plans, more than there are colours, or they are not all of the same layers.

    Args:
        profiles: name, and by operator, in the order they run, the bytes in use meanwhile.
    """
    known = {frozenset(sizes) for _, sizes in profiles}
    if not 2 <= len(profiles) <= len(COLOURS) or len(known) != 1 or not profiles[0][1]:
        return None
    order = list(profiles[0][1])
    places = range(len(order))
    figure = Figure(figsize=(10.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for number, (name, sizes) in enumerate(profiles):
        kilobytes = [sizes[layer] / 1000 for layer in order]
        label = f"{name}: peak {max(sizes.values()):,.0f} B"
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
