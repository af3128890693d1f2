"""A search that cannot be made is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ThimbleError
from pipeline.runner.halving import Architectures
from pipeline.runner.table import SEARCH
from tests.runner.test_halving import OPTIONS, told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"halving": 1}, "halving=2 or more"),
        ({"rungs": []}, "a rung and a strategy or more"),
        ({"strategies": {"ordinary": None}}, "a rung and a strategy or more"),
        ({"jobs": ["seed=1"]}, "a search makes jobs of its own"),
        ({"networks": "abc"}, "hydra.sweeper.networks: Value 'abc' of type 'str'"),
        ({"limits": {"macs": "many"}}, "hydra.sweeper.limits.macs: Value 'many'"),
        ({"space": OPTIONS["space"] | {"layers": [1.5, 3]}}, r"space.layers\[0\]: Value '1.5'"),
        ({"space": OPTIONS["space"] | {"depthwise": "abc"}}, "space.depthwise: Value 'abc'"),
        ({"space": OPTIONS["space"] | {"depth": 1}}, "space.depth: there is no 'depth' in 'Space'"),
    ],
)
def test_mistakes(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        Architectures(**{**OPTIONS, **changes})


def test_a_limit_of_what_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match="flash_bytes is no figure of"):
        told(tmp_path / "a", [], limits={"flash_bytes": 20_000})


def test_nothing_fits(tmp_path: Path) -> None:
    space = OPTIONS["space"] | {"channels": [30], "depthwise": 0.0}
    with pytest.raises(ThimbleError, match="none of 3 networks fits under any strategy"):
        told(tmp_path / "a", [], networks=3, space=space)
    assert len(json.loads((tmp_path / "a" / SEARCH).read_text())["networks"]) == 3


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"name": "mnist_2kb"}, "model=mnist_2kb cannot be varied"),
        (
            {"convolutions": [[4, 3, 1]] * 2, "pooled": [], "bits": [4]},
            "model.bits for each or for none",
        ),
    ],
)
def test_a_model_that_cannot_be_varied(model: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=said):
        told(tmp_path / "a", [], model, from_model=True)
