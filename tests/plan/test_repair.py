"""Places from which an inference goes on: the rest is proved and right; where it is chosen."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import PlanError
from pipeline.graph.graph import Graph
from pipeline.plan import proof
from pipeline.plan.interpret import interpret
from pipeline.plan.repair import REPAIR, Repair
from pipeline.plan.vocabulary import Move, Plan
from pipeline.strategies.swap import Swap
from pipeline.timing import repair as timing
from pipeline.timing.simulate import Timeline, simulate
from tests.codegen.card.support import board, elements, planned
from tests.codegen.support import frames
from tests.strategies.swap.nets import random_chain
from tests.strategies.swap.test_best import residual
from tests.tiers import quick


def in_squares(graph: Graph) -> Plan:
    total = elements(graph)
    return planned(graph, total, scheduler="swapnn", buffer_bytes=total // 20)


def tight(graph: Graph) -> Plan:
    return planned(graph, elements(graph) // 8)


CASES = quick(2, [(in_squares, random_chain(1)), (tight, residual()), (tight, random_chain(4))])


@pytest.mark.parametrize(("make", "graph"), CASES)
def test_what_is_left_computes_the_rest(make: object, graph: Graph) -> None:
    """Of nothing but what crosses the place; and only where all of that comes from the card."""
    plan, frame = make(graph), frames(graph, 3)[2]  # type: ignore[operator]
    repair, values = Repair(plan, graph), graph.run(frame[None])
    places = list(repair.possible())
    for place in places:
        proof.prove(replace(plan, notes=((REPAIR, str(place)),)), graph)
        rest, after = repair.onward(place)
        parts = [values[name][0] for name in after.inputs]
        given = np.concatenate([n.reshape(-1) for n in parts]) if len(parts) > 1 else parts[0]
        assert (interpret(rest, after, given).output == graph.evaluate(frame[None])[0]).all()
    assert places or make is not in_squares


def test_a_place_that_finds_nothing_on_the_card_is_none() -> None:
    """The map that crosses it stays in memory."""
    graph = random_chain(1)
    plan, name = planned(graph, elements(graph) // 3), graph.operators[3].name
    assert not list(Repair(plan, graph).possible())
    with pytest.raises(PlanError, match=f"cannot go on from {name}: .* finds garbage"):
        proof.prove(replace(plan, notes=((REPAIR, "3"),)), graph)


@pytest.mark.parametrize("said", ["0", "3 2", "2 2", "7", "x", "-1"])
def test_places_that_are_none_are_damage(said: str) -> None:
    graph = random_chain(1)
    plan = replace(in_squares(graph), notes=((REPAIR, said),))
    with pytest.raises(PlanError, match="repair is damaged: it should have places"):
        Repair.noted(plan, graph)


def test_stores_come_in_order() -> None:
    """Else a byte of a layer does not say that those before are on the card."""
    graph = random_chain(1)
    plan = in_squares(graph)
    computing, moving = plan.tracks
    stores = [s for s in moving.steps if isinstance(s, Move) and s.dst.buffer in plan.on_card]
    swapped = replace(moving, steps=(stores[-1], *moving.steps))
    assert Repair(plan, graph).stores_in_order
    assert not list(Repair(replace(plan, tracks=(computing, swapped)), graph).possible())


def stops(line: Timeline, name: str) -> float:
    steps = zip(line.task.tolist(), line.stop.tolist(), strict=True)
    return max(
        stop for n, stop in steps if (line.tasks[n].kind, line.tasks[n].op) == ("compute", name)
    )


def test_places_are_noted_where_they_save_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where pieces have tags; a map of the first layer is made again from the input on."""
    graph, hardware = random_chain(1), board("encrypted", elements(random_chain(1)))
    buffer_bytes = elements(graph) // 8 // 32 * 32
    plan = Swap(scheduler="swapnn", buffer_bytes=buffer_bytes).plan(graph, hardware)
    found = timing.with_places(plan, graph, hardware)
    places = [int(word) for word in str(dict(found.notes)[REPAIR]).split()]
    saving, every = timing.Saving.of(plan, graph, hardware), list(Repair(plan, graph).possible())
    assert set(places) < set(every) and 0.1 < 0.9 * saving.by(every) <= saving.by(places) < 1
    assert saving.by([]) == 0 and sum(saving.read.values()) >= elements(graph) // 8
    line = simulate(plan, graph, hardware)
    ends = [0.0, *(stops(line, op.name) / line.makespan_us for op in graph.operators)]
    two = replace(saving, read=timing.Counter({0: 30, 3: 10, 6: 5}))
    assert two.by([2, 5]) == pytest.approx((10 * ends[2] + 5 * ends[5]) / 45)
    open_card = replace(hardware, card=replace(hardware.card, security="unchecked"))
    assert timing.with_places(plan, graph, open_card) is plan
    monkeypatch.setattr(timing, "LEAST_SAVED", 0.99)
    assert timing.with_places(plan, graph, hardware) is plan
