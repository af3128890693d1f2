"""No mistake that changes an output under any timing, or is undefined, gets past the verifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import partial

import numpy as np
import pytest

from pipeline.hardware import Memory
from pipeline.plan import serialize, vocabulary
from pipeline.plan.memory_state import MemoryState
from pipeline.plan.races import Races
from pipeline.plan.tokens import Tokens
from pipeline.plan.verify import _Verifier
from pipeline.plan.vocabulary import Move, Plan, Signal, Track, Wait, whole
from tests.plan.adversarial import INPUTS, Subject, activation, halves, layer, right, sums
from tests.plan.adversarial_tracks import fetched
from tests.plan.attacks import ATTACKS
from tests.plan.changes import CHANGES, Rng, Site, wrong
from tests.plan.mistakes import MISTAKES, nodes
from tests.plan.mutations import Tally, trial, tried
from tests.plan.outcomes import differs, outcomes
from tests.plan.subjects import STRATEGIES, subjects
from tests.tiers import quick

PARTS = 14
"""Of the subjects, for tests side by side."""


def test_every_field_of_every_word_is_mutated() -> None:
    """A field or a class that is new fails here until it has a change of its own."""
    words = {
        cls for cls in vars(vocabulary).values() if isinstance(cls, type) and is_dataclass(cls)
    }
    assert set(CHANGES) == set(serialize.CLASSES.values()) == words | {Memory}
    for cls, changes in CHANGES.items():
        assert set(changes) == {field.name for field in fields(cls)}, cls.__name__


@pytest.mark.ci
def test_every_strategy_is_a_subject() -> None:
    """Where two options make the same plan, one of them is."""
    planned = {name.split()[0] for name in subjects()}
    options = {path.stem for path in STRATEGIES.glob("*.yaml")}
    assert options - {"naive", "ordinary"} <= planned and planned & {"naive", "ordinary"}
    assert {"larger", "row_ring", "double_buffer"} <= subjects().keys()


def judged(part: int, number: int, judge_refused: bool) -> Tally:
    """Of every subject of a part ``number`` mutants; none of all is judged wrongly."""
    tally = Tally()
    for subject in list(subjects().values())[part::PARTS]:
        tally += trial(subject, 7, number, judge_refused)
    assert not tally.wrong and not tally.raw
    return tally


def share(part: int, number: int) -> float:
    """A part's share of ``number`` mutants."""
    return number * len(list(subjects())[part::PARTS]) / len(subjects())


@pytest.mark.parametrize("part", quick(1, range(PARTS), ci=6))
def test_every_harmful_mutant_is_refused(part: int) -> None:
    """CI has some 1,000 mutants, of all subjects."""
    tally = judged(part, 25, judge_refused=False)
    accepted = tally.harmless - tally.harmless_refused
    assert tally.mutants > share(part, 700)
    assert min(tally.harmless_refused, accepted) > 3, "the mutations do not test anything"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_harmful_mutant_of_many_is_refused(part: int) -> None:
    tally = judged(part, 1000, judge_refused=True)
    assert tally.mutants - tally.unmade >= share(part, 20_000)
    assert tally.changed > tally.harmless / 2, "the mutations do not test anything"


@pytest.mark.parametrize("cls", CHANGES, ids=lambda cls: cls.__name__)
def test_every_change_changes_something(cls: type) -> None:
    rng = np.random.default_rng(1)
    found = [
        Site(rng, subject.plan, subject.graph, node)
        for subject in subjects().values()
        for _, node in nodes(subject.plan)
        if type(node) is cls
    ]
    for name, change in CHANGES[cls].items():
        sites = [site for site in found if getattr(site.node, name)] or found
        drawn = [sites[int(rng.integers(len(sites)))] for _ in range(20)]
        pairs = [(getattr(site.node, name), site) for site in drawn]
        assert sum(repr(old) != repr(change(site, old)) for old, site in pairs) > 5, name
        assert len({repr(wrong(site, old)) for old, site in pairs}) > 5, name


@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_changes_something(mistake: Callable[[Rng, Plan], Plan]) -> None:
    rng = np.random.default_rng(2)
    made = [(each.plan, tried(partial(mistake, rng, each.plan))) for each in subjects().values()]
    assert not [raw for _, (_, raw) in made if raw]
    assert any(plan is None or plan != old for old, (plan, _) in made)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("owner", "check", "name", "mistake"),
    [
        (MemoryState, "in_order", "herringbone", "Compute.order"),
        (MemoryState, "scratch", "herringbone", "a_scratch_more"),
        (MemoryState, "take", "row_ring", "a_step_in_a_loop"),
        (Races, "_touch", "double_buffer", "Wait.counter"),
        (Tokens, "destroy", "herringbone layout=slots", "a_scratch_more"),
        (_Verifier, "whole", "channel_partial", "Lin.const"),
        (_Verifier, "sums_fit", "channel_partial", "Buffer.bits"),
    ],
)
def test_a_hole_in_the_verifier_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: type, check: str, name: str, mistake: str
) -> None:
    """Without one of its checks, it accepts mutants that change an output: one in twenty or more
    of those with this mistake, and none with all checks."""
    seeds, subject = range(20), subjects()[name]
    assert not trial(subject, 0, 20, judge_refused=False, only=mistake).wrong
    monkeypatch.setattr(owner, check, lambda *_, **__: None)
    assert any(trial(subject, n, 20, judge_refused=False, only=mistake).wrong for n in seeds)


@pytest.mark.parametrize("kind", ["Buffer.bits", "a_twin"])
def test_mutants_of_one_kind(kind: str) -> None:
    tally = trial(subjects()["channel_partial"], 1, 20, judge_refused=False, only=kind)
    kinds = {each.removesuffix(" wrong") for each in tally.kinds}
    assert kinds == {kind} and tally.mutants >= 20


HARMFUL = (
    "scratch_over_the_input",
    "scratch_over_the_output",
    "scratch_over_open_sums",
    "scratch_over_a_constant_that_was_read",
    "sums_of_two_steps_in_one_place",
    "finished_at_another_step",
    "sums_never_cleared",
    "half_a_sum_twice",
    "finish_over_sums_still_to_be_read",
    "residents_that_overlap",
    "table_that_names_a_place_twice",
    "output_over_the_input",
    "output_over_a_constant_of_role_activation",
    "output_in_rom",
    "in_place_a_byte_up",
    "in_place_in_the_wrong_order",
    "weights_that_never_arrive",
    "stream_read_backwards",
    "wait_for_oneself",
    "wait_for_nothing",
    "signal_before_the_work",
    "two_tracks_clear_one_place",
)


@pytest.mark.parametrize("name", HARMFUL)
def test_the_machine_sees_what_an_attack_does(name: str) -> None:
    """Without the verifier: the mutants' judge knows a wrong plan when it runs one."""
    plan, graph = ATTACKS[name].make()
    assert differs(plan, graph, INPUTS, right(graph))


@pytest.mark.parametrize("make", [layer, halves, lambda: halves(sums("acc", 32, 16, 3)), fetched])
def test_the_machine_computes_the_graph(make: Callable[[], Subject]) -> None:
    """Sums in steps, too: it does not round, and 32 bits hold them."""
    plan, graph = make()
    assert not differs(plan, graph, INPUTS, right(graph))


def test_the_machine_tries_every_timing() -> None:
    """Two moves into one place, on two tracks: either may be the last."""
    plan, graph = layer()
    a, b = activation("a", "x", (4,), 8, 64), activation("b", "x", (4,), 8, 66)
    moves = [(Move(whole(plan.buffer["x"]), whole(buffer)),) for buffer in (a, b)]
    (last,) = plan.tracks[0].steps
    read = replace(last, ins=(whole(a), *last.ins[1:]))  # type: ignore[call-arg, union-attr]
    tracks = (Track("a", (*moves[0], Wait("b", 1), read)), Track("b", (*moves[1], Signal("b"))))
    found = replace(plan, buffers=(*plan.buffers, a, b), tracks=tracks)
    said = set(outcomes(found, graph, INPUTS[:1]))
    assert len(said) == 2 and graph.outputs(INPUTS[0]).tobytes() in said
