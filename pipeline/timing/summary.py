"""Results of a plan's simulation, under the names of the metrics; all per inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.rates import Rates
from pipeline.plan.vocabulary import Plan
from pipeline.timing.bars import bars
from pipeline.timing.energy import energy
from pipeline.timing.layers import LayerTimes, by_layer
from pipeline.timing.simulate import Timeline, simulate
from pipeline.timing.states import states
from pipeline.timing.trade import trade
from pipeline.timing.wear import wear, written

SEGMENTS = 400
"""Bars of the timeline that schedule.json keeps."""


WITHOUT_CARD = dict.fromkeys(
    ("card_read_bytes", "card_write_bytes", "wear", "wear_worst", "write_amplification_block",
     "write_amplification_erase"), 0,
)  # fmt: skip
"""Figures of a plan that uses no card: nothing moves, nothing wears."""


def summary(plan: Plan, graph: Graph, hardware: Hardware) -> dict[str, Any]:
    """Return the timed part of schedule.json; ``WITHOUT_CARD`` for a plan without one."""
    if not plan.on_card:
        return dict(WITHOUT_CARD)
    timeline = simulate(plan, graph, hardware)
    layers = [op.name for op in graph.operators]
    segments = [each.content() for each in bars(plan, timeline, layers, SEGMENTS)]
    found = summarized(timeline, graph, hardware) | {"segments": segments}
    if note := dict(plan.notes).get("trade"):
        input_bytes = int(graph.tensors[graph.input].bytes)
        found["trade"] = trade(str(note), found["compute_us"], input_bytes, hardware)
    return found


def summarized(timeline: Timeline, graph: Graph, hardware: Hardware) -> dict[str, Any]:
    """Metrics of one inference, and how the simulation came to them.

    ``compute_us`` and ``io_us`` are the core's and the card's time, ``sealing_us`` the core's for
    what security takes, ``makespan_us`` that of all the frames; ``saved_us`` is what moving while
    computing saves of it. ``overhead_pct`` is what the
    makespan exceeds computing alone by, each layer whole, which is all that unlimited SRAM
    would take;
    ``throughput_loss_pct`` is what share of the makespan the core does not compute.
    """
    frames, makespan_us, card = timeline.frames, timeline.makespan_us, hardware.card
    busy = states(timeline, card.dma)
    spent = energy(busy, hardware)
    computing_us = busy.computing_us - timeline.halted_us
    moving_us = busy.read_us + busy.write_us - timeline.sealing_us
    read = sum(float(task.bytes.sum()) for task in timeline.tasks if task.kind == "read")
    stored = sum(float(task.stored.sum()) for task in timeline.tasks if task.kind == "write")
    layers = by_layer(timeline, graph, Rates.of(hardware))
    cells = written(timeline, card, int(graph.tensors[graph.input].bytes))
    lasts, worst = (wear(size, makespan_us, card) for size in (cells.stored, cells.erased))
    found: dict[str, Any] = {
        "frames": frames,
        "makespan_us": makespan_us,
        "compute_us": computing_us / frames,
        "io_us": moving_us / frames,
        "saved_us": computing_us + moving_us - makespan_us,
        "throughput_fps": frames / makespan_us * 1e6 if makespan_us else 0.0,
        "card_read_bytes": read / frames,
        "card_write_bytes": stored / frames,
        "wear": cells.stored / frames,
        "wear_worst": cells.erased / frames,
        "wear_gb_a_day": lasts.bytes_a_day / 1e9,
        "wear_years_first_failure": lasts.years_first_failure,
        "wear_years_half": lasts.years_half,
        "wear_years_first_failure_worst": worst.years_first_failure,
        "wear_years_half_worst": worst.years_half,
        "write_amplification_block": cells.block_amplification,
        "write_amplification_erase": cells.erase_amplification,
        "card_timing": card.timing,
        **({"sealing_us": timeline.sealing_us / frames} if timeline.sealing_us else {}),
        "states_us": {
            "compute": busy.compute_us, "io": busy.io_us, "both": busy.both_us,
            "idle": busy.idle_us,
        },
        "traffic": [layer.content() for layer in layers],
    }  # fmt: skip
    found |= network(graph, layers)
    if computing_us:
        found["overhead_pct"] = 100 * (
            makespan_us / (frames * timeline.alone_us or computing_us) - 1
        )
        found["throughput_loss_pct"] = 100 * (1 - computing_us / makespan_us)
    if spent.total_uj:
        if alone_uj := hardware.power.active_uj(computing_us):
            found["energy_overhead_pct"] = 100 * (spent.total_uj / alone_uj - 1)
        found["energy_uj"] = spent.total_uj / frames
        found |= {
            "energy_compute_uj": spent.compute_uj / frames, "energy_io_uj": spent.io_uj / frames,
            "energy_both_uj": spent.both_uj / frames, "energy_idle_uj": spent.idle_uj / frames,
        }  # fmt: skip
    return found


def network(graph: Graph, layers: Sequence[LayerTimes]) -> dict[str, Any]:
    """Table 2 of SwapNN: how many layers are bound by what when all is moved once, pooling left
    out, and the sizes of feature maps (all outputs) and weights, in MB."""
    weighted = {op.name for op in graph.operators if op.parameters}
    bounds = [layer.bound_once for layer in layers if layer.layer in weighted]
    maps = sum(graph.tensors[op.output].bytes for op in graph.operators) / 1e6
    weights = graph.weight_bytes / 1e6
    return {
        "layers_compute_bound": bounds.count("compute"),
        "layers_io_bound": bounds.count("io"),
        "feature_map_mb": maps,
        "weight_mb": weights,
        "footprint_mb": maps + weights,
    }
