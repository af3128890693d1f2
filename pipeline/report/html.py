"""The self-contained ``report.html`` of one run: no scripts, no fonts, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from pipeline.artifacts import write_text
from pipeline.graph.graph import Graph
from pipeline.metrics import NO_LIMIT
from pipeline.plan.cost import Cost
from pipeline.plan.draw import gantt, pseudocode
from pipeline.plan.vocabulary import Plan
from pipeline.report import ram
from pipeline.report.charts import gantt_chart, memory_over_time


@dataclass(frozen=True)
class Bar:
    """A memory as coloured parts: (name, bytes) each, out of ``limit_bytes``."""

    title: str
    limit_bytes: float
    parts: tuple[tuple[str, float], ...]

    @property
    def used_bytes(self) -> float:
        return sum(size for _, size in self.parts)

    @property
    def scale_bytes(self) -> float:
        """What the whole bar stands for: the limit, or more when the parts exceed it."""
        return max(self.limit_bytes, self.used_bytes)


def bars(metrics: Mapping[str, Any]) -> tuple[Bar, ...]:
    """RAM, flash and memories outside of the chip, from the metrics that are known so far; a
    computer has none."""
    result = []
    if (metrics.get("sram_limit_bytes") or NO_LIMIT) < NO_LIMIT:
        weights = metrics.get("weight_sram_bytes", 0)
        arena = metrics.get("arena_bytes", 0) if metrics.get("arena_in_sram", True) else 0
        parts = [("weights", weights), ("arena", arena)]
        parts.append(("stack", metrics.get("stack_bytes") or 0))
        known = sum(size for _, size in parts)
        parts.append(("other", max(0, (metrics.get("sram_bytes") or 0) - known)))
        shown = tuple((name, size) for name, size in parts if size)
        result.append(Bar("SRAM", metrics["sram_limit_bytes"], shown))
    flash = metrics.get("flash_limit_bytes") or NO_LIMIT
    if metrics.get("flash_bytes") and flash < NO_LIMIT:
        program = (("program", metrics["flash_bytes"]),)
        result.append(Bar("Flash", metrics["flash_limit_bytes"], program))
    for name, (used, available) in (metrics.get("outside") or {}).items():
        result.append(Bar(name, available, (("network", used),)))
    return tuple(result)


def layers(graph: Graph, cost: Cost) -> list[dict[str, Any]]:
    """One row an operator: shapes, work, parameters, and the memory in use while it runs."""
    rows = []
    for op in graph.operators:
        live = [m.live_bytes for m in cost.timeline if m.label == op.name]
        source, target = graph.tensors[op.inputs[0]], graph.tensors[op.output]
        rows.append(
            {
                "name": op.name,
                "kind": type(op).__name__,
                "from": "×".join(map(str, source.shape)),
                "to": "×".join(map(str, target.shape)),
                "type": str(target.dtype),
                "macs": op.macs(graph.tensors),
                "weight_bytes": sum(graph.tensors[name].bytes for name in op.parameters),
                "output_bytes": target.bytes,
                "live_bytes": max(live, default=None),
            }
        )
    return rows


def explain_peak(plan: Plan, cost: Cost) -> str:
    """Why the peak is where it is, in one sentence."""
    peak = cost.peak
    apart = peak.apart_bytes
    parts = " + ".join(f"{name} {size:g} B" for name, size in peak.buffers)
    if apart == peak.live_bytes:
        return f"The peak of {peak.live_bytes:g} B is at {peak.label}: {parts}, all live at once."
    return (
        f"The peak of {peak.live_bytes:g} B is at {peak.label}: {parts} would take {apart:g} B "
        f"apart; {apart - peak.live_bytes:g} B are shared, because elements are written over "
        "others whose last use is past."
    )


def write(
    path: Path,
    graph: Graph,
    plan: Plan,
    cost: Cost,
    metrics: Mapping[str, Any],
    provenance: Mapping[str, str],
) -> None:
    """Write the report.

    Args:
        metrics: ``metrics.json``'s content; what is missing is left out.
        provenance: name -> value: hashes, versions, the config's choices.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    tracks = len(plan.tracks) > 1
    page = environment.get_template("report.html.j2").render(
        graph=graph,
        plan=plan,
        metrics=metrics,
        groups=groups(metrics),
        bars=bars(metrics),
        ram=ram.rows(metrics),
        ram_scale=ram.scale(ram.rows(metrics), metrics.get("sram_limit_bytes") or 0),
        ram_kinds=ram.COUNTED,
        layers=layers(graph, cost),
        cycles=metrics.get("layers", ()),
        peak=explain_peak(plan, cost),
        timeline=memory_over_time(cost.timeline),
        gantt=gantt_chart(gantt(plan, lambda event: 1.0), "steps") if tracks else "",
        pseudocode=pseudocode(plan),
        provenance=provenance,
    )
    write_text(path, page)


ACCURACY, MEMORY, TIME, CARD = "Accuracy", "Memory", "Time and energy", "Card"
GROUPS = {
    ACCURACY: (
        *("accuracy_float", "accuracy_int", "accuracy_device"),
        *("agreement_float", "images_float"),
    ),
    "Same answers everywhere": (
        *("images_device", "mismatches_device", "images_host", "mismatches_host"),
        "images_reference",
    ),
    MEMORY: (
        *("pmu_bytes", "liveness_bytes", "arena_bytes", "linked_bytes", "stack_bytes"),
        *("sram_bytes", "sram_limit_bytes"),
        *("weight_bytes", "flash_bytes"),
    ),
    TIME: (
        *("latency_us", "latency_max_us", "latency_low_us", "latency_high_us"),
        "latency_error_pct",
        *("compute_us", "cycles", "instructions", "macs", "macs_executed", "energy_uj"),
    ),
    CARD: (
        *("io_us", "overhead_pct", "throughput_fps", "throughput_loss_pct"),
        *("card_read_bytes", "card_write_bytes"),
        *("wear", "wear_years_first_failure", "wear_years_half"),
    ),
}
"""The metrics of DESIGN's contract in the order people ask for them."""

MODELLED = ("latency_us", "latency_low_us", "latency_high_us", "cycles")
"""Metrics that no clock measured, where the core's cycles are modelled; energy is so everywhere."""


def groups(metrics: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tables of results: title -> what a row is called -> its value."""
    modelled = {"energy_uj", *(MODELLED if "latency_low_us" in metrics else ())}
    hidden = {name for name in metrics if name.endswith("_limit_bytes")
              and metrics[name] >= NO_LIMIT}  # fmt: skip
    if metrics.get("random_weights"):
        hidden |= set(GROUPS[ACCURACY])
    if not any(metrics.get(name) for name in GROUPS[CARD]):
        hidden |= set(GROUPS[CARD])
    found = {
        title: {
            f"{name} (modelled)" if name in modelled else name: metrics[name]
            for name in names
            if metrics.get(name) is not None and name not in hidden
        }
        for title, names in GROUPS.items()
    }
    return {title: values for title, values in found.items() if values}


def number(value: Any) -> str:
    """Thousands apart; fractions only where there are any."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if float(value).is_integer():
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:,.4g}" if abs(value) < 10 else f"{value:,.1f}".replace(",", "\u202f")
