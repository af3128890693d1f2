"""Content of MLflow's database, read from its tables: importing MLflow takes three seconds."""

import os
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from filelock import FileLock

from tests.runner.parent import Forked
from tests.runner.project import Project, clean_environment, processes_in


def tracking(project: Project) -> Path:
    return project.root / ".thimble" / "tracking"


def runs(project: Project) -> list[dict[str, Any]]:
    """List what MLflow knows of the runs of ``project`` that are not deleted, sorted by id."""
    with closing(sqlite3.connect(tracking(project) / "mlflow.db")) as database:
        (experiment,) = database.execute(
            "SELECT experiment_id FROM experiments WHERE name = 'thimble'"
        ).fetchone()
        about = dict(database.execute("SELECT key, value FROM experiment_tags"))
        tables = {"params": "params", "tags": "tags", "metrics": "latest_metrics"}
        of = {name: _of_runs(database, table) for name, table in tables.items()}
        history = _history(database)
        listed = database.execute(
            "SELECT run_uuid, status, artifact_uri FROM runs "
            "WHERE experiment_id = ? AND lifecycle_stage = 'active' ORDER BY run_uuid",
            (experiment,),
        ).fetchall()
    return [
        {
            "id": run,
            "status": status,
            **{name: found[run] for name, found in of.items()},
            "history": history[run],
            "artifacts": sorted(path.name for path in Path(urlparse(uri).path).glob("*")),
            "uri": uri,
            "experiment": about,
        }
        for run, status, uri in listed
    ]


def _of_runs(database: sqlite3.Connection, table: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for run, key, value in database.execute(f"SELECT run_uuid, key, value FROM {table}"):
        found[run][key] = value
    return found


def _history(database: sqlite3.Connection) -> dict[str, dict[str, list[list[float]]]]:
    found: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for run, key, step, value in database.execute(
        "SELECT run_uuid, key, step, value FROM metrics ORDER BY timestamp, step"
    ):
        found[run][key].append([step, value])
    return found


def spooled(project: Project) -> list[Path]:
    return list((tracking(project) / "spool").glob("*.json"))


def track(project: Project) -> subprocess.Popen[bytes]:
    """Log what is spooled."""
    with (project.root / "tracked").open("wb") as log:
        return Forked(
            [sys.executable, "-m", "pipeline.tracking"], "tracked",
            cwd=project.root, env=clean_environment(), stdout=log, stderr=log,
        )  # fmt: skip


@contextmanager
def nothing_logged(project: Project) -> Iterator[None]:
    """Spool runs with ``tracking=background`` meanwhile; their tracking is killed at the end."""
    locks = project.root / ".thimble" / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(str(locks / "tracking.lock")):
        yield
        for pid in trackers(project.root):
            os.kill(pid, 9)


def trackers(root: Path) -> list[int]:
    return processes_in(root, "pipeline.track")
