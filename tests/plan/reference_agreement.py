"""Random plans before both verifiers, and those that they accept run.

``python -m tests.plan.reference_agreement 10000`` prints what became of so many plans.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan, PlanError
from tests.plan.random_plans import Case, random_case
from tests.plan.reference import judge
from tests.plan.reference_places import Wrong

STRICTER = {
    r"resident buffer \w+ overlaps another one": "it may hold the very same elements there",
}
"""What ``verify`` refuses although nothing goes wrong, and when that is so."""


@dataclass
class Tally:
    """
    Attributes:
        stricter: plans that only ``verify`` refuses, by the reason in ``STRICTER``.
        shown: of the features of the vocabulary, how many accepted plans have each.
        tried: the same of all plans.
        faults: what must not be, with the seed.
    """

    plans: int = 0
    accepted: int = 0
    refused: int = 0
    stricter: Counter[str] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def compared(seeds: Iterable[int]) -> Tally:
    tally = Tally()
    for seed in seeds:
        case = random_case(seed)
        tally.plans += 1
        tally.tried.update(case.features)
        if fault := _compare(case, seed, tally):
            tally.faults.append(f"{seed}: {fault}")
    return tally


def _compare(case: Case, seed: int, tally: Tally) -> str | None:
    """What must not be."""
    computed, wrong = by_reference(case)
    try:
        plan = case.plan()
        report = verify(plan, case.graph)
    except PlanError as error:
        if wrong:
            tally.refused += 1
            return None
        known = next((reason for reason in STRICTER if re.search(reason, str(error))), None)
        tally.stricter[known or "?"] += 1
        return None if known else f"refused without need: {error}"
    except Exception as error:
        return f"raw {error!r}"
    if wrong:
        return f"accepted, though {wrong}"
    if report.computed != computed:
        return f"computes {computed}, not {report.computed}"
    tally.accepted += 1
    tally.shown.update(case.features)
    return misfires(plan, case.graph, np.random.default_rng(seed))


def by_reference(case: Case) -> tuple[Counter[str], str]:
    """What is computed, and what is wrong."""
    try:
        return judge(case.loose, case.graph), ""
    except Wrong as wrong:
        return Counter(), str(wrong)


def misfires(plan: Plan, graph: Graph, rng: np.random.Generator) -> str | None:
    """What is wrong with the outputs of a random input under some interleavings of the tracks.

    Sums that are rounded give outputs near the graph's: these have to be the same under all.
    """
    tensor = graph.tensors[graph.input]
    low, high = tensor.dtype.minimum, tensor.dtype.maximum
    images = rng.integers(low, high + 1, (plan.frames, *tensor.shape))
    wanted = graph.outputs(images)
    rounded = any(buffer.step > 1 for buffer in plan.buffers)
    choices = [min, max, *[lambda ready: int(rng.choice(ready))] * 3]
    for choose in choices if len(plan.tracks) > 1 else [min]:
        try:
            found = interpret(plan, graph, images if plan.frames > 1 else images[0], choose).output
        except Exception as error:
            return f"cannot be run: {error!r}"
        if rounded and choose is min:
            wanted = found
        elif not np.array_equal(found.reshape(wanted.shape), wanted):
            return f"gives {found.tolist()}, not {wanted.tolist()}"
    return None


if __name__ == "__main__":
    tally = compared(range(int(sys.argv[1])))
    print(
        f"{tally.plans} plans: {tally.accepted} accepted by both and run, {tally.refused} refused"
    )
    for reason, count in tally.stricter.items():
        print(f"refused by verify alone: {count} ({reason}: {STRICTER.get(reason)})")
    for feature, count in tally.tried.most_common():
        print(f"{feature:16} in {count:5} plans, {tally.shown[feature]:5} accepted")
    print("\n".join(tally.faults) or "no fault")
