"""SIGKILL at a random moment costs nothing: the same command again gives the undisturbed hashes.

A round begins with an empty cache and aims at each part of a run in turn: before the first stage,
in each stage (its process, or what the runner does around it: hashing, writing the cache), after
the last. So each kill meets a cache filled by the ones before. The moments are random, seeded.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from pipeline.home import ROOT, STAGES
from tests.runner.project import Project, clean_environment, nothing_outlives
from tests.tiers import quick

PARTS = ("start", *STAGES, "end")
END_SECONDS = 0.3
"""About what a run does after its last stage: dvc.lock, result.json, the process's end."""

VICTIMS = ("run", "stage", "both")
WRITING = "run, writing the cache"
WRITE_SECONDS = 0.004
"""About what moving a small output into the cache and noting the run takes."""

Outputs = dict[str, Any]


@dataclass
class Undisturbed:
    """What an undisturbed run took and made."""

    seconds: dict[str, float]
    outputs: Outputs


@dataclass
class Started:
    """A command whose output goes to a file: what outlives it must not hold a pipe of this test."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, part: str) -> bool:
        """Until ``part`` begins; False when the command ended before."""
        before = PARTS[PARTS.index(part) - 1]
        begun = {"start": "", STAGES[0]: "^Thimble "}.get(part, rf"^  {before} +(\d|cached)")
        while not re.search(begun, self.log.read_text(), re.M):
            if self.process.poll() is not None:
                return False
            time.sleep(0.002)
        return True

    def wait_for_write(self, cache: Path) -> None:
        """Until a file appears in ``cache``, a half-written one too, or the command ends."""
        before = set(cache.rglob("*"))
        while set(cache.rglob("*")) <= before and self.process.poll() is None:
            time.sleep(0.0005)

    def kill(self, victim: str) -> str:
        """Kill run.py, its stage's processes or both; returns what could really be killed."""
        stages: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if any("stages." in word for word in child.cmdline()):
                        stages.append(child)
        if victim == "stage" and not stages:
            victim = "run"
        if victim != "stage":
            self.process.kill()
        if victim != "run":
            for child in stages:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        self.process.wait()
        return victim


def start(project: Project, folder: str, *args: str) -> Started:
    log = project.root.parent / "printed"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "run.py", "tracking=none", f"hydra.run.dir={folder}", *args],
            cwd=project.root,
            env={**clean_environment(), "FAKE_LOG": str(project.root / "log"), **project.env},
            stdout=stream,
            stderr=stream,
        )
    return Started(process, log)


def finished(project: Project, folder: str, *args: str) -> Path:
    run = project.run(f"hydra.run.dir={folder}", *args)
    assert run.code == 0, run.err
    return project.root / folder


def outputs(folder: Path) -> Outputs:
    """Each output's SHA-256, and dvc.lock: the hashes of all that went in and came out."""
    stages = yaml.safe_load((folder / "dvc.yaml").read_text())["stages"].values()
    found: Outputs = {"dvc.lock": yaml.safe_load((folder / "dvc.lock").read_text())["stages"]}
    for place in (folder / out for stage in stages for out in stage["outs"]):
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file():
                name = path.relative_to(folder).as_posix()
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(found) > 1
    return found


def undisturbed(project: Project, *args: str) -> Undisturbed:
    begin = time.monotonic()
    folder = finished(project, "undisturbed", *args)
    result = json.loads((folder / "result.json").read_text())
    took = {name: stage["seconds"] for name, stage in result["stages"].items()}
    rest = time.monotonic() - begin - sum(took.values()) - END_SECONDS
    seconds = {"start": max(rest, 0.1), **took, "end": END_SECONDS}
    assert not any(stage["cached"] for stage in result["stages"].values())
    return Undisturbed(seconds, outputs(folder))


def killed(
    project: Project, chance: random.Random, good: Undisturbed, part: str, folder: str, *args: str
) -> str:
    """Start the command and kill it in ``part``; returns what was killed, "" if it had ended."""
    started = start(project, folder, *args)
    writing = part in STAGES and chance.random() < 0.3
    victim = "run" if writing else chance.choice(VICTIMS)
    delay = chance.uniform(0, WRITE_SECONDS if writing else good.seconds[part])
    if started.wait_for(part):
        if writing:
            started.wait_for_write(Path(project.env["THIMBLE_HOME"]) / "cache")
        time.sleep(delay)
    if started.process.poll() is not None:
        return ""
    victim = started.kill(victim)
    if writing:
        return WRITING
    if victim == "stage" and started.process.returncode:
        said = started.log.read_text()
        assert re.search(r"was killed by signal 9: run it again", said), said
        assert "Traceback" not in said
    return victim


def damaged(home: Path) -> list[str]:
    """The cached files whose bytes are not what their names say; unfinished ones have others."""
    wrong = []
    for path in (home / "cache" / "files" / "md5").glob("??/*"):
        if re.fullmatch(r"[0-9a-f]{30}(\.dir)?", path.name):
            digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            if path.parent.name + path.name.removesuffix(".dir") != digest:
                wrong.append(path.name)
    return wrong


@pytest.mark.parametrize(
    "left", quick(1, ["damaged note", "half a lock", "no note", "half a note"])
)
def test_what_a_kill_can_leave(project: Project, left: str) -> None:
    """States that the random kills below found, or nearly: each once stopped all later runs."""
    good = outputs(finished(project, "again", "until=fetch"))
    (note,) = (path for path in (project.root / ".thimble/notes").rglob("*") if path.is_file())
    text = note.read_bytes()
    if left == "half a lock":
        (project.root / "again/.dvc/tmp").mkdir()
        (project.root / "again/.dvc/tmp/rwlock").write_text('{"read": ')
    elif left == "damaged note":
        note.write_bytes(b"\x00" * len(text))
    else:
        note.unlink()
    if left == "half a note":
        (note.parent / ".half.tmp").write_bytes(text[: len(text) // 2])
    project.ran()
    assert outputs(finished(project, "again", "until=fetch")) == good
    assert project.ran() == ([] if left == "half a lock" else ["fetch"])
    assert note.read_bytes() == text


@pytest.mark.ci
def test_an_orphan_is_ended_before_its_folder_is_used_again(project: Project) -> None:
    """Killed with run.py alone, a stage lives on for a second: here one that cannot notice."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folder = finished(project, "again", "until=fetch")
    environment = {**os.environ, "THIMBLE_RUNNER": str(dead.pid)}
    with subprocess.Popen(["sleep", "60"], cwd=folder, env=environment) as orphan:
        finished(project, "again", "until=fetch")
        left = orphan.poll()
        orphan.kill()
    assert left == -9


@pytest.mark.ci
def test_four_kills(project: Project) -> None:
    chance = random.Random(3)
    project.env = {"THIMBLE_HOME": str(project.root / "undisturbed-home")}
    good = undisturbed(project)
    project.env["THIMBLE_HOME"] = str(project.root / "home")
    for part in ("train", "schedule", "build", "end"):
        killed(project, chance, good, part, "again")
    assert outputs(finished(project, "again")) == good.outputs
    assert not damaged(project.root / "home")
    nothing_outlives(project)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sixty_random_kills(tmp_path: Path) -> None:
    """The real stages. Odd rounds use one folder again and again, even ones a new one each time."""
    project = real_project(tmp_path / "project")
    args = ("data=synthetic", "train=smoke")
    seed = int(os.environ.get("THIMBLE_KILLS_SEED", "0"))
    chance = random.Random(seed)
    project.env = {"THIMBLE_HOME": str(tmp_path / "undisturbed-home")}
    good = undisturbed(project, *args)
    kills: list[tuple[str, str]] = []
    number = 0
    while len(kills) < 60:
        home = tmp_path / f"home{number}"
        project.env["THIMBLE_HOME"] = str(home)
        for part in PARTS:
            folder = f"again{number}" if number % 2 else f"new{number}-{part}"
            victim = killed(project, chance, good, part, folder, *args)
            kills += [(part, victim)] if victim else []
        again = finished(project, folder, *args)
        assert outputs(again) == good.outputs, f"round {number}, seed {seed}"
        assert not damaged(home), f"round {number}, seed {seed}"
        number += 1
        assert number < 12, kills
    nothing_outlives(project)
    assert {part for part, _ in kills} >= set(STAGES)
    assert {victim for _, victim in kills} == {*VICTIMS, WRITING}
    print(f"{len(kills)} kills: {kills}")


def real_project(root: Path) -> Project:
    """A copy of this project: nobody edits it during the test."""
    for name in ("conf", "pipeline", "stages", "firmware"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("run.py", ".dvcignore", "dvc.yaml"):
        shutil.copy(ROOT / name, root / name)
    project = Project.__new__(Project)
    project.root, project.env = root, {}
    return project
