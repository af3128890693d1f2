"""The time of plans whose card is sealed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pipeline.plan.pieces import Pieces, transferred
from pipeline.sealing import COSTS, Security, piece_bytes
from pipeline.strategies.swap import Swap
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized
from tests.codegen.card.support import elements
from tests.strategies.swap.nets import random_chain
from tests.targets.cortex_m import board_named


@pytest.mark.parametrize("security", ["none", "integrity", "encrypted"])
@pytest.mark.parametrize("seed", [1, 4])
def test_sealing_takes_both_tracks_time(seed: int, security: Security) -> None:
    """What it takes is what passes, at the core's cost; and the whole is longer by just that."""
    graph, hardware = random_chain(seed), board_named("stm32f746g_sd")
    hardware = replace(hardware, card=replace(hardware.card, security=security))
    size = elements(graph)
    plan = Swap(scheduler="swapnn", buffer_bytes=size // 8 // 32 * 32).plan(graph, hardware)
    cut, cost = Pieces.of(plan), COSTS["cortex-m7", security]
    sizes = [n for name, _, run in transferred(plan) for n in cut.sizes(name, run)]
    cycles = sum(sizes) * cost.byte + len(sizes) * cost.piece
    found, plain = (simulate(plan, graph, hardware, sealing=sealing) for sealing in (1, 0))
    assert found.sealing_us == pytest.approx(cycles / hardware.clock_hz * 1e6)
    assert found.makespan_us == pytest.approx(plain.makespan_us + found.sealing_us)
    assert (found.stop >= found.start).all() and found.stop.max() <= found.makespan_us * 1.000001
    told, alone = (summarized(each, graph, hardware) for each in (found, plain))
    assert told["compute_us"] == pytest.approx(alone["compute_us"])
    assert told["io_us"] == pytest.approx(alone["io_us"])
    assert told["sealing_us"] == found.sealing_us and "sealing_us" not in alone


@pytest.mark.parametrize("seed", range(4))
def test_every_transfer_is_of_whole_pieces(seed: int) -> None:
    graph, hardware = random_chain(seed), board_named("stm32f746g_sd")
    size = elements(graph)
    plan = Swap(scheduler="swapnn", buffer_bytes=max(128, size // 8 // 32 * 32)).plan(
        graph, hardware
    )
    cut = Pieces.of(plan)
    for name, _, (low, stop) in transferred(plan):
        assert {low, stop} <= set(cut.ends[name])
        assert sum(cut.sizes(name, (low, stop))) == stop - low
    for name, ends in cut.ends.items():
        sizes = np.array([high - low for low, high in pairwise(ends)])
        assert (sizes > 0).all() and sum(sizes) == ends[-1]
        if plan.buffer[name].role != "constant":
            assert sizes.max() <= piece_bytes(512)
