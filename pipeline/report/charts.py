"""Charts of the report as inline SVG: text stays text, and equal input gives equal bytes."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("svg")

from matplotlib.figure import Figure

from pipeline.plan.cost import Moment
from pipeline.plan.draw import Interval

INK, ACCENT, QUIET, PEAK = "#22303c", "#2a7f9e", "#c9d6dd", "#c8553d"
LONGEST = 30
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "thimble",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.parse_math": False,  # names are text, whatever dollars are in them
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.edgecolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def memory_over_time(timeline: Sequence[Moment]) -> str:
    """One bar a stretch of the plan: bytes covered, and outlined what separate buffers would take.

    The gap between bar and outline is what sharing cells saves.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 3.4), layout="constrained")
        axes = figure.add_subplot()
        places = range(len(timeline))
        covered = [moment.live_bytes for moment in timeline]
        apart = [moment.apart_bytes for moment in timeline]
        peak = max(covered)
        axes.bar(places, apart, 0.8, facecolor="none", edgecolor=QUIET, label="as separate buffers")
        colours = [PEAK if size == peak else ACCENT for size in covered]
        axes.bar(places, covered, 0.8, color=colours, label="bytes in use")
        axes.axhline(peak, color=PEAK, linewidth=0.8, linestyle=":")
        axes.annotate(
            f"peak {peak:g} B",
            (len(timeline) - 0.6, peak),
            ha="right",
            va="bottom",
            color=PEAK,
        )
        few = len(timeline) <= 24
        labels = [_shown(moment.label) for moment in timeline]
        turns = [n for n in places if n == 0 or labels[n] != labels[n - 1]]
        shown = list(places) if few else turns[:: max(1, len(turns) // 24)]
        axes.set_xticks(shown, [labels[n] for n in shown], rotation=35 if len(shown) > 8 else 0)
        axes.set_ylabel("bytes")
        axes.legend(frameon=False, loc="upper left")
        axes.set_ylim(0, max(apart) * 1.25)
        return _svg(figure)


def gantt_chart(intervals: Sequence[Interval], unit: str) -> str:
    """The tracks side by side on a common time axis, in ``unit``."""
    with matplotlib.rc_context(STYLE):
        tracks = list(dict.fromkeys(bar.track for bar in intervals))
        figure = Figure(figsize=(9.0, 0.8 + 0.5 * len(tracks)), layout="constrained")
        axes = figure.add_subplot()
        for row, track in enumerate(tracks):
            spans = [(bar.start, bar.stop - bar.start) for bar in intervals if bar.track == track]
            axes.broken_barh(spans, (row - 0.35, 0.7), facecolors=ACCENT, edgecolors="white")
        axes.set_yticks(range(len(tracks)), tracks)
        axes.set_xlabel(unit)
        return _svg(figure)


def _shown(name: str) -> str:
    """``name`` as it may stand below an axis: names come from files, of any length."""
    cut = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)


def _svg(figure: Figure) -> str:
    stream = io.StringIO()
    with warnings.catch_warnings():  # the browser's fonts have what ours have not
        warnings.filterwarnings("ignore", "Glyph")
        figure.savefig(stream, format="svg", metadata={"Date": None})
    drawing = stream.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    return re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
