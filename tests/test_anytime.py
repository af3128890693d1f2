"""A search that ends early: the best so far, proved, marked; the same for equal effort."""

import os
import re
from itertools import count

import pytest
from rich.status import Status

from pipeline.anytime import CUT_SHORT, ENOUGH, AnytimeSearch
from pipeline.hardware import Hardware
from pipeline.plan.cost import timeline
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.search.planner import Planner
from pipeline.search.swap.best import Tries
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.swap import Swap
from tests.strategies import nets
from tests.strategies.swap.test_swap import GRAPH, with_card
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick

KWS = nets.ds_cnn((16,) * 2)


def peak_bytes(plan: Plan) -> float:
    return max(moment.live_bytes for moment in timeline(plan))


def for_ever(*_: object) -> None:
    """Search on, having been told that it is enough."""
    os.kill(os.getpid(), ENOUGH)
    for _ in count():
        pass


@pytest.mark.parametrize("seconds", quick(1, [0.0, 1e-6]))
def test_the_best_so_far_is_the_plan(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Told by a signal, or by the clock while there was none yet."""
    if not seconds:
        monkeypatch.setattr(Planner, "_rows", for_ever)
    plan = Joint(seconds=seconds).plan(KWS, BOARD)
    verify(plan, KWS)
    assert CUT_SHORT in plan.notes and dict(plan.notes)["form"] == "ordinary"
    assert peak_bytes(plan) == peak_bytes(Ordinary().plan(KWS, BOARD))
    monkeypatch.undo()
    whole = Joint(seconds=600.0).plan(KWS, BOARD)
    assert whole == Joint().plan(KWS, BOARD), "time that suffices changes nothing"
    assert CUT_SHORT not in whole.notes and peak_bytes(whole) < peak_bytes(plan)


def test_what_moves_to_a_card_ends_early_too(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Swap().plan(GRAPH, with_card())
    monkeypatch.setattr(Tries, "retiled", for_ever)
    plan = Swap().plan(GRAPH, with_card())
    verify(plan, GRAPH)
    assert CUT_SHORT in plan.notes and CUT_SHORT not in whole.notes
    assert dict(plan.notes)["makespan_us"] >= dict(whole.notes)["makespan_us"]


@pytest.mark.parametrize("board", [BOARD, with_card()])
def test_a_terminal_shows_how_good_it_is_and_may_get(
    monkeypatch: pytest.MonkeyPatch, board: Hardware
) -> None:
    lines = list[str]()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(Status, "update", lambda _, line: lines.append(line))
    (Swap() if board.storage else Joint()).plan(GRAPH, board)
    unit = "ms" if board.storage else "B"
    assert re.search(rf"% searched, [\d,.]+ {unit} so far, [\d,.]+ {unit} at least, ", lines[-1])


def test_what_goes_wrong_is_no_end() -> None:
    with pytest.raises(KeyError), AnytimeSearch[str]() as anytime:
        anytime.has("a plan", "1 B")
        raise KeyError


@pytest.mark.ci
def test_effort_is_counted() -> None:
    few, again, many = (Joint(effort=effort).plan(KWS, BOARD) for effort in (0.001, 0.001, 4.0))
    assert few == again and CUT_SHORT not in few.notes
    assert peak_bytes(many) <= peak_bytes(Joint().plan(KWS, BOARD)) <= peak_bytes(few)
    for plan in (few, many):
        verify(plan, KWS)
