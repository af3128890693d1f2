"""Every operator: imported exactly, and int8 within one unit of the real result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.importers import torch_export
from pipeline.importers.torch_operators import OPERATORS, supported
from tests.importers.support import check_float, check_integers, example, ours, shaken, stored
from tests.importers.torch_modules import MODULES
from tests.tiers import quick

DISCONTINUOUS = ("floor", "round")
"""A value on the edge may fall on either side."""


CALLED: set[str] = set()
"""Operators that modules of ``TRIED`` have."""
TRIED: set[str] = set()


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            CALLED.add(name)
            return super().get(name, default)

    monkeypatch.setattr(torch_export, "OPERATORS", Counted(OPERATORS))


@pytest.mark.parametrize("name", quick(12, MODULES))
def test_import_is_exact_and_int8_within_one_unit(name: str) -> None:
    """Each operator's integers against the real result of its own integer inputs; and, few
    operators making few roundings, the whole against the real network."""
    TRIED.add(name)
    module, shape = MODULES[name]
    x = example(shape)
    network = check_float(shaken(module), x)
    graph, integers = check_integers(network, x)
    if name not in DISCONTINUOUS:
        real = network.outputs(ours(x, network).double()).numpy()
        expected = stored(graph, graph.output, real)
        assert np.abs(graph.outputs(integers) - expected).mean() <= 1.5


@pytest.mark.ci
def test_every_supported_operator_has_a_module() -> None:
    """Those that other processes try are exported here."""
    for name in MODULES.keys() - TRIED:
        module, shape = MODULES[name]
        torch_export.exported("net", shaken(module), example(shape, count=1))
    tried = {name.split(".")[1] for name in CALLED if name.startswith("aten.")}
    missing = [name for name in supported() if name not in tried]
    assert not missing, ", ".join(missing)
