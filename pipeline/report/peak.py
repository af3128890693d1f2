"""Why a plan's peak is where it is, and what would have to change to lower it, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.plan.cost import ACTIVATIONS, Cost, timeline
from pipeline.plan.vocabulary import Plan
from pipeline.words import number, time

WITHOUT = "hardware.kernels=portable"
"""What is typed for kernels without scratch."""

MOST_NAMED = 4
"""Tensors; of more, the largest."""


def explain(plan: Plan, cost: Cost) -> str:
    """Say why the peak is where it is."""
    peak = cost.peak
    apart = peak.apart_bytes
    largest = sorted(peak.buffers, key=lambda held: -held[1])
    parts = [f"{plan.buffer[name].tensor or name} {number(size)} B" for name, size in largest]
    if len(parts) > MOST_NAMED + 1:
        parts = [*parts[:MOST_NAMED], f"{len(parts) - MOST_NAMED} more"]
    said = f"The peak of {number(peak.live_bytes)} B is at {peak.label}: {listed(parts)}"
    if apart == peak.live_bytes:
        return f"{said}, all live at once."
    return (
        f"{said} would take {number(apart)} B apart; {number(apart - peak.live_bytes)} B are "
        "shared, because elements are written over others whose last use is past."
    )


def scratch(plan: Plan, report: Mapping[str, Any]) -> str:
    """Say when most of the arena is in use, where scratch is part of that, and what the key costs
    that does without; "" for plans without scratch.

    Args:
        report: schedule.json, whose ``others`` may have a row ``WITHOUT``.
    """
    moments = timeline(plan, (*ACTIVATIONS, "scratch"))
    fullest = max(moments, key=lambda moment: moment.live_bytes)
    own = sum(size for name, size in fullest.buffers if plan.buffer[name].role == "scratch")
    if not own:
        return ""
    said = (
        f"The arena of {number(report['arena_bytes'])} B is fullest at {fullest.label}: "
        f"{number(own)} B of it are scratch of the kernels there."
    )
    rows = (each for each in report.get("others", ()) if each["strategy"] == WITHOUT)
    row: Mapping[str, Any] = next(rows, {})
    if "modelled_us" in row and "modelled_us" in report:
        said += (
            f" {WITHOUT} takes none, {number(row['needed_bytes'])} B in all with the stack, and "
            f"{time(row['modelled_us'])} for {time(report['modelled_us'])}."
        )
    return said


def lower(plan: Plan, graph: Graph, cost: Cost) -> str:
    """Say what limits the peak: which tensor would have to go or shrink, and how much there is to
    gain before another layer is the limit."""
    peak = cost.peak
    name, size = max(peak.buffers, key=lambda held: held[1])
    tensor = plan.buffer[name].tensor or name
    users = [op.name for op in graph.operators if tensor in op.inputs]
    until = f"is needed until {users[-1]} has read it" if users else "is the network's output"
    alike = list(dict.fromkeys(m.label for m in cost.timeline if m.live_bytes == peak.live_bytes))
    said = f"To lower it, less of {tensor} ({number(size)} B, the largest then) may exist at once: "
    said += f"it {until}."
    if len(alike) == 2:
        said += f" {listed(alike)} both reach this peak, and both would have to change."
    elif len(alike) > 2:
        said += f" {len(alike)} layers reach this peak, from {alike[0]} to {alike[-1]}, and all "
        said += "of them would have to change."
    others = [m for m in cost.timeline if m.label not in alike]
    if others:
        after = max(others, key=lambda moment: moment.live_bytes)
        gain = peak.live_bytes - after.live_bytes
        said += (
            f" At most {number(gain)} B are to be gained here: then {after.label} is the limit, "
            f"with {number(after.live_bytes)} B."
        )
    return said


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last
