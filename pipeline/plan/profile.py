"""Memory in use while each operator runs."""

from __future__ import annotations

from bisect import bisect_right

from pipeline.plan.cost import timeline
from pipeline.plan.unrolled import walk
from pipeline.plan.vocabulary import Compute, Finish, Plan


def profile(plan: Plan) -> list[tuple[str, float]]:
    """(operator, the most bytes in use during any of its steps), in the order they first run.

    Activations and accumulators, without scratch, as ``Cost.pmu_bytes``; in a loop an operator has
    many steps, and so do several operators side by side.
    """
    moments = list(timeline(plan))
    begins = [moment.step for moment in moments]
    found: dict[str, float] = {}
    if not moments:
        return []
    for number, event in enumerate(walk(plan)):
        if isinstance(event.step, Compute | Finish):
            live = moments[bisect_right(begins, number) - 1].live_bytes
            name = event.step.op
            found[name] = max(found.get(name, 0.0), live)
    return list(found.items())
