"""Style pictures that are files: the palette of the pages, text that stays what it is."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from pipeline.report import palette

matplotlib.use("svg")

INK, LINE, PAPER, PEAK = (
    each.light for each in (palette.INK, palette.LINE, palette.PAPER, palette.PEAK)
)
SERIES = tuple(palette.ALL[name].light for name in palette.SERIES)
"""Colours of things that are compared, in order."""
TIME = tuple(palette.TIME[name].light for name in ("compute", "read", "write"))
"""Colours of the kinds of ``timing.bars``."""

matplotlib.rcParams.update(
    {
        "font.family": "sans-serif",
        "font.size": 10,
        "text.parse_math": False,  # names are text, whatever dollars are in them
        "text.color": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.edgecolor": LINE,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)


def png(figure: Figure, dpi: int = 130, **how: Any) -> bytes:
    """Return the picture; ``how`` it is saved besides."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi, metadata={"Software": None}, **how)
    return stream.getvalue()


def label_sizes(axis: Axis) -> None:
    """Label a logarithmic axis in bytes: whole numbers, few enough not to touch."""
    axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
