"""The simulator on plans computed by hand, and against the longest path through random ones;
blocks and commands of boxes, against counting them cell by cell; times of the two settings."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import Card, Hardware, Memory
from pipeline.plan import vocabulary as v
from pipeline.plan.rates import Rates
from pipeline.plan.unrolled import unroll
from pipeline.plan.vocabulary import whole
from pipeline.timing.simulate import Timeline, simulate
from pipeline.timing.states import states
from pipeline.timing.summary import WITHOUT_CARD, summary
from pipeline.timing.transfers import transfers
from tests.plan.fixtures import constants
from tests.strategies.chains import board
from tests.strategies.nets import Net


def times(plan: v.Plan, timeline: Timeline, track: str) -> list[tuple[float, float]]:
    """(start, stop) of the steps of a track."""
    number = [each.name for each in plan.tracks].index(track)
    chosen = timeline.track == number
    return list(zip(timeline.start[chosen].tolist(), timeline.stop[chosen].tolist(), strict=True))


def test_one_buffer_alternates() -> None:
    """A row is 2 B in, 2 MACs, 2 B out: with one buffer a side, in waits for computing, computing
    for out: in 0-2, computed 2-4, then in and out side by side 4-6, computed 6-8, …"""
    graph = rows()
    plan = swapped(graph, 1)
    timeline = simulate(plan, graph, slow())
    assert times(plan, timeline, "io") == [(4.0 * n, 4.0 * n + 2) for n in range(ROWS)]
    assert times(plan, timeline, "cpu") == [(4.0 * n + 2, 4.0 * n + 4) for n in range(ROWS)]
    assert times(plan, timeline, "back") == [(4.0 * n + 4, 4.0 * n + 6) for n in range(ROWS)]
    assert timeline.makespan_us == 4 * ROWS + 2


def test_two_buffers_hide_what_can_be_hidden() -> None:
    """Computing takes 6 us a row, in 2, out 6: only the first in and the last out are seen."""
    graph = rows(channels=3)
    plan = swapped(graph, 2)
    timeline = simulate(plan, graph, slow())
    assert timeline.makespan_us == 2 + 6 * ROWS + 6
    assert times(plan, timeline, "io")[:4] == [(0, 2), (2, 4), (8, 10), (14, 16)]


def test_states_are_apart_and_add_up() -> None:
    graph = rows()
    found = states(simulate(swapped(graph, 1), graph, slow()))
    assert (found.compute_us, found.both_us, found.idle_us) == (2 * ROWS, 0, 0)
    assert found.io_us == 2 * ROWS + 2 and found.both_us == 0
    assert found.read_us == found.write_us == 2 * ROWS
    hidden = states(simulate(swapped(graph, 2), graph, slow()))
    assert hidden.both_us > 0 and hidden.core_us == 2 * ROWS
    assert sum((hidden.compute_us, hidden.io_us, hidden.both_us, hidden.idle_us)) == 2 * ROWS + 4


def test_without_dma_one_thing_at_a_time() -> None:
    graph = rows()
    for buffers in (1, 2, 4):
        timeline = simulate(swapped(graph, buffers), graph, slow(dma=False))
        assert timeline.makespan_us == 6 * ROWS
        assert states(timeline, dma=False).core_us == 6 * ROWS
        order = np.argsort(timeline.start, kind="stable")
        assert (timeline.start[order][1:] >= timeline.stop[order][:-1]).all()


def test_counted_calls_replace_the_rate() -> None:
    graph = rows()
    (op,) = graph.operators
    timeline = simulate(swapped(graph, 2), graph, slow(), {op.name: np.full(ROWS, 5.0)})
    assert timeline.makespan_us == 2 + 5 * ROWS + 2


def test_a_deadlock_is_said() -> None:
    graph = rows()
    plan = swapped(graph, 1)
    never = v.Track("extra", (v.Wait("computed", ROWS + 1), v.Signal("extra")))
    with pytest.raises(v.PlanError, match="deadlock: every track waits: extra at"):
        simulate(replace(plan, tracks=(*plan.tracks, never)), graph, slow())


def shuffled(plan: v.Plan, rng: np.random.Generator) -> v.Plan:
    """Deal steps in a random possible order to tracks, waiting for earlier ones: no deadlock."""
    found = [step for track in plan.tracks for step in track.steps]
    every = [step for step in found if isinstance(step, v.Compute | v.Move)]
    every = [every[n] for n in rng.integers(0, len(every), int(rng.integers(3, 25)))]
    count = int(rng.integers(2, 5))
    tracks: list[list[v.Step]] = [[] for _ in range(count)]
    done = [0] * count
    for step in every:
        mine = int(rng.integers(count))
        for other in range(count):
            if rng.random() < 0.5:
                tracks[mine].append(v.Wait(f"c{other}", int(rng.integers(0, done[other] + 1))))
        tracks[mine] += [step, v.Signal(f"c{mine}")]
        done[mine] += 1
    return replace(
        plan, tracks=tuple(v.Track(f"t{n}", tuple(steps)) for n, steps in enumerate(tracks))
    )


def longest_path(plan: v.Plan) -> float:
    """By repeated relaxation, without events."""
    ends: dict[str, list[float]] = {}
    for _ in range(sum(len(track.steps) for track in plan.tracks)):
        before = {name: list(each) for name, each in ends.items()}
        last = 0.0
        ends = {}
        for track in plan.tracks:
            clock = 0.0
            for step in track.steps:
                if isinstance(step, v.Wait):
                    needed = before.get(step.counter, [])[: v.value(step.at_least, {})]
                    clock = max([clock, *needed])
                elif isinstance(step, v.Signal):
                    ends.setdefault(step.counter, []).append(clock)
                else:
                    clock += length(step)
            last = max(last, clock)
        if ends == before:
            break
    return last


def straight(plan: v.Plan) -> v.Plan:
    """Without loops: each step as it is in one round."""

    def here(piece: v.Slice, env: dict[str, int]) -> v.Slice:
        return replace(piece, lo=tuple(v.value(low, env) for low in piece.lo))

    def fixed(step: v.Step, env: dict[str, int]) -> v.Step:
        match step:
            case v.Move(src=src, dst=dst):
                return replace(step, src=here(src, env), dst=here(dst, env))
            case v.Compute(out=out, ins=ins):
                return replace(step, out=here(out, env), ins=tuple(here(i, env) for i in ins))
            case v.Wait(at_least=level):
                return replace(step, at_least=v.value(level, env))
        return step

    tracks = [
        v.Track(track.name, tuple(fixed(step, env) for step, env in unroll(track.steps, {})))
        for track in plan.tracks
    ]
    return replace(plan, tracks=tuple(tracks))


def length(step: v.Step) -> float:
    """By hand, for ``rows(3, 2)``: 3 B in, 6 MACs, 6 B out."""
    return 3.0 if isinstance(step, v.Move) and step.src.buffer == "image" else 6.0


def test_hundreds_of_random_plans_end_and_take_the_longest_path() -> None:
    graph = rows(3, 2)
    plan, hardware = straight(swapped(graph, 2)), slow()
    rng = np.random.default_rng(0)
    for _ in range(300):
        drawn = shuffled(plan, rng)
        timeline = simulate(drawn, graph, hardware)
        assert timeline.makespan_us == longest_path(drawn)
        busy: Counter[int] = Counter()
        for track, took in zip(timeline.track, timeline.stop - timeline.start, strict=True):
            busy[int(track)] += took
        found = states(timeline)
        assert timeline.makespan_us >= max(busy.values())
        assert timeline.makespan_us == pytest.approx(
            found.compute_us + found.io_us + found.both_us + found.idle_us
        )


BLOCK = 16


def by_cell(buffer: v.Buffer, low: Any, extent: Any, shift: int) -> tuple[int, int, int, int]:
    """(bytes, blocks, commands, partial) of one box."""
    box = tuple((int(a), int(a + n)) for a, n in zip(low, extent, strict=True))
    cells = {int(cell) + shift for cell in buffer.cells(box).reshape(-1)}
    blocks = sorted({cell // (2 * BLOCK) for cell in cells})
    groups = sum(n == 0 or blocks[n] != blocks[n - 1] + 1 for n in range(len(blocks)))
    whole = sum(all(2 * BLOCK * block + n in cells for n in range(2 * BLOCK)) for block in blocks)
    return len(cells) // 2, len(blocks), groups, len(blocks) - whole


@pytest.mark.parametrize("kind", ["packed", "turned", "ring", "table"])
def test_against_counting_cells(kind: str) -> None:
    rng = np.random.default_rng(3)
    shape = (5, 6, 7)
    places: dict[str, v.Affine | v.Table] = {
        "packed": v.packed(shape, 8, 6),
        "turned": v.Affine(4, (2, 10, 60)),
        "ring": v.Affine(0, (84, 14, 2), (3, 0, 0)),
        "table": v.Table(tuple(2 * int(n) for n in rng.permutation(300)[: 5 * 6 * 7])),
    }
    buffer = v.Buffer("b", "t", "card", shape, 8, places[kind])
    lows = np.stack([rng.integers(0, n, 80) for n in shape], axis=1)
    extents = np.stack([rng.integers(1, n + 1, 80) for n in shape], axis=1)
    extents = np.minimum(extents, np.array(shape) - lows)
    if kind == "ring":
        extents[:, 0] = np.minimum(extents[:, 0], 3)
    shift = 2 * rng.integers(0, 40, 80)
    found = transfers(buffer, lows, extents, BLOCK, shift)
    for n in range(80):
        counted = found.bytes[n], found.blocks[n], found.commands[n], found.partial[n]
        assert counted == by_cell(buffer, lows[n], extents[n], int(shift[n]))


def test_what_is_empty_costs_nothing() -> None:
    buffer = v.Buffer("b", "t", "card", (4, 4), 8, v.packed((4, 4), 8))
    none = np.zeros((1, 2), np.int64)
    found = transfers(buffer, none, none, BLOCK, np.zeros(1, np.int64))
    assert not (found.bytes.any() or found.blocks.any() or found.commands.any())


COSTS = {
    "timing": "card", "read_bytes_per_s": 1e6, "write_bytes_per_s": 5e5, "read_block_us": 10.0,
    "write_block_us": 20.0, "read_command_us": 100.0, "write_command_us": 200.0,
}  # fmt: skip


def test_rates_of_the_two_settings() -> None:
    paper, card = Rates.of(slow()), Rates.of(slow(**COSTS))
    assert paper.move_us(1000, writes=False) == paper.move_us(1000, writes=True) == 1000
    assert paper.move_us(1000, writes=False, commands=7) == 1000
    assert card.move_us(1000, writes=False) == 2 * (512 + 10) + 100
    assert card.move_us(1000, writes=True, commands=3) == 3 * (1024 + 20 + 200)
    assert card.move_us(0, writes=True) == 0
    assert paper.compute_us(7) == 7


def test_a_card_charges_blocks_commands_and_what_it_has_to_read_first() -> None:
    """Rows of 2 B: each read takes a block, each write reads a block, and writes it."""
    graph = rows()
    timeline = simulate(swapped(graph, 1), graph, slow(**COSTS))
    read, write = 512 + 10 + 100, 512 * 2 + 20 + 200
    took = timeline.stop - timeline.start
    assert took[timeline.track == 1].tolist() == [read] * ROWS
    assert took[timeline.track == 2].tolist() == [write + read] * ROWS
    assert timeline.makespan_us == read + ROWS * (2 + write + read)


def test_the_summary_counts_what_is_moved_and_what_is_stored() -> None:
    graph = rows()
    plan = swapped(graph, 1)
    paper = summary(plan, graph, slow())
    assert paper["card_read_bytes"] == paper["card_write_bytes"] == 2 * ROWS
    assert paper["wear"] == (2 + 2) * ROWS and paper["compute_us"] == 2 * ROWS
    assert paper["io_us"] == 4 * ROWS and "latency_us" not in paper
    assert paper["overhead_pct"] == pytest.approx(100 * ((4 * ROWS + 2) / (2 * ROWS) - 1))
    assert paper["throughput_loss_pct"] == pytest.approx(100 * (1 - 2 * ROWS / (4 * ROWS + 2)))
    assert paper["throughput_fps"] == pytest.approx(1e6 / (4 * ROWS + 2))
    (layer,) = paper["traffic"]
    assert layer["read_bytes"] == layer["write_bytes"] == 2 * ROWS and layer["bound"] == "io"
    card = summary(plan, graph, slow(**COSTS))
    assert card["card_read_bytes"] == 2 * ROWS and card["card_write_bytes"] == 512 * ROWS
    assert card["card_timing"] == "card"


def test_of_a_plan_without_a_card_nothing_moves() -> None:
    graph = rows()
    plan = swapped(graph, 1)
    moved = tuple(
        replace(each, memory="sram") if each.memory == "card" else each for each in plan.buffers
    )
    found = summary(replace(plan, buffers=moved), graph, replace(slow(), card=Card()))
    assert found == WITHOUT_CARD and not any(found.values())


ROWS = 8
CARD = Memory("card", 1 << 20, "block", 512)


def slow(**card: Any) -> Hardware:
    """1 us a multiply–accumulate, 1 us a byte."""
    values: dict[str, Any] = {"bytes": 1 << 20, "timing": "paper", "paper_bytes_per_s": 1e6}
    return replace(board(), clock_hz=1_000_000, cycles_per_mac=1.0, card=Card(**values | card))


def rows(columns: int = 2, channels: int = 1) -> Graph:
    """A 1x1 convolution of 8 rows; a row is ``columns`` bytes in, ``columns * channels`` out."""
    net = Net((ROWS, columns, 1))
    net.conv("input", channels, 1)
    return net.graph()


def swapped(graph: Graph, buffers: int) -> v.Plan:
    """Row by row: in from the card, computed, out to the card, with so many buffers a side."""
    (op,) = graph.operators
    source, target = graph.tensors[graph.input], graph.tensors[graph.output]
    fixed = constants(graph)

    def held(
        name: str, tensor: str, memory: str, shape: tuple[int, ...], ring: int, base: int = 0
    ) -> v.Buffer:
        place = v.packed(shape, 8, base)
        wrapped = replace(place, wrap=(ring, 0, 0) if ring else ())
        return v.Buffer(name, tensor, memory, shape, 8, wrapped)

    held_in = held("in", source.name, "sram", source.shape, buffers)
    held_out = held("out", target.name, "sram", target.shape, buffers, 2 * source.size)
    row = v.Lin(0, (("r", 1),))
    one = (1, *source.shape[1:]), (1, *target.shape[1:])
    piece_in = [v.Slice(name, (row, 0, 0), one[0]) for name in ("image", "in")]
    piece_out = [v.Slice(name, (row, 0, 0), one[1]) for name in ("out", "result")]
    before = v.Lin(1 - buffers, (("r", 1),))
    after = v.Lin(1, (("r", 1),))
    io = (v.Wait("computed", before), v.Move(*piece_in), v.Signal("loaded"))
    compute = v.Compute(op.name, piece_out[0], (piece_in[1], *map(whole, fixed)))
    cpu = (v.Wait("loaded", after), v.Wait("stored", before), compute, v.Signal("computed"))
    back = (v.Wait("computed", after), v.Move(*piece_out), v.Signal("stored"))
    each = {"cpu": cpu, "io": io, "back": back}
    tracks = tuple(v.Track(name, (v.Loop("r", ROWS, steps),)) for name, steps in each.items())
    image = held("image", source.name, "card", source.shape, 0)
    result = held("result", target.name, "card", target.shape, 0, 8 * 1024)
    buffers_ = (image, result, held_in, held_out, *fixed)
    memories = (Memory("sram", 1024), Memory("flash", 1024, "rom"), CARD)
    resident = ("image", *op.parameters)
    return v.Plan(graph.name, "toy", memories, buffers_, tracks, resident, ("result",))
