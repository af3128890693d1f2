"""Reports on plans whose numbers are known by hand, and how a plan runs each layer."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.hardware import Hardware, Memory, Power, Toolchain
from pipeline.kernels import formed
from pipeline.plan.cost import cost
from pipeline.plan.draw import pseudocode
from pipeline.plan.fit import CHOSEN, fit, fits, roomy
from pipeline.plan.forms import BY_COLUMNS, BY_ROWS, MIXED, Order, forms, traversal
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Affine, Buffer, Plan, PlanError, Signal, Table, Track
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.cortex_m.support import core
from tests.plan.fixtures import channel_partial, double_buffer, herringbone
from tests.strategies import nets
from tests.strategies.chains import Chain, board, mnist
from tests.strategies.test_chains import residual
from tests.strategies.test_ordinary import BOARD as LARGE

BOARD = Hardware(
    *("bench", "Bench", "avr", "atmega328p", 16_000_000, 2048, 32256, "flash", True, 64, 10.0),
    toolchain=Toolchain("cc", "gcc"),
    power=Power(5.0, 10.0, 1.0, "test"),
    simulator="",
)


def test_in_place_cells_count_once() -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    x, y = (set(plan.buffer[n].cells(plan.buffer[n].box).ravel().tolist()) for n in "xy")
    result = cost(plan, graph, BOARD)
    assert result.pmu_bytes == len(x | y) / 2 < (len(x) + len(y)) / 2
    assert result.arena_bytes == -(-(max(x | y) + 1) // 2)


def test_peak_work_and_traffic() -> None:
    """Count two channels of a partial loop, and its sums."""
    plan, graph = channel_partial(np.random.default_rng(0))
    result = cost(plan, graph, BOARD)
    assert result.pmu_bytes == 50 + 9 * 2 + 27 * 4
    assert result.peak.label == "h"
    plan, graph = double_buffer(np.random.default_rng(0))
    result = cost(plan, graph, BOARD)
    assert result.macs == result.macs_executed == 64
    assert result.moved_bytes == {"card -> sram": 64.0}


def test_fit_names_need_place_and_advice() -> None:
    plan, graph = channel_partial(np.random.default_rng(0))
    result = cost(plan, graph, BOARD)
    assert fit(plan, result, BOARD).fits
    needed = result.arena_bytes + BOARD.stack_reserve_bytes
    exact = replace(BOARD, sram_bytes=needed)
    assert fit(plan, result, exact).fits
    short = fit(plan, result, replace(BOARD, sram_bytes=needed - 1))
    assert not short.fits and short.needed_bytes == needed
    assert (short.resource, short.available_bytes) == ("SRAM", needed - 1)
    kept = "64 B kept for the stack (hardware.stack_reserve_bytes)"
    assert short.where == f"activations {result.pmu_bytes:g} B at their peak in h + {kept}"
    larger = f"a larger board (with hardware.sram_bytes={needed} or more)"
    assert short.advice == f"strategy=auto, fewer channels or {larger}"
    for tried in (replace(plan, strategy="joint"), replace(plan, notes=((CHOSEN, "ordinary"),))):
        said = fit(tried, result, replace(BOARD, sram_bytes=needed - 1)).advice
        assert said.startswith("fewer channels or")
    assert not fit(plan, result, replace(BOARD, flash_bytes=100)).fits


def test_pruning_is_advised_where_it_works() -> None:
    """Networks of 4 bits are pruned here, others are not."""
    plan, graph = channel_partial(np.random.default_rng(0))
    tiny = replace(BOARD, sram_bytes=8)
    assert "prune" not in fit(plan, cost(plan, graph, BOARD), tiny).advice
    narrow = replace(plan, buffers=tuple(replace(b, bits=4) for b in plan.buffers))
    found = fit(narrow, cost(plan, graph, BOARD), tiny)
    assert "strategy=auto, fewer channels, prune=magnitude or a larger" in found.advice


def test_every_memory_has_a_verdict() -> None:
    plan, graph = channel_partial(np.random.default_rng(0))
    result = cost(plan, graph, BOARD)
    verdicts = fits(plan, result, BOARD)
    assert set(verdicts) == {"sram", "flash"} and all(each.fits for each in verdicts.values())
    assert verdicts["sram"].needed_bytes == result.arena_bytes + BOARD.stack_reserve_bytes
    assert verdicts["flash"].needed_bytes >= graph.weight_bytes
    short = fits(plan, result, replace(BOARD, flash_bytes=100))["flash"]
    assert short.advice.startswith("fewer channels or a larger board (with hardware.flash_bytes=")


def test_a_plan_that_does_not_fit_can_still_be_verified() -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    small = replace(plan, memories=tuple(replace(m, bytes=8) for m in plan.memories))
    with pytest.raises(PlanError):
        verify(small, graph)
    verify(roomy(small), graph)


def test_pseudocode_reads_like_a_program() -> None:
    plan, _ = channel_partial(np.random.default_rng(0))
    text = pseudocode(plan)
    assert "  for k in 0…2:\n    h[0:+3, 0:+3, 2*k:+2] = h(" in text
    assert "acc[0:+3, 0:+3, 0:+3] += y(" in text
    assert "h: 3x3x6 x 8 bit in sram at byte 50 + 6*i + 2*j + 1*(k mod 2)" in text


def test_addresses_are_bytes_and_halves_of_them() -> None:
    def shown(bits: int, place: Affine | Table) -> str:
        buffer = Buffer("h", "h", "sram", (3,), bits, place)
        tracks, memories = (Track("cpu", (Signal("done"),)),), (Memory("sram", 1 << 23),)
        text = pseudocode(Plan("g", "s", memories, (buffer,), tracks, (), ("h",)))
        return next(line for line in text.splitlines() if line.startswith("h:"))

    assert shown(4, Affine(7, (1,))) == "h: 3 x 4 bit in sram at byte 3.5 + 0.5*i"
    assert shown(4, Table((9, 4, 8))) == "h: 3 x 4 bit in sram at a table, bytes 2…4.5"
    assert shown(8, Table((8, 4, 2))) == "h: 3 x 8 bit in sram at a table, bytes 1…4.5"
    assert shown(8, Affine(3_000_000, (2,))) == "h: 3 x 8 bit in sram at byte 1500000 + 1*i"


def test_of_equal_peaks_the_one_that_shares_most_is_named() -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    result = cost(plan, graph, BOARD)
    tied = replace(result.peak, label="first", buffers=result.peak.buffers[:1])
    assert replace(result, timeline=(tied, *result.timeline)).peak.label == "y"


# --- how each layer runs


def said(plan: Plan) -> list[str]:
    return [form.said for form in forms(plan).values()]


def test_peeled_over_its_input() -> None:
    plan = Herringbone().plan(mnist().graph(), board())
    first, *convolutions, _, last = said(plan)
    assert (first, last) == ("in 28 steps", "at once")
    assert convolutions == ["at once, by rows and columns, over its input"] * 3
    assert forms(plan)["conv2"].over == ["conv1"]


def test_by_columns_where_maps_are_wide() -> None:
    chain = Chain((2, 4, 5)).conv("y", 5, padding=(1, 1, 1, 1))
    plan = Herringbone().plan(chain.graph(), board(streams=False))
    assert said(plan) == ["at once, by columns, over its input"]


def test_whole_tensors_blocks_in_turns_and_channels_one_by_one() -> None:
    assert set(said(Ordinary().plan(mnist().graph(), board(streams=False)))) == {"at once"}
    plan = Herringbone().plan(residual(5, 4, 2), board(streams=False))
    assert all("steps, in turns with others" in each for each in said(plan))
    assert [form.layer for form in forms(plan).values() if "over its input" in form.said]
    plan = Partial(accumulator_bits=8, channels=1).plan(nets.fig1_block(), LARGE)
    assert any("channel by channel" in each for each in said(plan))


@pytest.mark.parametrize(
    ("order", "name"),
    [
        (((0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0)), BY_ROWS),
        (((1, 0, 0), (1, 1, 0), (0, 0, 0), (0, 1, 0)), BY_ROWS),
        (((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)), BY_COLUMNS),
        (((0, 0, 0), (0, 1, 0), (0, 2, 0), (1, 0, 0), (2, 0, 0), (1, 1, 0)), MIXED),
        (((2,), (1,), (0,)), BY_ROWS),
    ],
)
def test_orders(order: Order, name: str) -> None:
    assert traversal(order) == name


def test_with_cycles_where_kernels_declare_the_cores() -> None:
    graph = residual(3, 6, 8)
    for hardware, known in ((core(), True), (replace(core(), core="host", cpu=""), False)):
        rows = formed(Herringbone().plan(graph, hardware), graph, hardware)
        assert [row["layer"] for row in rows] == [op.name for op in graph.operators]
        assert all(("modelled_cycles" in row) == known for row in rows)
        assert not known or all(row["modelled_cycles"] > 1000 for row in rows)
