"""Patches as C on this computer: the graph's outputs byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.strategies.patch import Patch
from tests.codegen.int8.support import Native, agrees, host
from tests.strategies.patch.test_patch import random_images
from tests.tiers import quick


@pytest.mark.parametrize("seed", quick(1, range(5), ci=1))
def test_random_networks(tmp_path: Path, seed: int) -> None:
    graph = random_images(seed)
    assert agrees(Native(tmp_path, graph, Patch(rows=2, columns=3).plan(graph, host())))
