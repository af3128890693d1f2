"""The same command in two fresh clones gives the same bytes: weights, plan, C, ELF and the rest.

What should not matter differs: the clone's path, its cache, home, locale, time zone, umask and
hash seed. Training is the real recipe in small, every phase and every distortion of images.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.home import ROOT, STAGES
from pipeline.tracking.checkout import recorded as origin
from tests.runner.project import clean_environment
from tests.runner.test_kills import outputs

QUICK = ("train=quick", *(f"train.{name}_epochs=2" for name in ("float", "quantized", "frozen")))
PAPER = ("train=paper", "train.trials=[2,1,1]", "train.teacher_epochs=1", "train.copies=1",
         *(f"train.{name}_epochs=2" for name in ("float", "quantized", "frozen")))  # fmt: skip
COMMAND = ("data=synthetic", "target.images=3", "tracking=none", "output=json")


def clone(place: Path) -> Path:
    """A clone of this checkout, with the files of the working tree as they are now."""
    git = ["git", "-c", "advice.detachedHead=false"]
    subprocess.run([*git, "clone", "-q", "--no-hardlinks", str(ROOT), str(place)], check=True)
    words = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    names = listed.stdout.split("\0")[:-1]
    for name in names:
        (place / name).unlink(missing_ok=True)
        if (ROOT / name).is_file():  # it may have been deleted
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    return place


def run(place: Path, umask: int, env: dict[str, str], *args: str) -> Path:
    done = subprocess.run(
        [sys.executable, "run.py", *COMMAND, *args],
        cwd=place, env={**clean_environment(), **env}, umask=umask, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert not any(stage["cached"] for stage in result["stages"].values())
    return Path(result["run_dir"])


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [QUICK, PAPER], ids=["quick", "paper"])
def test_two_fresh_clones_give_the_same_bytes(tmp_path: Path, recipe: tuple[str, ...]) -> None:
    if not shutil.which("avr-gcc"):
        pytest.skip("needs avr-gcc: make setup")
    here = {"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "1", "HOME": str(tmp_path)}
    there = {"LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "2"}
    there |= {"COLUMNS": "40", "THIMBLE_HOME": str(tmp_path / "a home elsewhere")}
    one = run(clone(tmp_path / "one"), 0o022, here, *recipe)
    two = run(clone(tmp_path / "at another place" / "two"), 0o077, there, *recipe)
    found = outputs(one)
    assert outputs(two) == found
    assert {"weights.npz", "plan.json", "generated/model.c", "build/firmware.elf"} <= set(found)
    assert set(found["dvc.lock"]) == set(STAGES)
    assert origin(two)["made"] == origin(one)["made"]
    for path in (one / "generated").rglob("*.[ch]"):
        assert not any(str(place) in path.read_text() for place in (tmp_path, ROOT)), path
