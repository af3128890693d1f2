"""What does not fit is planned all the same: the plan says what it needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline import verdict
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.fit import roomy
from pipeline.plan.rates import Rates, Transfers
from pipeline.search.swap import best
from pipeline.search.swap.layers import layers
from pipeline.search.swap.search import least_bytes
from pipeline.strategies.swap import Swap
from tests.report.pages import write
from tests.strategies.swap.nets import Chain, best_plan, random_chain
from tests.tiers import quick
from tests.timing.toys import slow

RATES = Rates(1.0, Transfers(1.0), Transfers(1.0))


def report(graph: Graph, sram_bytes: int, **keys: Any) -> dict[str, Any]:
    hardware = replace(slow(), sram_bytes=sram_bytes)
    return verdict.check(Swap(**keys).plan(graph, hardware), graph, hardware)


def network() -> Graph:
    chain = Chain("net", (12, 12, 4))
    chain.conv(8, 3)
    chain.maximum(2, 2)
    chain.dense(10)
    return chain.graph()


@pytest.mark.parametrize("frames", quick(1, [1, 3], ci=0))
@pytest.mark.parametrize("scheduler", ["best", "swapnn"])
def test_it_is_a_result(scheduler: str, frames: int) -> None:
    found = report(network(), 300, scheduler=scheduler, buffer_bytes=512, frames=frames)
    assert (found["status"], found["resource"]) == ("infeasible", "SRAM")
    assert found["needed_bytes"] > found["available_bytes"] == 300
    assert found["makespan_us"] > 0 and "try" in found["advice"]


@pytest.mark.ci
def test_a_card_that_is_too_small_is_a_result() -> None:
    graph, hardware = network(), replace(slow(bytes=1024), sram_bytes=4096)
    found = verdict.check(Swap().plan(graph, hardware), graph, hardware)
    assert (found["status"], found["resource"]) == ("infeasible", "card")
    assert found["needed_bytes"] > found["available_bytes"] == 1024
    assert found["advice"] == "try fewer channels or a larger card"


@pytest.mark.parametrize(
    ("hardware", "lacking"),
    [
        (replace(slow(), sram_bytes=300), "SRAM"),
        (replace(slow(bytes=1024), sram_bytes=4096), "card"),
    ],
)
def test_what_does_not_fit_has_a_page(tmp_path: Path, hardware: Hardware, lacking: str) -> None:
    graph = network()
    page = write(tmp_path / "plan.html", Swap().plan(graph, hardware), graph, hardware)
    assert lacking in page and "infeasible" in page


@pytest.mark.parametrize("scheduler", quick(1, ["best", "swapnn"]))
def test_one_byte_decides(scheduler: str) -> None:
    keys = {"scheduler": scheduler, "buffer_bytes": 512}
    needed = report(network(), 300, **keys)["needed_bytes"]
    assert report(network(), needed, **keys)["status"] == "ok"
    assert report(network(), needed - 1, **keys)["needed_bytes"] == needed


def test_a_pixel_larger_than_a_buffer_is_an_error() -> None:
    with pytest.raises(ThimbleError, match=r"strategy\.buffer_bytes=16 is too small"):
        report(network(), 4096, scheduler="swapnn", buffer_bytes=16)


@pytest.mark.parametrize("seed", range(5))
def test_every_chain_has_a_plan_in_the_least_bytes(seed: int) -> None:
    graph = random_chain(seed)
    parts = layers(graph)
    assert best.Tries(graph, parts, least_bytes(parts), 1, RATES).found()
    plan = best_plan(graph, 16, 1, RATES)
    (sram, *_), (has, *_) = roomy(plan).memories, plan.memories
    assert has.bytes == 16 < sram.bytes <= least_bytes(parts)
