"""Two verifiers that share nothing before the same plans: random ones and those of every strategy,
as they are and with a mistake. What both accept has to run.

``python -m tests.plan.agreement 10000`` prints what became of so many plans.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.interpret import sequence
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan, PlanError
from tests.plan.mutations import mutant
from tests.plan.random_plans import random_plan
from tests.plan.reference import judge
from tests.plan.reference_places import Wrong
from tests.plan.subjects import said, subjects

STRICTER = {
    r"resident buffer \w+ overlaps another one": "it may hold the very same elements there",
    r"counter \w+ is signalled by two tracks": "nobody may wait for the second",
    r"does not lie where the next call finds": "its map may have the same cells in other words",
    r"would be watched up to byte": "a limit of the machine that verifies",
}
"""Refusals by ``verify`` although nothing goes wrong, and when that is so."""

Case = tuple[Plan, Graph]


@dataclass
class Tally:
    """
    Attributes:
        stricter: plans that only ``verify`` refuses, by the reason in ``STRICTER``.
        shown: how many accepted plans have something in a field of a class, or use the class.
        faults: what must not be, with the seed.
    """

    plans: int = 0
    accepted: int = 0
    refused: int = 0
    stricter: Counter[str] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def case(seed: int) -> Case:
    """A random plan, or that of a strategy; two of three with a mistake."""
    rng = np.random.default_rng([1, seed])
    if seed % 4:
        plan, graph = random_plan(seed)
    else:
        every = [*subjects().values()]
        subject = every[seed // 4 % len(every)]
        plan, graph = subject.plan, subject.graph
    spoilt = None
    while rng.random() < 0.9 and spoilt is None and seed % 3:
        spoilt = mutant(rng, plan, graph)
    return spoilt or plan, graph


def compared(seeds: Iterable[int]) -> Tally:
    tally = Tally()
    for seed in seeds:
        tally.plans += 1
        if fault := _compare(*case(seed), seed, tally):
            tally.faults.append(f"{seed}: {fault}")
    return tally


def _compare(plan: Plan, graph: Graph, seed: int, tally: Tally) -> str | None:
    """Compare both verifiers; return what must not be."""
    computed, wrong = by_reference(plan, graph)
    try:
        report = verify(plan, graph)
    except PlanError as error:
        if wrong:
            tally.refused += 1
            return None
        known = next((reason for reason in STRICTER if re.search(reason, str(error))), None)
        tally.stricter[known or "?"] += 1
        return None if known else f"refused without need: {error}"
    if wrong:
        return f"accepted, though {wrong}"
    if report.computed != computed:
        return f"computes {computed}, not {report.computed}"
    tally.accepted += 1
    tally.shown.update(said(plan))
    return misfires(plan, graph, np.random.default_rng(seed))


def by_reference(plan: Plan, graph: Graph) -> tuple[Counter[str], str]:
    """Return what is computed, and what is wrong."""
    try:
        return judge(plan, graph), ""
    except Wrong as wrong:
        return Counter(), str(wrong)


def refuse(plan: Plan, graph: Graph, said: str) -> None:
    """Both do, the verifier with a word that matches ``said``."""
    with pytest.raises(PlanError, match=said) as refusal:
        verify(plan, graph)
    assert by_reference(plan, graph)[1] or any(
        re.search(reason, str(refusal.value)) for reason in STRICTER
    )


def misfires(plan: Plan, graph: Graph, rng: np.random.Generator) -> str | None:
    """Say what is wrong with the outputs of a random input, or of some that follow each other where
    there are states, under some interleavings of the tracks.

    Sums that are rounded give outputs near the graph's: these have to be the same under all.
    """
    tensor = graph.tensors[graph.input]
    low, high = tensor.dtype.minimum, tensor.dtype.maximum
    calls = 3 if graph.states else 1
    images = rng.integers(low, high + 1, (calls, plan.frames, *tensor.shape))
    wanted = graph.evaluate(images.reshape(-1, *tensor.shape))
    rounded = any(buffer.step > 1 for buffer in plan.buffers)
    choices = [min, max, *[lambda ready: int(rng.choice(ready))] * 3]
    for choose in choices if len(plan.tracks) > 1 else [min]:
        given = images if plan.frames > 1 else images[:, 0]
        found = np.stack([*sequence(plan, graph, given, choose)])
        if rounded and choose is min:
            wanted = found
        elif not np.array_equal(found.reshape(wanted.shape), wanted):
            return f"gives {found.tolist()}, not {wanted.tolist()}"
    return None


def main() -> None:
    tally = compared(range(int(sys.argv[1])))
    print(
        f"{tally.plans} plans: {tally.accepted} accepted by both and run, {tally.refused} refused"
    )
    for reason, count in tally.stricter.items():
        print(f"refused by verify alone: {count} ({reason}: {STRICTER.get(reason)})")
    print(*(f"{count:6} {name}" for name, count in tally.shown.most_common()), sep="\n")
    print("\n".join(tally.faults) or "no fault")


if __name__ == "__main__":
    main()
