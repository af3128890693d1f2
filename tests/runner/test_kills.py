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
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from pipeline.home import STAGES
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


def undisturbed(project: Project) -> tuple[dict[str, float], Outputs]:
    """The seconds that each part of a run takes, and what it makes."""
    begin = time.monotonic()
    folder = finished(project, "undisturbed")
    stages = json.loads((folder / "result.json").read_text())["stages"]
    took = {name: stage["seconds"] for name, stage in stages.items()}
    rest = time.monotonic() - begin - sum(took.values()) - END_SECONDS
    assert not any(stage["cached"] for stage in stages.values())
    return {"start": max(rest, 0.1), **took, "end": END_SECONDS}, outputs(folder)


def killed(
    project: Project, chance: random.Random, seconds: dict[str, float], part: str, folder: str
) -> str:
    """Start the command and kill it in ``part``; returns what was killed, "" if it had ended. Its
    output goes to a file: what outlives it must not hold a pipe of this test."""
    log, cache = project.root.parent / "printed", Path(project.env["THIMBLE_HOME"]) / "cache"
    env = {**clean_environment(), "FAKE_LOG": str(project.root / "log"), **project.env}
    words = [sys.executable, "run.py", "tracking=none", f"hydra.run.dir={folder}"]
    with log.open("wb") as stream:
        process = subprocess.Popen(words, cwd=project.root, env=env, stdout=stream, stderr=stream)
    writing = part in STAGES and chance.random() < 0.3
    victim = "run" if writing else chance.choice(VICTIMS)
    delay = chance.uniform(0, WRITE_SECONDS if writing else seconds[part])
    before = PARTS[PARTS.index(part) - 1]
    begun = {"start": "", STAGES[0]: "^Thimble "}.get(part, rf"^  {before} +(\d|cached)")
    while process.poll() is None and not re.search(begun, log.read_text(), re.M):
        time.sleep(0.002)
    known = set(cache.rglob("*"))
    while writing and process.poll() is None and set(cache.rglob("*")) <= known:
        time.sleep(0.0005)  # until a file appears there, a half-written one too
    time.sleep(delay)
    if process.poll() is not None:
        return ""
    stages: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                stages += [child] if any("stages." in word for word in child.cmdline()) else []
    victim = "run" if victim == "stage" and not stages else victim
    if victim != "stage":
        process.kill()
    for child in stages if victim != "run" else []:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    if process.wait() and victim == "stage":
        said = log.read_text()
        assert "was killed by signal 9: run it again" in said and "Traceback" not in said, said
    return WRITING if writing else victim


def damaged(home: Path) -> list[str]:
    """The cached files whose bytes are not what their names say; unfinished ones have others."""
    wrong = []
    for path in (home / "cache" / "files" / "md5").glob("??/*"):
        if re.fullmatch(r"[0-9a-f]{30}(\.dir)?", path.name):
            digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            if path.parent.name + path.name.removesuffix(".dir") != digest:
                wrong.append(path.name)
    return wrong


@pytest.mark.parametrize("left", quick(1, ["half a note", "half a lock"]))
def test_what_a_kill_can_leave(project: Project, left: str) -> None:
    """States that the random kills below found: each once stopped all later runs."""
    good = outputs(finished(project, "again", "until=fetch"))
    (note,) = (path for path in (project.root / ".thimble/notes").rglob("*") if path.is_file())
    text = note.read_bytes()
    if left == "half a lock":
        (project.root / "again/.dvc/tmp").mkdir()
        (project.root / "again/.dvc/tmp/rwlock").write_text('{"read": ')
    else:
        note.rename(note.parent / ".half.tmp").write_bytes(text[: len(text) // 2])
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


@pytest.mark.parametrize("rounds", quick(0, [1, 6], ci=1))
def test_random_kills(project: Project, rounds: int) -> None:
    """Odd rounds use one folder again and again, even ones a new one each time."""
    chance = random.Random(seed := int(os.environ.get("THIMBLE_KILLS_SEED", "3")))
    project.env = {"THIMBLE_HOME": str(project.root / "undisturbed-home")}
    seconds, good = undisturbed(project)
    kills: list[tuple[str, str]] = []
    for number in range(1, rounds + 1):
        home = project.root / f"home{number}"
        project.env["THIMBLE_HOME"] = str(home)
        for part in PARTS if rounds > 1 else ("train", "schedule", "build", "end"):
            folder = f"again{number}" if number % 2 else f"new{number}-{part}"
            victim = killed(project, chance, seconds, part, folder)
            kills += [(part, victim)] if victim else []
        assert outputs(finished(project, folder)) == good, f"round {number}, seed {seed}"
        assert not damaged(home), f"round {number}, seed {seed}"
    nothing_outlives(project)
    assert rounds == 1 or {part for part, _ in kills} >= set(STAGES)
    assert rounds == 1 or {victim for _, victim in kills} == {*VICTIMS, WRITING}
