"""A convolution over rows that arrive: what is held, what is refused, and what it computes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Affine, Plan
from pipeline.strategies.base import LAYOUTS
from pipeline.strategies.in_place import Herringbone, InPlace, Replace
from tests.codegen.support import Native, agrees
from tests.strategies.chains import Chain, board
from tests.strategies.proving import exact
from tests.tiers import quick

ONE = {"kernel": (1, 1), "stride": (1, 1)}


def record(depth: int = 1) -> Chain:
    """The network of experiment=record_mnist, with random weights."""
    chain = Chain((28, 28, depth), "uint8").average("pooled", 4, **ONE)
    chain.conv("a", 5, 5, stride=(2, 2)).conv("b", 8).conv("c", 8).maximum("m")
    return chain.conv("d", 16).dense("logits", 10)


CHAINS: dict[str, Callable[[], Chain]] = {
    "stride 2, the last row unread": lambda: (
        Chain((12, 12, 1), "uint8").average("p", 4, **ONE).conv("a", 3, 5, stride=(2, 2))
    ),
    "4 bits as they come": lambda: Chain((9, 8, 2)).conv("a", 5),
    "8 bits as they come": lambda: Chain((9, 8, 3), "uint8").conv("a", 4),
    "8 bits after it": lambda: Chain((9, 8, 2)).conv("a", 4, dtype="int8").conv("b", 3),
    "as tall as its stride": lambda: Chain((9, 8, 1)).conv("a", 3, (2, 3), stride=(2, 1)),
    "one row wide": lambda: Chain((6, 7, 2)).conv("a", 3, (1, 2)),
    "rows far apart": lambda: Chain((11, 9, 1)).conv("a", 3, dilation=(2, 3)),
    "strides that differ": lambda: Chain((13, 11, 1)).conv("a", 3, (3, 5), stride=(3, 2)),
    "columns of padding": lambda: Chain((8, 7, 1)).conv("a", 3, padding=(0, 0, 1, 1)),
    "averages of 2x2": lambda: Chain((12, 14, 1), "uint8").average("p").conv("a", 5),
    "averages of three rows of colours": lambda: (
        Chain((18, 16, 3), "uint8").average("p", 6, kernel=(3, 2), stride=(3, 2)).conv("a", 4)
    ),
    "averages side by side": lambda: (
        Chain((7, 16, 1), "uint8").average("p", 5, kernel=(1, 2), stride=(1, 2)).conv("a", 3, 2)
    ),
    "averages, rows of which no window covers": lambda: (
        Chain((16, 16, 2), "uint8").average("p").conv("a", 3, stride=(2, 2)).conv("b", 5, 2)
    ),
    "averages of 8 bits": lambda: (
        Chain((12, 12, 1), "uint8").average("p", 2, "uint8").conv("a", 4, dtype="int8")
    ),
    "columns of padding at the end": lambda: Chain((8, 6, 1)).conv(
        "a", 3, stride=(1, 2), padding=(0, 0, 0, 1)
    ),
}


def planned(chain: Chain, strategy: InPlace, hardware: Hardware | None = None) -> Plan:
    graph = chain.graph()
    plan = strategy.plan(graph, hardware or board())
    verify(plan, graph)
    return plan


@pytest.mark.parametrize("name", CHAINS)
def test_every_window_finds_its_rows(name: str) -> None:
    graph = CHAINS[name]().dense("d", 2).graph()
    for layout in LAYOUTS:
        exact(Herringbone(layout, convolve_arriving=True).plan(graph, board()), graph)


@pytest.mark.parametrize("name", quick(2, CHAINS))
def test_code_of_it(name: str, tmp_path: Path) -> None:
    """A byte at a time, several rows at once."""
    graph = CHAINS[name]().dense("d", 2).graph()
    for core, chunk in (("avr", 1), ("host", 23)):
        hardware = replace(board(), core=core)
        plan = Replace("slots", convolve_arriving=True).plan(graph, hardware)
        assert agrees(Native(tmp_path / core, graph, plan, hardware), 3, chunk)


def test_a_ring_of_rows_is_held_instead_of_the_image() -> None:
    plan = planned(record(), Herringbone("slots", convolve_arriving=True))
    (ring,) = (b for b in plan.buffers if b.tensor == "pooled")
    assert isinstance(ring.map, Affine) and ring.map.wrap == (5, 0, 0)
    assert all(b.memory == "stream" for b in plan.buffers if b.tensor == "image")
    deep = record(3)
    held, by_rows = (
        planned(deep, Herringbone("slots", convolve_arriving=each)) for each in (False, True)
    )
    assert arena(held) == 28 * 28 * 3
    assert arena(by_rows) == 12 * 12 * 5 + 5 * 28 * 3


def arena(plan: Plan) -> int:
    """Nibbles."""
    held = (b for b in plan.buffers if b.memory == "sram" and b.role != "constant")
    return max(buffer.extent[1] for buffer in held)


def test_nothing_is_left_of_it_when_the_image_is_there() -> None:
    """Its last pixel is made before the last row, which no window covers, arrives."""
    plan = planned(record(), Herringbone("slots", convolve_arriving=True))
    (track,) = plan.tracks
    ops = [getattr(step, "op", "loop") for step in track.steps]
    assert ops[:6] == ["pooled", "pooled", "pooled", "loop", "pooled", "b"]


@pytest.mark.parametrize(
    ("chain", "streams"),
    [
        (lambda: Chain((8, 8, 1)).conv("a", 2), False),
        (lambda: Chain((8, 8, 1)).conv("a", 2, padding=(1, 0, 0, 0)), True),
        (lambda: Chain((8, 8, 1), "uint8").maximum("p").conv("a", 2), True),
        (lambda: Chain((8, 8, 1)).conv("a", 2, 2, stride=(3, 1)), True),
        (lambda: Chain((8, 8, 1)).conv("a", 2, (8, 3)), True),
        (lambda: Chain((8, 8, 1)).maximum("m"), True),
    ],
    ids=["held", "padding", "pooled", "rows skipped", "one row of outputs", "no convolution"],
)
def test_where_there_is_none(chain: Callable[[], Chain], streams: bool) -> None:
    graph = chain().graph()
    with pytest.raises(ThimbleError, match=r"convolve_arriving: the input has to stream in"):
        Herringbone("slots", convolve_arriving=True).plan(graph, board(streams))


def test_a_pool_of_single_values_needs_no_sums() -> None:
    chain = Chain((8, 8, 1), "uint8").average("p", 4, **ONE).dense("d", 2)
    plan = planned(chain, Replace("slots"))
    assert not [b.name for b in plan.buffers if b.role == "accumulator"]
    assert max(b.extent[1] for b in plan.buffers if b.tensor == "p") == 64
