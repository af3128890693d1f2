"""Is a proved plan right, and does it fit: tried on frames, costed, compared with the board."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.ends import joined
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.metrics import METRICS_VERSION
from pipeline.plan.calibrate import rounds
from pipeline.plan.cost import Cost, cost
from pipeline.plan.fit import fit, fits, of_board, roomy
from pipeline.plan.interpret import sequence
from pipeline.plan.verify import Report
from pipeline.plan.vocabulary import Plan
from pipeline.timing.summary import summary

RANDOM_FRAMES = 2
LARGE_MACS = 20_000_000
HUGE_MACS = 500_000_000
"""Most MACs, of all frames, at which a plan with several tracks (computed tile by tile) is tried:
a larger one is proved, but not tried, which would take minutes."""


def check(
    plan: Plan,
    graph: Graph,
    hardware: Hardware,
    proof: Report | None = None,
    costs: Cost | None = None,
) -> dict[str, Any]:
    """Return the content of schedule.json: costs, and whether the plan fits ``hardware``; it is
    proved here unless ``proof``, or ``costs``, say what was.

    Raises:
        PlanError: the plan is wrong, or takes a memory for something else than it is.
        ThimbleError: interpreting it gives other outputs than the graph: a bug of ours, since
            a verified plan cannot, unless its accumulators round; then the largest difference of
            any output is reported.
    """
    of_board(plan, hardware)
    plan = roomy(plan)
    costs = costs or cost(plan, graph, hardware, proof)
    difference = 0
    huge = len(plan.tracks) > 1 and graph.macs * plan.frames > HUGE_MACS
    given = [] if huge else list(frames(graph))
    wanted = graph.evaluate(np.stack(given), batch=1) if given else ()
    pairs = zip(wanted, sequence(plan, graph, given), strict=True)
    for number, (expected, result) in enumerate(pairs):
        difference = max(difference, int(np.abs(result - expected).max()))
        if difference and not rounds(plan):
            raise ThimbleError(
                f"strategy {plan.strategy}: frame {number} gives {result.tolist()}, the "
                f"graph {expected.tolist()}: please report it with params.yaml"
            )
    verdict = fit(plan, costs, hardware)
    memories = [
        {"name": name, "needed_bytes": of.needed_bytes, "available_bytes": of.available_bytes}
        for name, of in fits(plan, costs, hardware).items()
        if of.needed_bytes
    ]
    report: dict[str, Any] = {
        "metrics_version": METRICS_VERSION,
        "status": "ok" if verdict.fits else "infeasible",
        "pmu_bytes": costs.pmu_bytes,
        **({"state_bytes": graph.state_bytes} if graph.states else {}),
        "arena_bytes": costs.arena_bytes,
        "arena_over_bound_bytes": costs.over_bound_bytes,
        "weight_bytes": graph.weight_bytes,
        "macs": costs.macs,
        "macs_executed": costs.macs_executed,
        "moved_bytes": costs.moved_bytes,
        "peak_at": costs.peak.label,
        "memories": memories,
        "resource": verdict.resource,
        "needed_bytes": verdict.needed_bytes,
        "available_bytes": verdict.available_bytes,
        **dict(plan.notes),
        **timed(plan, graph, hardware),
    }
    if rounds(plan):
        report["largest_difference"] = difference
    if not verdict.fits:
        report |= {"where": verdict.where, "advice": f"try {verdict.advice}"}
    return report


def timed(plan: Plan, graph: Graph, hardware: Hardware) -> dict[str, Any]:
    """Return when a plan that uses a card runs what; of others that nothing moves.

    Raises:
        ThimbleError: the simulation is faster than the bound that the strategy proved: a bug.
    """
    found, bound_us = summary(plan, graph, hardware), dict(plan.notes).get("bound_us")
    if bound_us and "makespan_us" in found and found["makespan_us"] < float(bound_us) * (1 - 1e-9):
        raise ThimbleError(
            f"strategy {plan.strategy}: {found['makespan_us']:g} us is less than the proven bound "
            f"of {float(bound_us):g} us: please report it with params.yaml"
        )
    return found


def frames(graph: Graph) -> Iterator[IntArray]:
    """Inputs worth trying: both ends of the input's type, and a few at random; for a network of
    more than ``LARGE_MACS`` one at random."""
    inputs, rng = [graph.tensors[name] for name in graph.inputs], np.random.default_rng(0)
    ends = [(each.dtype.minimum, each.dtype.maximum, each.shape) for each in inputs]
    large = graph.macs > LARGE_MACS
    if not large:
        for end in (0, 1):
            yield joined([np.full((1, *each[2]), each[end], np.int64) for each in ends])[0]
    for _ in range(1 if large else RANDOM_FRAMES):
        yield joined([rng.integers(a, b, (1, *shape), endpoint=True) for a, b, shape in ends])[0]
