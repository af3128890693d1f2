"""Lives on the map agree with the plan, with lifetimes and places, and with toys by hand."""

from itertools import combinations
from typing import get_args

import numpy as np
import pytest

from pipeline.graph.access import size_of
from pipeline.graph.graph import Graph
from pipeline.plan.buffers import PASSING, Buffer, Role
from pipeline.plan.cost import intervals, spans, timeline
from pipeline.plan.vocabulary import Compute, Plan, packed, value
from pipeline.report.memory_map import cells as cells_module
from pipeline.report.memory_map import lives as lives_module
from pipeline.report.memory_map.cells import Pieces
from pipeline.report.memory_map.clock import Clock, by_work, simulated
from pipeline.report.memory_map.lives import MOST_CELLS, lives
from pipeline.report.memory_map.picture import held, kind, why
from pipeline.report.palette import MEMORY
from pipeline.strategies.ordinary import Ordinary
from pipeline.timing.simulate import simulate
from tests.plan.fixtures import FIXTURES, residual
from tests.report.pages import KINDS, made
from tests.strategies import nets
from tests.strategies.test_chains import herringbone as mnist_plan
from tests.strategies.test_chains import mnist
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick
from tests.timing.test_simulate import ROWS, rows, slow, swapped

Made = tuple[Plan, Graph]


def small(name: str) -> Made:
    """One of ``FIXTURES``, or a network in slots of four bits."""
    if name == "slots":
        return mnist_plan("slots"), mnist().graph()
    return FIXTURES[name](np.random.default_rng(0))


def boxes(pieces: Pieces) -> list[tuple[int, int, int, float, float]]:
    columns = (pieces.buffer, pieces.low, pieces.high, pieces.born, pieces.dies)
    return list(zip(*(each.tolist() for each in columns), strict=True))


def check(plan: Plan, clock: Clock, found: dict[str, Pieces], grain: int = 1) -> None:
    """Each piece lies in its buffer's place, within its life; no two are at one place at once."""
    used, _ = spans(plan)
    for memory, pieces in found.items():
        for number, low, high, born, dies in boxes(pieces):
            buffer = plan.buffers[number]
            first, last = used[buffer.name]
            assert buffer.memory == memory and low < high and born <= dies
            start = 0.0 if buffer.name in plan.resident else clock.begin[first]
            assert start - 1e-6 <= born and dies <= clock.stop[last] + 1e-6
            assert any(a - grain < low and high < b + 2 * grain for a, b in intervals(buffer))
        for one, other in combinations(boxes(pieces), 2) if len(pieces) < 1500 else ():
            apart = one[2] <= other[1] or other[2] <= one[1]
            assert apart or one[4] <= other[3] + 1e-6 or other[4] <= one[3] + 1e-6


@pytest.mark.parametrize("name", [*FIXTURES, "slots"])
def test_pieces_are_where_and_when_the_plan_has_them(name: str) -> None:
    plan, graph = small(name)
    clock = by_work(plan, graph)
    found = lives(plan, graph, clock)
    assert set(found) == {"sram"} and (100 if name == "slots" else 0) < len(found["sram"]) < 1000
    check(plan, clock, found)


def test_what_is_kept_is_what_the_costs_count() -> None:
    """At each moment of the timeline, the buffers of the map cover its bytes."""
    for plan, graph in (small("residual"), small("slots")):
        clock = by_work(plan, graph)
        for moment in timeline(plan):
            when, covered = round(float(clock.begin[moment.step])), set[int]()
            for number, begin, stop, *places in held(plan, clock, "sram"):
                counts = plan.buffers[number].role in ("activation", "accumulator")
                if counts and (begin <= when < stop or (moment.step == 0 and begin == 0)):
                    pairs = zip(places[::2], places[1::2], strict=True)
                    covered |= {n for low, high in pairs for n in range(low, high)}
            assert len(covered) / 2 == moment.live_bytes


def test_in_place_an_element_lives_until_its_last_reader_is_computed() -> None:
    """6x6 pixels of 2, 3x3 windows, in an order of units: by brute force, nibble by nibble."""
    plan, graph = small("herringbone")
    clock = by_work(plan, graph)
    (step,) = plan.tracks[0].steps
    assert isinstance(step, Compute)
    order = [(r, c) for r, c, _ in step.order]
    each = clock.end / len(order)
    last = {(r + i, c + j): n for n, (r, c) in enumerate(order) for i in range(3) for j in range(3)}
    found = {(n, cell): (born, dies) for n, low, high, born, dies in boxes(
        lives(plan, graph, clock)["sram"]) for cell in range(low, high)}  # fmt: skip
    x, y = (next(n for n, b in enumerate(plan.buffers) if b.name == name) for name in "xy")
    for (row, column), unit in last.items():
        for cell in plan.buffer["x"].cells(((row, row + 1), (column, column + 1), (0, 2))).flat:
            assert found[x, int(cell)] == (0.0, pytest.approx((unit + 0.5) * each))
    for unit, (row, column) in enumerate(order):
        for cell in plan.buffer["y"].cells(((row, row + 1), (column, column + 1), (0, 3))).flat:
            assert found[y, int(cell)] == (pytest.approx((unit + 0.5) * each), clock.end)


def test_a_step_too_short_to_be_seen_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, graph = small("herringbone")
    clock = by_work(plan, graph)
    monkeypatch.setattr(lives_module, "LOOKED_INTO", 1)
    found = lives(plan, graph, clock)
    check(plan, clock, found)
    assert {(born, dies) for n, _, _, born, dies in boxes(found["sram"])} == {
        (0.0, 0.0), (0.0, clock.end),
    }  # fmt: skip


def test_rows_come_and_go_on_the_time_of_the_simulation() -> None:
    """A byte and a multiplication take a microsecond: two bytes in, two computed, two out."""
    graph = rows(2, 1)
    plan, hardware = swapped(graph, 2), slow()
    clock = simulated(plan, simulate(plan, graph, hardware))
    assert clock.unit == "us" and clock.end == 2 * ROWS + 4
    found = lives(plan, graph, clock)
    number = next(n for n, buffer in enumerate(plan.buffers) if buffer.name == "in")
    mine = sorted((born, dies) for n, _, _, born, dies in boxes(found["sram"]) if n == number)
    assert mine == [(2.0 * n, 2.0 * n + 4) for n in range(ROWS)]
    check(plan, clock, found)


def test_there_are_few_pieces_instead_of_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a ring that is hardly empty is one."""
    plan, graph = small("slots")
    clock = by_work(plan, graph)
    toy = rows(2, 1)
    ring = swapped(toy, 2)
    time = simulated(ring, simulate(ring, toy, slow()))
    many, exact = lives(plan, graph, clock)["sram"], lives(ring, toy, time)["sram"]
    for name, most in (("MOST_PIECES", 50), ("FINEST", 200), ("COARSEST", 10)):
        monkeypatch.setattr(cells_module, name, most)
    few = lives(plan, graph, clock)["sram"]
    assert len(few) < len(many) / 2 and few.dies.max() <= clock.end * 1.1
    monkeypatch.undo()
    for name, most in (("MOST_EXACT", 3), ("SHORT", 1)):
        monkeypatch.setattr(lives_module, name, most)
    few = lives(ring, toy, time)["sram"]
    assert len(few) < len(exact) and set(few.buffer) == set(exact.buffer)


def test_the_axis_is_as_long_as_the_work() -> None:
    """Layers one after another are no turns, of many widths, whose sums are rounded."""
    net = nets.Net((33, 31, 3))
    x = "input"
    for number in range(12):
        x = net.conv(x, 3 + number % 5, 3)
    graph = net.head(x, 7)
    clock = by_work(Ordinary().plan(graph, BOARD), graph)
    assert [each.layers for each in clock.stretches] == [(op.name,) for op in graph.operators]
    graph = rows(4, 2)
    clock = by_work(Ordinary().plan(graph, slow()), graph)
    assert clock.end == pytest.approx(clock.stop[-1]) and (clock.stop >= clock.begin).all()
    assert (clock.begin[1:] == clock.stop[:-1]).all()
    assert [each.layers for each in clock.stretches] == [tuple(op.name for op in graph.operators)]


@pytest.mark.parametrize("kind", quick(3, [kind for kind in KINDS if kind != "rows_anywhere"]))
def test_whatever_a_step_reads_is_shown_as_needed_until_then(kind: str) -> None:
    """Tiles and rows computed again, channels, patches, slots, rings, two tracks: step by step."""
    plan, graph, hardware = made(kind)
    timeline = simulate(plan, graph, hardware) if len(plan.tracks) > 1 else None
    clock = simulated(plan, timeline) if timeline else by_work(plan, graph)
    found, looked = lives(plan, graph, clock), 0
    for event, begin, stop in zip(clock.events, clock.begin, clock.stop, strict=True):
        step = event.step
        if not isinstance(step, Compute) or stop <= begin:
            continue
        if any(plan.buffer[each.buffer].meets(plan.buffer[step.out.buffer]) for each in step.ins):
            continue  # in place, where the last read of each element counts
        for piece in step.ins:
            buffer = plan.buffer[piece.buffer]
            box = piece.box(buffer.shape, event.env)
            if buffer.memory not in found or buffer.role == "constant" or size_of(box) == 0:
                continue
            pieces, number = found[buffer.memory], plan.buffers.index(buffer)
            mine = (pieces.buffer == number) & (pieces.born < stop) & (pieces.dies >= stop - 1e-6)
            grain = max(1, -(-max(b.extent[1] for b in plan.buffers) // MOST_CELLS))
            shown = np.zeros(buffer.extent[1] + 2 * grain, dtype=bool)
            for low, high in zip(pieces.low[mine], pieces.high[mine], strict=True):
                shown[max(0, low - grain) : high + grain] = True
            copy = value(piece.copy, event.env) % buffer.copies
            assert shown[buffer.at(copy).cells(box)].all(), (event.step, piece)
            looked += 1
    assert looked


def test_every_role_has_a_kind_and_a_reason() -> None:
    _, graph = residual(np.random.default_rng(0))
    place = packed((4,), 8)
    for role in get_args(Role):
        constant = role == "constant"
        for tensor in sorted(graph.constants) if constant else [graph.input, graph.output]:
            name = "" if role in PASSING else tensor
            buffer = Buffer("b", name, "sram", (4,), 8, place, role)
            if role == "accumulator" and tensor == graph.input:
                continue
            assert kind(buffer, graph) in MEMORY and len(why(buffer, graph)) > 10


def test_a_tensor_says_who_makes_it_and_who_needs_it() -> None:
    _, graph = residual(np.random.default_rng(0))
    place, (first, *_, last) = packed((4,), 8), graph.operators

    def said(tensor: str) -> str:
        return why(Buffer("b", tensor, "sram", (4,), 8, place), graph)

    assert said(graph.input).startswith("the network's input, needed by")
    assert said(graph.output) == f"made by {last.name}, the network's output"
    readers = [op.name for op in graph.operators if first.output in op.inputs]
    assert said(first.output) == f"made by {first.name}, needed by {', '.join(readers)}"
