"""The page of a plan or of a run: self-contained, whatever of it is known by then.

One template for both. ``plan.html`` is written once a plan is proved, ``report.html`` when what was
made of it has run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.artifacts import write_text
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import Cost
from pipeline.plan.draw import pseudocode
from pipeline.plan.fit import roomy
from pipeline.plan.vocabulary import Plan
from pipeline.report import headline, memories, network, peak, ram, results
from pipeline.report.images import Predictions
from pipeline.report.memory_map.clock import by_work, simulated
from pipeline.report.memory_map.picture import picture
from pipeline.report.savings import savings
from pipeline.report.template import embedded, environment
from pipeline.timing.bars import bars
from pipeline.timing.simulate import simulate

MOST_LINES = 2000
"""Most lines of pseudo-code."""

STATES = {
    "both": ("core and card", "both"),
    "compute": ("core alone", "compute"),
    "io": ("card alone: the core waits", "read"),
    "idle": ("neither", "idle"),
}


def write(
    path: Path,
    graph: Graph,
    plan: Plan,
    hardware: Hardware,
    cost: Cost,
    schedule: Mapping[str, Any],
    metrics: Mapping[str, Any] | None = None,
    provenance: Mapping[str, str] | None = None,
    passes: Sequence[Mapping[str, Any]] = (),
    predictions: Predictions | None = None,
    quantized: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns what its memory map shows (``memory_map.picture``).

    Args:
        schedule: the content of schedule.json.
        metrics: of metrics.json, of a run; what is missing is left out.
        provenance: name -> value: hashes, versions, the config's choices.
        passes: the content of passes.json.
        predictions: what it says of the test images.
        quantized: the layers that lose most by it, a line each.
    """
    ran = metrics or {}
    names = [op.name for op in graph.operators]
    timeline = simulate(roomy(plan), graph, hardware) if plan.on_card else None
    clock = simulated(plan, timeline) if timeline else by_work(plan, graph)
    charts = bars(plan, timeline, names) if timeline else ()
    drawn = picture(plan, graph, hardware, cost, clock, charts, ran)
    layers = network.layers(graph, plan, cost, schedule, ran)
    besides = schedule.get("others", ())
    four = ram.rows(ran)
    lines = pseudocode(plan).splitlines()
    page = (
        environment()
        .get_template("page.html.j2")
        .render(
            title=f"{graph.name} · {plan.strategy}",
            graph=graph,
            plan=plan,
            hardware=hardware,
            schedule=schedule,
            metrics=ran,
            verdict=headline.verdict(schedule, ran),
            figures=headline.figures(schedule, ran, memories.constants(plan)),
            bars=memories.bars(ran, hardware) or memories.planned(plan, hardware),
            drawn=drawn,
            map_data=embedded(drawn),
            present={
                drawn["buffers"][row[0]]["kind"]
                for memory in drawn["memories"]
                for row in memory["held"]
            },
            turns=clock.unit != "us" and any(len(each.layers) > 1 for each in clock.stretches),
            peak_bytes=cost.pmu_bytes,
            peak=f"{peak.explain(plan, cost)} {peak.scratch(plan, schedule)}".rstrip(),
            lower=peak.lower(plan, graph, cost),
            layers=layers,
            predictions=predictions,
            quantized=quantized,
            others=besides,
            others_most=max(cost.pmu_bytes, *(row.get("pmu_bytes", 0.0) for row in besides), 1.0),
            savings=savings(passes),
            largest_share=max((row["share"] for row in layers), default=0.0) or 1.0,
            groups=results.groups(ran or schedule),
            ram=four,
            ram_kinds=ram.COUNTED,
            ram_scale=ram.scale(four, ran.get("sram_limit_bytes") or 0),
            states=STATES,
            longest_us=max(
                (max(row["compute_us"], row["io_us"]) for row in schedule.get("traffic", ())),
                default=0.0,
            ),
            pseudocode="\n".join(islice(lines, MOST_LINES)),
            left_out=max(0, len(lines) - MOST_LINES),
            provenance=provenance or {},
        )
    )
    write_text(path, page)
    return drawn
