"""The arena as it is linked, scratch and alignment included, beside what its tensors need."""

from __future__ import annotations

import pytest

from tests.public_models import LACKING, MODELS
from tests.strategies.bench_joint import FILES, ROOM, network, planned
from tests.tiers import quick

WAYS = [(name, streamed) for name in ROOM for streamed in (True, False)]


@pytest.mark.parametrize(("name", "streamed"), quick(1, WAYS, ci=3))
def test_scratch_costs_little(name: str, streamed: bool) -> None:
    if name in FILES and not MODELS.is_dir():
        pytest.skip(LACKING)
    found = planned(network(name), streamed).cost
    assert found.pmu_bytes < found.arena_bytes <= ROOM[name] * found.pmu_bytes
