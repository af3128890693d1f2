"""What DVC is told of a stage's inputs is what it would find by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.runner.cached import to_yaml
from pipeline.runner.inputs import Inputs
from pipeline.runner.repository import opened, plain_paths

STAGES = {
    "stages": {
        "make": {
            "cmd": "true",
            "deps": ["code/a.py", "code/b.py", "folder"],
            "params": ["rate", "model.width"],
            "outs": ["made.npz", "table"],
        },
        "use": {"cmd": "true", "deps": ["code/a.py", "made.npz", "./code/b.py"]},
    }
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "folder/inside").mkdir(parents=True)
    for name in ("code/a.py", "code/b.py", "folder/one", "folder/inside/two", "made.npz"):
        (tmp_path / name).write_text(name)
    (tmp_path / "code/b.py").chmod(0o755)
    (tmp_path / "params.yaml").write_text("rate: 1.0e-05\nmodel: {width: 3}\n")
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump(STAGES))
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config").write_text("[core]\nno_scm = true\n")
    return tmp_path


def stages(folder: Path, plain: bool) -> dict[str, Any]:
    from dvc.repo import Repo

    repo = Repo(str(folder))
    if not plain:
        return {stage.name: stage for stage in repo.stage.collect()}
    with plain_paths():
        return {stage.name: stage for stage in repo.stage.collect()}


def test_paths_are_those_that_dvc_finds(folder: Path) -> None:
    from dvc import output

    usual = output.get_cloud_fs
    wanted, found = (stages(folder, plain) for plain in (False, True))
    assert output.get_cloud_fs is usual
    assert wanted.keys() == found.keys() == STAGES["stages"].keys()
    for name, stage in wanted.items():
        for attribute in ("deps", "outs"):
            known = getattr(found[name], attribute)
            for one, other in zip(getattr(stage, attribute), known, strict=True):
                assert (one.def_path, one.fs_path) == (other.def_path, other.fs_path)
                assert type(one.fs) is type(other.fs)


def test_a_path_elsewhere_is_left_to_dvc(folder: Path) -> None:
    from dvc import output
    from dvc.config import ConfigError

    with plain_paths():
        kind, _, found = output.get_cloud_fs({}, url="plain")
        assert (kind.protocol, found) == ("local", "plain")
        with pytest.raises(ConfigError, match="Unsupported URL type memory"):
            output.get_cloud_fs({}, url="memory://elsewhere/file")


def test_what_is_dumped_is_what_dvc_dumps(folder: Path) -> None:
    from dvc.stage.serialize import to_single_stage_lockfile

    wanted, found = (stages(folder, False) for _ in range(2))
    inputs = Inputs()
    for name, stage in wanted.items():
        for dep in stage.deps:
            dep.save()
        inputs.settle(found[name])
        for one, other in zip(stage.deps, found[name].deps, strict=True):
            assert one.dumpd() == other.dumpd()
        one, other = (to_single_stage_lockfile(each) for each in (stage, found[name]))
        assert {**one, "outs": None} == {**other, "outs": None}


def test_what_is_dumped_once_is_not_shared(folder: Path) -> None:
    (stage, *_) = stages(folder, True).values()
    Inputs().settle(stage)
    dep = stage.deps[0]
    dep.dumpd()["path"] = "another"
    assert dep.dumpd()["path"] == "code/a.py"


def test_json_is_yaml_to_dvc(folder: Path) -> None:
    from dvc.utils.serialize import parse_yaml

    content = {"schema": "2.0", "of": {"rate": 1e-05, "none": None, "yes": True, "é: #": ["01"]}}
    assert parse_yaml(to_yaml(content), path="dvc.lock") == content


def test_what_is_hashed_is_remembered_without_a_database(folder: Path) -> None:
    from dvc_data.hashfile import state

    usual = state.State
    repo = opened(folder, None)
    assert state.State is usual and isinstance(repo.state, usual)
    path = str(folder / "code/a.py")
    dep = next(d for d in stages(folder, True)["use"].deps if d.def_path == "code/a.py")
    dep.save()
    assert repo.state.get(path, repo.fs) == (None, None)
    repo.state.save(path, repo.fs, dep.hash_info)
    repo.state.close()
    assert repo.state.get(path, repo.fs)[1] == dep.hash_info
    many = {name: found for name, _, found in repo.state.get_many([path, "none"], repo.fs, {})}
    assert many == {path: dep.hash_info, "none": None}
    (folder / "code/a.py").write_text("something else")
    assert repo.state.get(path, repo.fs) == (None, None)
