"""A search for networks: what is drawn, what goes on, and that a seed decides it all."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
import yaml
from omegaconf import OmegaConf

from pipeline.artifacts import write_json, write_npz
from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.metrics import SCORE
from pipeline.models.small_cnn import SmallCnn
from pipeline.runner import progress, sweep
from pipeline.runner.halving import Architectures, _best, validation
from pipeline.runner.space import Space
from pipeline.runner.table import SEARCH

CONF: dict[str, Any] = yaml.safe_load((ROOT / "conf" / "sweep" / "architectures.yaml").read_text())
OPTIONS = {k: v for k, v in CONF["hydra"]["sweeper"].items() if k != "_target_"}
ARRIVING = "strategy.convolve_arriving=${hardware.streams_input}"
RUNGS = ["train.batch=3", "train.batch=4"]


class Told(Architectures):
    """Without processes: networks of more than 24 channels don't fit, and of the others those with
    more channels do better, until the last rung. No training takes as many as are ``refused``, and
    the answers of those that are ``late`` come too late."""

    refused: ClassVar[set[int]] = set()
    late: ClassVar[set[int]] = set()

    def combinations(self, words: Sequence[str]) -> list[list[str]]:
        return [list(words)]

    def _round(
        self, jobs: Sequence[Sequence[str]], total: int = 0, **about: Any
    ) -> list[dict[str, Any]]:
        results = []
        for job in jobs:
            self.jobs.append(list(job))
            folder = self.folder / str(len(self.jobs))
            folder.mkdir()
            width = wide(job)
            score = width / 100 if RUNGS[0] in job else 1 - width / 100
            text = f"phase,validation_accuracy\nfloat,{score}\n"
            if width not in self.refused:
                (folder / "training.csv").write_text(text)
                write_npz(folder / "weights.npz", {})
            measured = not any(word.startswith("until=") for word in job)
            late = "failed" if measured and width in self.late else "ok"
            status = "infeasible" if width > 24 else late
            results.append({"status": status, "pmu_bytes": width, "run_dir": str(folder)})
        return results


class Two(Told):
    def combinations(self, words: Sequence[str]) -> list[list[str]]:
        return [["seed=1"], ["seed=2"]]


def wide(words: Sequence[str]) -> int:
    (found,) = (word for word in words if word.startswith("model.convolutions="))
    return sum(each[0] for each in json.loads(found.partition("=")[2]))


def told(
    folder: Path, arguments: list[str], model: Any = None, made: type[Told] = Told, **changes: Any
) -> tuple[Told, dict[str, Any]]:
    search = made(**{**OPTIONS, "networks": 30, "rungs": RUNGS, **changes})
    search.folder, search.tries = folder, []
    folder.mkdir()
    write_json(folder / sweep.ABOUT, {})
    shape = {"input_shape": [28, 28, 1]}
    node = {"model": shape | (model or {}), "hydra": {"sweep": {"dir": str(folder)}}}
    search.config = OmegaConf.create(node)
    search.sweep(arguments)
    return search, json.loads((folder / SEARCH).read_text())


def test_who_goes_on(tmp_path: Path) -> None:
    words = ["seed=7", "until=build", "train.batch=9"]
    search, found = told(tmp_path / "a", words)
    again, other = (told(tmp_path / str(seed), words, seed=seed) for seed in (OPTIONS["seed"], 2))
    assert again[1] == found != other[1] and again[0].jobs == search.jobs, "a seed decides it all"
    networks = found["networks"]
    fit = [each for each in networks if each["bytes"]]
    assert 6 < len(fit) < 30 and all(wide(each["overrides"]) <= 24 for each in fit)
    assert not any(each["rungs"] for each in networks if not each["bytes"])
    second = [each for each in fit if len(each["rungs"]) == 2]
    assert len(second) == -(-len(fit) // 3)
    worst = min(each["rungs"][0] for each in second)
    assert worst >= max(each["rungs"][0] for each in fit if each not in second)
    last = [each for each in fit if each.get("survives")]
    assert len(last) == -(-len(second) // 3)
    assert max(each["rungs"][1] for each in second) in [each["rungs"][1] for each in last]

    planned, ended = search.jobs[:120], search.jobs[-4 * len(last) :]
    assert all({"train=random", "until=schedule", "seed=7"} <= set(job) for job in planned)
    assert not any(word.startswith("train.") for job in planned for word in job)
    trained = search.jobs[120 : -4 * len(last)]
    assert len(trained) == len(fit) + len(second)
    assert all(job[-1] == "until=train" and job[-2] in RUNGS for job in trained)
    assert all(job[-1] == RUNGS[1] and job[1] == "until=build" for job in ended)
    streamed = [job for job in search.jobs if "model.input_pool=1" in job]
    assert all("strategy=ordinary" in job or ARRIVING in job for job in streamed)
    assert not any(ARRIVING in job for job in search.jobs if job not in streamed)


def test_children_of_the_best(tmp_path: Path) -> None:
    """Drawn networks are as without children; each child is one of the best with a change."""
    _, before = told(tmp_path / "a", [], networks=12)
    search, found = told(tmp_path / "b", [], networks=12, generations=3, children=5)
    networks = found["networks"]
    assert len(networks) == 12 + 3 * 5
    assert [each["overrides"] for each in networks[:12]] == [
        each["overrides"] for each in before["networks"]
    ]
    assert len({tuple(each["overrides"]) for each in networks}) == len(networks)
    known = networks[:12]
    for begin in (12, 17, 22):
        alive = [each for each in known if each["bytes"]]
        parents = _best([each | {"rungs": each["rungs"][:1]} for each in alive], 3)
        for child in networks[begin : begin + 5]:
            assert any(len(set(child["overrides"]) & set(p["overrides"])) >= 1 for p in parents)
        known = networks[: begin + 5]
    first = [each["rungs"][0] for each in networks if each["rungs"]]
    assert max(first) >= max(each["rungs"][0] for each in networks[:12] if each["rungs"])
    planned = {n for n, job in enumerate(search.jobs) if "until=schedule" in job}
    trained = {n for n, job in enumerate(search.jobs) if "until=train" in job}
    measured = set(range(max(trained) + 1, len(search.jobs)))
    assert set(search.tries) == planned | trained | measured
    assert len(planned) == 4 * len(networks) and measured


def test_the_model_comes_first_and_has_children(tmp_path: Path) -> None:
    """Wide as it is: of those that fit it has the best accuracy, so that a child is its own."""
    _, before = told(tmp_path / "a", [], networks=12)
    own: Any = {"convolutions": [[12, 3, 1], [12, 2, 1]], "pooled": [1], "input_pool": 1}
    _, found = told(
        tmp_path / "b", [], own, networks=12, from_model=True, generations=1, children=30
    )
    networks = [each["overrides"] for each in found["networks"]]
    assert networks[0] == [
        "model.input_pool=1",
        "model.convolutions=[[12,3,1],[12,2,1]]",
        "model.pooled=[1]",
        "model.bits=[4,4]",
    ]
    assert networks[1:13] == [each["overrides"] for each in before["networks"]]
    assert any(len({*networks[0]} & {*child}) == 3 for child in networks[13:])
    with pytest.raises(ThimbleError, match="leave something of an image"):
        told(
            tmp_path / "c", [], own | {"convolutions": [[4, 29, 1]], "pooled": []}, from_model=True
        )


def test_what_a_network_has_to_come_through(tmp_path: Path) -> None:
    limits: Any = {"pmu_bytes": 20, "macs": None}
    search, found = told(tmp_path / "a", [], fits="build", limits=limits)
    last = [n for n in search.tries if not {"until=build", "until=train"} & {*search.jobs[n]}]
    assert last == search.tries[-len(last) :]
    fit = [each for each in found["networks"] if each["bytes"]]
    assert fit and all(wide(each["overrides"]) <= 20 for each in fit)


def test_a_training_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails no search, unless all are."""
    monkeypatch.setattr(Told, "refused", {18, 20})
    search, found = told(tmp_path / "a", [])
    trained = {n for n, job in enumerate(search.jobs) if "until=train" in job}
    refused = [each for each in found["networks"] if each["rungs"] == [-1.0]]
    assert refused and all(wide(each["overrides"]) in Told.refused for each in refused)
    assert trained < set(search.tries)
    monkeypatch.setattr(Told, "refused", set(range(100)))
    search, found = told(tmp_path / "b", [])
    assert not any(each.get("survives") for each in found["networks"])
    assert not {n for n, job in enumerate(search.jobs) if "until=train" in job} & set(search.tries)


def test_a_survivor_that_answers_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails no search, unless all do."""

    def measured(search: Told) -> set[int]:
        return {n for n, job in enumerate(search.jobs) if "until=" not in " ".join(job)}

    search, found = told(tmp_path / "a", [])
    survivors = [each for each in found["networks"] if each.get("survives")]
    widths = {wide(each["overrides"]) for each in survivors}
    assert len(widths) > 1 and measured(search) < set(search.tries)
    monkeypatch.setattr(Told, "late", {max(widths)})
    search, _ = told(tmp_path / "b", [])
    assert measured(search) < set(search.tries)
    monkeypatch.setattr(Told, "late", widths)
    search, _ = told(tmp_path / "c", [])
    assert not measured(search) & set(search.tries)


def test_refused_networks_fail_no_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(tmp_path / sweep.ABOUT, {"jobs": [], "output": "json", "overrides": []})
    progress.lost(tmp_path, 0, "quantize: its sums are too large")
    progress.lost(tmp_path, 1, "")
    write_json(tmp_path / "1" / "result.json", {"status": "ok", "run_dir": str(tmp_path / "1")})
    for tries, status in (([0], "ok"), ([], "failed")):
        sweep.go_on(tmp_path, [["seed=1"], ["seed=2"]], tries)
        assert sweep.finish(tmp_path)["status"] == status
    assert "its sums are too large" in capsys.readouterr().out


def test_the_best_epoch_of_the_last_phase(tmp_path: Path) -> None:
    assert validation(tmp_path) == -1.0
    head = "epoch,phase,loss,validation_accuracy\n"
    (tmp_path / "training.csv").write_text(head)
    assert validation(tmp_path) == -1.0
    (tmp_path / "training.csv").write_text(f"{head}1,float,1,0.9\n2,frozen,1,0.4\n3,frozen,1,0.3\n")
    write_npz(tmp_path / "weights.npz", {})
    assert validation(tmp_path) == 0.4
    write_npz(tmp_path / "weights.npz", {SCORE: np.array(0.25)})
    assert validation(tmp_path) == 0.25, "what the recipe chose by"
    networks = [{"rungs": [score]} for score in (-1.0, 0.4, 0.6, -1.0)]  # two without an end
    assert _best(networks, 4) == [networks[2]]
    assert _best(networks, 1) == [networks[1], networks[2]]


CHOICES: dict[str, Any] = OPTIONS["space"]
SPACE = Space(**CHOICES)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"halving": 1}, "halving=2 or more"),
        ({"rungs": []}, "a rung and a strategy or more"),
        ({"strategies": {"ordinary": None}}, "a rung and a strategy or more"),
        ({"jobs": ["seed=1"]}, "a search makes jobs of its own"),
        ({"networks": "abc"}, "hydra.sweeper.networks: Value 'abc' of type 'str'"),
        ({"limits": {"macs": "many"}}, "hydra.sweeper.limits.macs: Value 'many'"),
        ({"limits": {"flash_bytes": 20_000}}, "flash_bytes is no figure of"),
        ({"space": CHOICES | {"layers": [1.5, 3]}}, r"space.layers\[0\]: Value '1.5'"),
        ({"space": CHOICES | {"depthwise": "abc"}}, "space.depthwise: Value 'abc'"),
        ({"space": CHOICES | {"depth": 1}}, "space.depth: there is no 'depth' in 'Space'"),
        ({"space": CHOICES | {"channels": [30], "depthwise": 0.0}}, "none of 30 networks fits"),
        ({"from_model": True, "model": {"name": "mnist_2kb"}}, "model=mnist_2kb cannot be varied"),
        ({"model": {"convolutions": [[4, 3, 1]] * 2, "pooled": [], "bits": [4]},
          "from_model": True},
         "model.bits for each or for none"),
        ({"made": Two}, "takes one value of each key"),
    ],
)  # fmt: skip
def test_mistakes(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        told(tmp_path / "a", [], **changes)
    if "none of" in said:
        assert len(json.loads((tmp_path / "a" / SEARCH).read_text())["networks"]) == 30


def drawn(count: int, seed: int = 1, space: Space = SPACE) -> list[list[str]]:
    return space.networks(count, (28, 28, 1), seed)


def values(network: list[str]) -> dict[str, Any]:
    words = (word.removeprefix("model.").split("=") for word in network)
    return {key: json.loads(value) for key, value in words}


def test_a_seed_draws_the_same_networks_of_the_space() -> None:
    assert drawn(30) == drawn(30)
    assert drawn(30)[:10] == drawn(10)
    assert drawn(10, 2) != drawn(10)
    assert len({tuple(network) for network in drawn(30)}) == 30
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
