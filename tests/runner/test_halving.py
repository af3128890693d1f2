"""A search for networks: what doesn't fit isn't trained, the best go on, a seed decides it all."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import yaml
from omegaconf import OmegaConf

from pipeline.artifacts import write_json, write_npz
from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.metrics import SCORE
from pipeline.runner import progress, sweep
from pipeline.runner.halving import Architectures, _best, validation
from pipeline.runner.table import SEARCH
from tests.runner.project import Project

CONF: dict[str, Any] = yaml.safe_load((ROOT / "conf" / "sweep" / "architectures.yaml").read_text())
OPTIONS = {k: v for k, v in CONF["hydra"]["sweeper"].items() if k != "_target_"}
HEAD = """\
import os
import time
from pathlib import Path

import numpy as np

from pipeline import config
from pipeline.artifacts import write_json, write_npz
from stages._main import run


def make():
    cfg = config.load()
    width = sum(each[0] for each in cfg["model"]["convolutions"])
    with Path(os.environ["FAKE_LOG"]).open("a") as log:
        name = f"STAGE-{cfg['train']['name']}-{cfg['train']['batch']}"
        log.write(f"{name}\\n")
    while Path(log.name).with_name(f"held-{name}").exists():
        time.sleep(0.01)
"""
TRAIN = """\
    write_npz(Path("weights.npz"), {"width": np.array([width, cfg["train"]["batch"]])})
    score = (width * 37 % 100 + cfg["train"]["batch"] / 100) / 100
    lines = "epoch,phase,loss,validation_accuracy\\n1,float,1,0.99\\n2,frozen,1,"
    Path("training.csv").write_text(f"{lines}{score}\\n3,frozen,1,0.0\\n")


run(make)
"""
SCHEDULE = """\
    needed = 100 * width * (1 + (cfg["strategy"]["name"] == "ordinary"))
    report = {"pmu_bytes": needed, "status": "ok"}
    if needed > cfg["hardware"]["sram_bytes"]:
        report |= {"status": "infeasible", "resource": "SRAM", "where": "conv2", "advice": "none"}
        report |= {"needed_bytes": needed, "available_bytes": cfg["hardware"]["sram_bytes"]}
    for name in ("plan.json", "proof.json", "schedule.json"):
        write_json(Path(name), report)


run(make)
"""
CLASS = '''\
"""A fake model."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Net:
    input_shape: tuple[int, ...] = ()
    convolutions: tuple[tuple[int, ...], ...] = ()
    pooled: tuple[int, ...] = ()
    bits: tuple[int, ...] = ()
    input_pool: int = 1
'''
ARRIVING = "strategy.convolve_arriving=${hardware.streams_input}"
RUNGS = ["train.batch=3", "train.batch=4"]


@pytest.fixture
def searched(project: Project) -> Project:
    """Networks need 100 B a channel, or twice that, and their accuracy follows from it."""
    project.write("stages/train.py", HEAD.replace("STAGE", "train") + TRAIN)
    project.write("stages/schedule.py", HEAD.replace("STAGE", "schedule") + SCHEDULE)
    project.write("pipeline/models/net.py", CLASS)
    model = {"name": "small_cnn", "_target_": "pipeline.models.net.Net", "input_shape": [28, 28, 1]}
    model |= {"convolutions": [], "pooled": [], "bits": [], "input_pool": 1}
    project.write("conf/model/small_cnn.yaml", yaml.safe_dump(model))
    train = yaml.safe_load((project.root / "conf/train/quick.yaml").read_text())
    project.write("conf/train/random.yaml", yaml.safe_dump(train | {"name": "random"}))
    naive = (project.root / "conf/strategy/naive.yaml").read_text()
    project.write("conf/strategy/ordinary.yaml", naive.replace("naive", "ordinary"))
    found = yaml.safe_load((project.root / "dvc.yaml").read_text())
    found["stages"]["train"]["params"] += ["train.name", "model.convolutions"]
    found["stages"]["schedule"]["params"] += ["train", "model.convolutions", "strategy.name"]
    project.write("dvc.yaml", yaml.safe_dump(found, sort_keys=False))
    names = ("ordinary", "herringbone")
    both = {name: dict.fromkeys(("pooled", "streamed"), f"strategy={name}") for name in names}
    sweeper = CONF["hydra"]["sweeper"] | {"networks": 7, "rungs": RUNGS, "strategies": both}
    hydra = CONF["hydra"] | {"sweeper": sweeper}
    text = "# @package _global_\n" + yaml.safe_dump({**CONF, "hydra": hydra}, sort_keys=False)
    project.write("conf/sweep/architectures.yaml", text)
    return project


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
    search, found = told(tmp_path / "a", ["seed=7", "until=build", "train.batch=9"])
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


def test_a_seed_decides_it_all(tmp_path: Path) -> None:
    first, second, other = (
        told(tmp_path / name, [], seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first[1] == second[1] and first[0].jobs == second[0].jobs
    assert first[1] != other[1]


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


def test_a_training_without_an_end_survives_nothing() -> None:
    networks = [{"rungs": [score]} for score in (-1.0, 0.4, 0.6, -1.0)]
    assert _best(networks, 4) == [networks[2]]
    assert _best(networks, 1) == [networks[1], networks[2]]


def test_a_network_that_is_refused_fails_no_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about: dict[str, Any] = {"jobs": [], "output": "json", "overrides": []}
    write_json(tmp_path / sweep.ABOUT, about)
    progress.lost(tmp_path, 0, "quantize: its sums are too large")
    progress.lost(tmp_path, 1, "")
    write_json(tmp_path / "1" / "result.json", {"status": "ok", "run_dir": str(tmp_path / "1")})
    for tries, status in (([0], "ok"), ([], "failed")):
        sweep.go_on(tmp_path, [["seed=1"], ["seed=2"]], tries)
        assert sweep.finish(tmp_path)["status"] == status
    assert "its sums are too large" in capsys.readouterr().out


@pytest.mark.slow
def test_a_search(searched: Project) -> None:
    """Interrupted while the best of the first round train longer, it goes on there."""
    searched.hold("train-quick-4")
    started = searched.start("sweep=architectures", "output=json")
    searched.wait_for("train-quick-4")
    started.send_signal(signal.SIGINT)
    started.communicate()
    assert started.returncode == 130
    searched.release("train-quick-4")
    before = searched.ran()
    run = searched.run("sweep=architectures", "output=json")
    assert run.code == 0, run.err
    folder = Path(run.json["run_dir"])
    search = json.loads((folder / SEARCH).read_text())
    networks = search["networks"]
    assert len(networks) == 7 and search["strategies"] == ["ordinary", "herringbone"]
    fit = [each for each in networks if each["bytes"]]
    assert 1 < len(fit) < 7
    assert [bool(each["rungs"]) for each in networks] == [bool(each["bytes"]) for each in networks]
    second = [each for each in fit if len(each["rungs"]) == 2]
    assert len(second) == -(-len(fit) // 3)
    least = min(each["rungs"][0] for each in second)
    assert least >= max(each["rungs"][0] for each in fit if each not in second)
    (survivor,) = [each for each in fit if each.get("survives")]
    assert survivor["rungs"][1] == max(each["rungs"][1] for each in second)

    ran = searched.ran()
    assert before.count("train-quick-3") == len(fit) and before[-1] == "train-quick-4"
    longer = [name for name in ran if name.startswith("train-quick")]
    assert longer == ["train-quick-4"] * len(second)
    jobs = run.json["jobs"]
    assert len(jobs) == 14 + len(fit) + len(second) + len(survivor["bytes"])
    last = jobs[-len(survivor["bytes"]) :]
    assert all(job["status"] == "ok" and "cycles" in job for job in last)
    assert all(set(survivor["overrides"]) < set(job["overrides"]) for job in last)
    assert (folder / "architectures.png").is_file()

    again = searched.run("sweep=architectures", "output=json", "hydra/launcher=local")
    assert again.code == 0 and searched.ran() == []  # it goes on where it was: all is made
    assert (Path(again.json["run_dir"]) / SEARCH).read_text() == (folder / SEARCH).read_text()


@pytest.mark.ci
def test_one_value_of_each_key(searched: Project) -> None:
    run = searched.run("sweep=architectures", "seed=1,2")
    assert run.code == 1 and "takes one value of each key" in run.err
    assert not searched.ran()


def test_the_best_epoch_of_the_last_phase(tmp_path: Path) -> None:
    assert validation(tmp_path) == -1.0
    head = "epoch,phase,loss,validation_accuracy\n"
    (tmp_path / "training.csv").write_text(head)
    assert validation(tmp_path) == -1.0
    (tmp_path / "training.csv").write_text(f"{head}1,float,1,0.9\n2,frozen,1,0.4\n3,frozen,1,0.3\n")
    write_npz(tmp_path / "weights.npz", {})
    assert validation(tmp_path) == 0.4


def test_what_the_recipe_chose_by(tmp_path: Path) -> None:
    (tmp_path / "training.csv").write_text("phase,validation_accuracy\nfrozen,0.4\n")
    write_npz(tmp_path / "weights.npz", {SCORE: np.array(0.25)})
    assert validation(tmp_path) == 0.25
