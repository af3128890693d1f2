"""Networks drawn from a space: the same ones for a seed, each once, all with something left."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
import yaml

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.models.small_cnn import SmallCnn
from pipeline.runner.space import Space

FILE = yaml.safe_load((ROOT / "conf" / "sweep" / "architectures.yaml").read_text())
CHOICES: dict[str, Any] = FILE["hydra"]["sweeper"]["space"]
SPACE = Space(**CHOICES)


def drawn(count: int, seed: int = 1, space: Space = SPACE) -> list[list[str]]:
    return space.networks(count, (28, 28, 1), seed)


def values(network: list[str]) -> dict[str, Any]:
    words = (word.removeprefix("model.").split("=") for word in network)
    return {key: json.loads(value) for key, value in words}


def test_a_seed_draws_the_same_networks_however_many() -> None:
    assert drawn(30) == drawn(30)
    assert drawn(30)[:10] == drawn(10)
    assert drawn(10, 2) != drawn(10)
    assert len({tuple(network) for network in drawn(30)}) == 30


def test_each_is_a_network_of_the_space() -> None:
    seen: dict[str, set[Any]] = {"depthwise": set(), "pool": set(), "bits": set()}
    for network in map(values, drawn(60)):
        model = SmallCnn(**{key: _tuples(value) for key, value in network.items()})
        assert model.build() is not None  # nothing is left of the image: it raises
        least, most = CHOICES["layers"]
        assert least <= len(model.convolutions) <= most
        for channels, kernel, stride in model.convolutions:
            assert channels in [0, *CHOICES["channels"]]
            assert kernel in CHOICES["kernels"] and stride in CHOICES["strides"]
        assert model.convolutions[0][0] > 0 and len(model.bits) == len(model.convolutions)
        seen["depthwise"] |= {channels == 0 for channels, _, _ in model.convolutions}
        seen["pool"].add((model.input_pool, bool(model.pooled)))
        seen["bits"] |= set(model.bits)
    assert seen["depthwise"] == {True, False} and seen["bits"] == {4, 8} and len(seen["pool"]) == 4


def test_a_variation_is_of_the_space_and_differs_in_one_thing() -> None:
    random = Random(1)
    kinds = set[str]()
    for parent in drawn(40):
        for _ in range(10):
            child = SPACE.varied(parent, (28, 28, 1), random)
            if child is None or child == parent:
                continue
            model = SmallCnn(**{key: _tuples(value) for key, value in values(child).items()})
            assert model.build() is not None
            least, most = CHOICES["layers"]
            assert least <= len(model.convolutions) <= most and model.convolutions[0][0] > 0
            was = values(parent)["convolutions"]
            longer = len(model.convolutions) - len(was)
            assert abs(longer) <= 1
            changed = tuple(k for k, v in values(child).items() if v != values(parent)[k])
            if not longer:  # one key alone, and of its convolutions one number
                assert len(changed) == 1
                now = [list(each) for each in model.convolutions]
                pairs = [zip(*both, strict=True) for both in zip(was, now, strict=True)]
                differ = sum(a != b for both in pairs for a, b in both)
                assert differ == (changed == ("convolutions",))
            kinds.add(("longer", "shorter")[longer < 0] if longer else changed[0])
    assert kinds == {"input_pool", "convolutions", "pooled", "bits", "longer", "shorter"}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"layers": [3, 2]}, r"space\.layers=\[3, 2\]: the least and the greatest"),
        ({"kernels": []}, r"space\.kernels=\[\]: whole numbers from 1, one at least"),
        ({"strides": [0]}, r"space\.strides=\[0\]: whole numbers from 1"),
        ({"input_pools": [0]}, r"space\.input_pools=\[0\]: whole numbers from 1"),
        ({"bits": [2]}, r"space\.bits=\[2\]: 4, 8 or both"),
        ({"pooled": 1.5}, r"space\.pooled=1\.5: a share"),
        ({"kernels": [40]}, "after 0 networks no other is found"),
        ({"layers": [1, 1], "channels": [4], "kernels": [3], "strides": [1], "bits": [4],
          "pooled": 0.0, "input_pools": [2]}, "after 1 networks no other is found"),
    ],
)  # fmt: skip
def test_a_space_without_networks_is_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        drawn(2, space=Space(**{**CHOICES, **changes}))
