"""The wheel: one name in site-packages, and a command that works in any folder."""

import json
import os
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from pipeline.home import ROOT
from tests.programs import ran, said, written
from tests.runner.project import clean_environment

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
MAIN = ("hardware=arduino", "strategy=herringbone", "data=synthetic", "train=smoke")


def installed(folder: Path) -> Path:
    """Make the environment of a user: what the project depends on, and the wheel of its source."""
    pip = [sys.executable, "-m", "pip"]
    source = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    said(source, ROOT)
    (archive,) = folder.glob("*.tar.gz")
    wheel = [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, archive]
    said(wheel)
    (built,) = folder.glob(f"*-{VERSION}-*.whl")
    files = zipfile.ZipFile(built).namelist()
    assert {name.partition(".dist-info/")[2] for name in files} >= {"licenses/LICENSE"}, files
    assert len({name.partition("/")[0] for name in files}) == 2 and "thimble/run.py" in files
    made = folder / "environment"
    venv.create(made, with_pip=False)
    packages = made / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    python = str(made / "bin" / "python")
    said([*pip, "--python", python, "install", "-q", "--no-deps", "--no-index", str(built)])
    return made / "bin"


@pytest.mark.slow
def test_the_main_command_where_it_is_installed(tmp_path: Path) -> None:
    programs, empty = installed(tmp_path), tmp_path / "empty"
    board = (ROOT / "conf" / "hardware" / "arduino.yaml").read_text()
    written(empty, {"conf/hardware/mine.yaml": f"{board}sram_bytes: 4096\n"})
    env = {**clean_environment(), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def run(*words: str, code: int = 0) -> str:
        done = ran(words, empty, env=env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n\n## {VERSION} (" in (ROOT / "CHANGELOG.md").read_text()
    assert run("thimble", "--version") == f"Thimble {VERSION}\n"
    assert "arduino" in run("thimble", "doctor")
    found = json.loads(run("thimble", *MAIN, "output=json", "tracking=wait"))
    assert found["status"] == "ok" and found["sram_bytes"] <= 2048
    assert Path(found["run_dir"]).is_relative_to(empty / "outputs")
    assert (empty / ".thimble" / "cache").is_dir()
    own = json.loads(run("thimble", *MAIN, "hardware=mine", "until=schedule", "output=json"))
    schedule = json.loads((Path(own["run_dir"]) / "schedule.json").read_text())
    assert schedule["available_bytes"] == 4096
    evil = "defaults: [torch]\nfactory: subprocess:getoutput\nkwargs: {cmd: touch pwned}\n"
    written(empty, {"conf/model/evil.yaml": evil})
    run("thimble", "model=evil", "model.input_shape=[1,1,1]", code=1)
    assert not list(empty.rglob("pwned"))
    run("python", "-c", "from thimble import Predictor")
    assert not (empty / "mlruns").exists()
