"""The networks of these tests are the zoo's, and one of them is near what no plan is below."""

import pytest

from pipeline.search.swap.layers import TiledLayer, layers
from tests.strategies.swap.bench_card import LITTLE, SRAM, on_card
from tests.strategies.swap.nets import mobilenet
from tests.strategies.zoo import network


def shape(layer: TiledLayer) -> tuple[object, ...]:
    sources = [(source.shape, source.windows) for source in layer.sources]
    return layer.shape, layer.channelwise, layer.row_bytes, layer.work, sources


@pytest.mark.ci
def test_mobilenet_is_the_zoo_s() -> None:
    found, zoo = layers(mobilenet()), layers(network("mobilenet_v1"))
    assert [shape(layer) for layer in found] == [shape(layer) for layer in zoo]


@pytest.mark.slow
def test_mobilenet_on_a_card_is_near_its_bound() -> None:
    found, notes = on_card(mobilenet(), SRAM)
    assert 0 < found["waits_pct"] - float(notes["bound_overhead_pct"]) < LITTLE
