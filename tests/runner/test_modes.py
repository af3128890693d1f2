"""Whatever the umask: others can write to nothing that a command makes."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.runner.project import Project


def writable(*places: Path) -> list[str]:
    """What others may write to, at and below ``places``."""
    found = [*places, *(path for place in places for path in place.rglob("*"))]
    assert len(found) > 100
    kept = (path for path in found if not path.is_symlink())
    return sorted(str(path) for path in kept if path.stat().st_mode & stat.S_IWOTH)


@pytest.mark.ci
def test_runs_and_sweeps(project: Project) -> None:
    for path in (project.root, *project.root.rglob("*")):  # a checkout that all may write to
        path.chmod(path.stat().st_mode | stat.S_IWOTH)
    sweep = ("-m", "seed=1,2", "hydra/launcher=local", "until=generate", "tracking=wait")
    for words in (("until=generate",), sweep):
        process = project.start(*words, umask=0)
        _, err = process.communicate()
        assert process.returncode == 0, err
    made = [project.root / name for name in ("outputs", "multirun", ".thimble")]
    assert writable(*made) == []


def test_what_the_umask_takes_from_others_stays_taken(project: Project) -> None:
    process = project.start("until=fetch", "hydra.run.dir=here", umask=0o077)
    process.communicate()
    assert process.returncode == 0
    assert not (project.root / "here").stat().st_mode & 0o077
    assert not (project.root / "here" / "data").stat().st_mode & 0o077
