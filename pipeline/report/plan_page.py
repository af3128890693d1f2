"""``plan.html``: what a plan says before anything is built; with a card, when what runs and why.

Self-contained. The chart of the tracks is drawn by a script in the page, so that one can zoom in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import jinja2

from pipeline.artifacts import write_text
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.draw import pseudocode
from pipeline.plan.vocabulary import Plan
from pipeline.timing.bars import Bars, bars
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import swaps

MOST_LINES = 2000
"""Of pseudo-code."""

STATES = {
    "both": "core and card",
    "compute": "core alone",
    "io": "card alone: the core waits",
    "idle": "neither",
}


def write(
    path: Path, graph: Graph, plan: Plan, hardware: Hardware, report: Mapping[str, Any]
) -> None:
    """
    Args:
        report: the content of schedule.json.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"si": si, "seconds": seconds, "count": count}
    lines = pseudocode(plan).splitlines()
    layers = [op.name for op in graph.operators]
    charts = bars(plan, simulate(plan, graph, hardware), layers) if swaps(plan) else ()
    page = environment.get_template("plan.html.j2").render(
        graph=graph,
        plan=plan,
        hardware=hardware,
        report=report,
        states=STATES,
        gantt=packed(charts, layers, report.get("makespan_us", 0.0)) if charts else "",
        longest_us=max(
            (max(row["compute_us"], row["io_us"]) for row in report.get("traffic", ())),
            default=0.0,
        ),
        pseudocode="\n".join(islice(lines, MOST_LINES)),
        left_out=max(0, len(lines) - MOST_LINES),
    )
    write_text(path, page)


def packed(charts: Sequence[Bars], layers: Sequence[str], makespan_us: float) -> str:
    """The bars as JSON for the page's script, times in whole microseconds."""
    tracks = [each.content() for each in charts]
    content = {"tracks": tracks, "layers": list(layers), "end": round(makespan_us)}
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def si(value: float, unit: str = "B") -> str:
    """``15.1 MB``: three digits, powers of 1000."""
    prefixes = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3))
    for prefix, factor in prefixes:
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value / 1e-6:.3g} u{unit}" if value else f"0 {unit}"


def seconds(us: float) -> str:
    """A time of microseconds in the unit that suits it."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= factor:
            return f"{us / factor:,.4g} {unit}" if us < 1e9 else f"{us / factor:,.0f} {unit}"
    return f"{us:.3g} us"


def count(value: float) -> str:
    return f"{value:,.0f}".replace(",", "\u202f")
