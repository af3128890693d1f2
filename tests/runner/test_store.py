"""Whatever is damaged in the cache counts as absent: the next run makes it again, and mends it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from pipeline.runner import store
from tests.runner.project import Project
from tests.runner.test_kills import damaged, finished, outputs
from tests.tiers import quick

Damage = Callable[[bytes, random.Random], bytes]
DAMAGES: dict[str, Damage] = {
    "random bytes": lambda content, chance: chance.randbytes(len(content)),
    "lost": lambda *_: b"",
    "cut": lambda content, chance: content[: chance.randrange(len(content))],
}
UNTIL = "until=generate"
"""The first stage whose output is a folder."""

RAN = ["fetch", "train", "prune", "quantize", "schedule", "generate"]


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


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


@pytest.mark.parametrize(("place", "kind"), quick(1, product(PLACES, DAMAGES), ci=2))
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
    changed += [flipped(content, bit) for bit in range(8 * len(content) - 8)]
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
