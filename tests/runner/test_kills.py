"""SIGKILL at a random moment costs nothing: the same command again gives the undisturbed hashes.

A round begins with an empty cache and aims at each part of a run in turn: before the first stage,
in each stage (its process, or what the runner does around it: hashing, writing the cache), after
the last. So each kill meets a cache filled by the ones before. The moments are random, seeded.

Whatever is damaged in the cache counts as absent: the next run makes it again, and mends it.
"""

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
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from pipeline.home import STAGES
from pipeline.runner import store
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
    ended = {"start": "^Thimble "}.get(part, rf"^  {part} +(\d|cached)")
    while process.poll() is None and not re.search(begun, log.read_text(), re.M):
        time.sleep(0.002)
    known = set(cache.rglob("*"))
    while writing and process.poll() is None and set(cache.rglob("*")) <= known:
        time.sleep(0.0005)  # until a file appears there, a half-written one too
    until = time.monotonic() + delay  # or when the part is over, however long it once took
    while time.monotonic() < until and not re.search(ended, log.read_text(), re.M):
        time.sleep(0.0005)
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


@pytest.mark.slow
def test_random_kills(project: Project) -> None:
    """Odd rounds use one folder again and again, even ones a new one each time."""
    chance = random.Random(seed := int(os.environ.get("THIMBLE_KILLS_SEED", "3")))
    project.env = {"THIMBLE_HOME": str(project.root / "undisturbed-home")}
    seconds, good = undisturbed(project)
    kills: list[tuple[str, str]] = []
    for number in range(1, 7):
        home = project.root / f"home{number}"
        project.env["THIMBLE_HOME"] = str(home)
        for part in PARTS:
            folder = f"again{number}" if number % 2 else f"new{number}-{part}"
            victim = killed(project, chance, seconds, part, folder)
            kills += [(part, victim)] if victim else []
        assert outputs(finished(project, folder)) == good, f"round {number}, seed {seed}"
        assert not damaged(home), f"round {number}, seed {seed}"
    nothing_outlives(project)
    assert {part for part, _ in kills} >= set(STAGES)
    assert {victim for _, victim in kills} == {*VICTIMS, WRITING}


Damage = Callable[[bytes, random.Random], bytes]
DAMAGES: dict[str, Damage] = {
    "random bytes": lambda content, chance: chance.randbytes(len(content)),
    "lost": lambda *_: b"",
    "cut": lambda content, chance: content[: chance.randrange(len(content))],
}
UNTIL = "until=generate"
"""The first stage whose output is a folder."""

RAN = ["fetch", "train", "prune", "quantize", "schedule", "generate"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose cache has every stage up to ``UNTIL``; a copy of it is in ``kept``."""
    project = Project(tmp_path_factory.mktemp("made") / "project")
    finished(project, "good", UNTIL)
    shutil.copytree(project.root / ".thimble", project.root / "kept")
    return project


def spoilt(project: Project, place: str, damage: Damage, seed: int) -> None:
    """The cache as it was at first, but with every file below ``place`` damaged."""
    shutil.rmtree(project.root / ".thimble")
    shutil.copytree(project.root / "kept", project.root / ".thimble")
    chance = random.Random(seed)
    files = (project.root / ".thimble" / place).rglob("*")
    for path in sorted(path for path in files if path.is_file()):
        mode = path.stat().st_mode
        path.chmod(0o644)
        if content := damage(path.read_bytes(), chance):
            path.write_bytes(content)
            path.chmod(mode)
        else:
            path.unlink()
    project.ran()


PLACES = ("cache/files", "notes", "cache/runs")


@pytest.mark.parametrize(("place", "kind"), quick(0, product(PLACES, DAMAGES), ci=2))
def test_all_of_a_damaged_cache_is_made_again_once(made: Project, place: str, kind: str) -> None:
    good = outputs(made.root / "good")
    spoilt(made, place, DAMAGES[kind], seed=1)
    if place == "cache/runs":  # DVC's own notes
        shutil.rmtree(made.root / ".thimble/notes")
    assert outputs(finished(made, "again", UNTIL)) == good
    assert made.ran() == RAN
    assert not damaged(made.root / ".thimble")
    assert outputs(finished(made, "again", UNTIL)) == good
    assert made.ran() == [], "it is mended"


@pytest.mark.parametrize(
    "left", quick(1, ["a folder in its place", "a file in its folder's place"])
)
def test_a_note_that_is_no_file(made: Project, left: str) -> None:
    spoilt(made, "notes", lambda content, _: content, seed=1)
    note = fetched(made)
    note.unlink()
    if left == "a folder in its place":
        note.mkdir()
        (note / "inside").touch()
    else:
        shutil.rmtree(note.parent)
        note.parent.write_bytes(b"")
    finished(made, "again", "until=fetch")
    assert made.ran() == ["fetch"] and note.is_file()


def fetched(project: Project) -> Path:
    """The note of the stage ``fetch``."""
    files = (path for path in (project.root / ".thimble/notes").rglob("*") if path.is_file())
    (note,) = (path for path in files if b"stages.fetch" in path.read_bytes())
    return note


def test_no_damage_to_a_note_is_taken_for_one(made: Project) -> None:
    """Cuts, each bit of a note, and random bytes."""
    spoilt(made, "notes", lambda content, _: content, seed=1)
    note = fetched(made)
    content, key = note.read_bytes(), note.name
    entry = store.read(content, key)
    assert entry is not None and entry["cmd"] == "python -m stages.fetch"
    assert store.written(key, entry) == content
    assert store.read(content, "0" * 32) is None, "another stage's note"
    chance = random.Random(2)
    changed = [content[:cut] for cut in range(0, len(content) - 1, 7)]
    number, size = int.from_bytes(content, "little"), len(content)
    changed += [(number ^ 1 << bit).to_bytes(size, "little") for bit in range(8 * size - 8)]
    changed += [chance.randbytes(chance.randrange(2 * len(content))) for _ in range(300)]
    outs = [[{"md5": "0" * 31}], [{"md5": "../" * 10 + "ab", "path": "x"}], 3]
    changed += [store.written(key, {"outs": each}) for each in outs]
    assert [store.read(each, key) for each in changed] == [None] * len(changed)


def test_a_list_that_leads_out_of_its_folder_is_damaged(tmp_path: Path) -> None:
    """Whoever writes to a shared cache could have other files overwritten by it."""
    place, outside = tmp_path / "list", ("../../outside", "/outside", "inside/../../../outside")
    for relative, taken in (("model.c", True), *((path, False) for path in outside)):
        place.write_text(json.dumps([{"md5": "0" * 32, "relpath": relative}]))
        assert (store.listed(place) is not None) == taken
    place.write_text(json.dumps([{"md5": "../../../outside", "relpath": "model.c"}]))
    assert store.listed(place) is None


VANISHES = """
find = store.Store.find

def vanishing(self, key):
    entry = find(self, key)
    for _, oid in self.files(entry) if entry else ():
        self._place(oid).unlink(missing_ok=True)
    return entry

store.Store.find = vanishing
"""
"""Another run, which removes what it has found damaged."""


@pytest.mark.ci
def test_what_goes_between_finding_and_checking_out_is_made_again(project: Project) -> None:
    good = outputs(finished(project, "good", "until=train"))
    path = project.root / "pipeline" / "runner" / "stage.py"
    path.write_text(path.read_text() + VANISHES)
    project.ran()
    assert outputs(finished(project, "again", "until=train")) == good
    assert project.ran() == ["fetch", "train"]
