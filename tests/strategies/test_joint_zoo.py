"""Over the zoo, the joint schedule takes no more than any other strategy that computes nothing
twice, has exact sums and needs no card."""

from __future__ import annotations

import pytest

from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.strategies.zoo import IN_PLACE, ZOO, network, pmu_bytes
from tests.tiers import quick

PRESETS = (Ordinary(), Partial(), *IN_PLACE)

FIRST = [
    ("mnist", False),
    ("autoencoder", False),
    ("autoencoder", True),
    ("mnist", True),
    ("lenet5", False),
    ("ds_cnn_s", True),
]
"""The first for ``make test``, the others of these for ``.ci/run``."""


EVERY = [(name, streamed) for name in sorted({*ZOO, "mnist"}) for streamed in (False, True)]
REST = [each for each in EVERY if each not in FIRST]


@pytest.mark.parametrize(("name", "streamed"), quick(1, FIRST + REST, ci=2))
def test_never_more_than_a_preset(name: str, streamed: bool) -> None:
    graph = network(name)
    least = pmu_bytes(Joint(), graph, streamed)
    assert least is not None
    for preset in PRESETS:
        other = pmu_bytes(preset, graph, streamed)
        assert other is None or least <= other, preset
