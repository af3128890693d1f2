"""A search that cannot be made is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ThimbleError
from pipeline.runner.halving import Architectures
from pipeline.runner.scores import SEARCH
from tests.runner.test_halving import OPTIONS, told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"halving": 1}, "halving=2 or more"),
        ({"rungs": []}, "a rung and a strategy or more"),
        ({"strategies": {"ordinary": None}}, "a rung and a strategy or more"),
        ({"jobs": ["seed=1"]}, "a search has jobs of its own"),
        ({"networks": "abc"}, "hydra.sweeper.networks=abc: a whole number"),
        ({"limits": {"macs": "many"}}, "hydra.sweeper.limits.macs=many: a number"),
    ],
)
def test_mistakes(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        Architectures(**{**OPTIONS, **changes})


def test_a_limit_of_what_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=r"limits\.flash_bytes: until=schedule gives no such"):
        told(tmp_path / "a", [], limits={"flash_bytes": 20_000})


def test_nothing_fits(tmp_path: Path) -> None:
    space = OPTIONS["space"] | {"channels": [30], "depthwise": 0.0}
    with pytest.raises(ThimbleError, match="none of 3 networks fits under any strategy"):
        told(tmp_path / "a", [], networks=3, space=space)
    assert len(json.loads((tmp_path / "a" / SEARCH).read_text())["networks"]) == 3


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"name": "mnist_2kb"}, "model=mnist_2kb has no model.convolutions to vary"),
        (
            {"convolutions": [[4, 3, 1]] * 2, "pooled": [], "bits": [4]},
            r"model\.bits=\[4\]: 4 or 8 for each of 2 convolutions",
        ),
    ],
)
def test_a_model_that_cannot_be_varied(model: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=said):
        told(tmp_path / "a", [], model, from_model=True)
