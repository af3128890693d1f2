"""Why a plan's peak is where it is, and what would have to change to lower it, in sentences."""

from __future__ import annotations

from pipeline.graph.graph import Graph
from pipeline.plan.cost import Cost
from pipeline.plan.vocabulary import Plan
from pipeline.report.words import number


def explain(plan: Plan, cost: Cost) -> str:
    """Why the peak is where it is."""
    peak = cost.peak
    apart = peak.apart_bytes
    parts = " + ".join(
        f"{plan.buffer[name].tensor or name} {number(size)} B" for name, size in peak.buffers
    )
    if apart == peak.live_bytes:
        return (
            f"The peak of {number(peak.live_bytes)} B is at {peak.label}: {parts}, "
            "all live at once."
        )
    return (
        f"The peak of {number(peak.live_bytes)} B is at {peak.label}: {parts} would take "
        f"{number(apart)} B apart; {number(apart - peak.live_bytes)} B are shared, because "
        "elements are written over others whose last use is past."
    )


def lower(plan: Plan, graph: Graph, cost: Cost) -> str:
    """What limits the peak: which tensor would have to go or shrink, and how much there is to gain
    before another layer is the limit."""
    peak = cost.peak
    name, size = max(peak.buffers, key=lambda held: held[1])
    tensor = plan.buffer[name].tensor or name
    users = [op.name for op in graph.operators if tensor in op.inputs]
    until = f"is needed until {users[-1]} has read it" if users else "is the network's output"
    alike = {m.label for m in cost.timeline if m.live_bytes == peak.live_bytes}
    said = f"To lower it, less of {tensor} ({number(size)} B, the largest then) may exist at once: "
    said += f"it {until}."
    if len(alike) > 1:
        said += f" {len(alike)} layers reach this peak, and all of them would have to change."
    others = [m for m in cost.timeline if m.label not in alike]
    if others:
        after = max(others, key=lambda moment: moment.live_bytes)
        gain = peak.live_bytes - after.live_bytes
        said += (
            f" At most {number(gain)} B are to be gained here: then {after.label} is the limit, "
            f"with {number(after.live_bytes)} B."
        )
    return said
