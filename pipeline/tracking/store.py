"""The MLflow database: parameters, metrics and artifacts of a run; jobs under their sweep's run.

Imported by the tracking process only.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DO_NOT_TRACK"] = "true"

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.entities import Run as MlflowRun

from pipeline.config import load
from pipeline.metrics import METRICS
from pipeline.tracking.checkout import patch
from pipeline.tracking.entry import KILLED, Entry

EXPERIMENT = "thimble"
DATABASE = "mlflow.db"
ARTIFACTS = (
    "params.yaml",
    "versions.yaml",
    "environment.json",
    "dvc.yaml",
    "dvc.lock",
    "hashes.json",
    "result.json",
    "schedule.json",
    "plan.json",
    "generated",
    "size.json",
    "device.json",
    "metrics.json",
    "training.csv",
    "report.html",
    "multirun.yaml",
    "table.csv",
    "table.json",
    "pareto.png",
)
BATCH = 100
"""Parameters that one call takes."""

ENDED = {"ok": "FINISHED", "infeasible": "FINISHED", "failed": "FAILED"}


def uri(folder: Path) -> str:
    """The tracking URI of the database in ``folder``, absolute: it is used from any folder."""
    return f"sqlite:///{folder.absolute() / DATABASE}"


class Store:
    """The database in ``folder``, made when absent. One process at a time: the caller holds a lock.

    Every run carries its spool entry's name as a tag, so that logging an entry again, after a
    kill, completes the same run.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / DATABASE).exists():
            _make(folder)
        self.client = MlflowClient(uri(folder))
        found = self.client.get_experiment_by_name(EXPERIMENT)
        self.experiment: str = found.experiment_id if found else _experiment(self.client, folder)

    def log(self, entry: Entry) -> str:
        """Log ``entry`` as a run and return its id; a job's run is nested in its sweep's."""
        tag = ("sweep", entry.folder) if entry.parent else ("entry", entry.name)
        extra = {}
        if entry.sweep:
            extra["mlflow.parentRunId"] = self._run("sweep", entry.sweep, {}, entry.begin)
        run = self._run(*tag, extra, entry.begin)
        tags = {"thimble.status": entry.result["status"], "thimble.run_dir": entry.folder}
        named = [RunTag(*tag) for tag in (tags | entry.tags).items()]
        self.client.log_batch(run, metrics=list(_metrics(entry)), tags=named)
        params = list(_params(entry))
        for first in range(0, len(params), BATCH):
            self.client.log_batch(run, params=params[first : first + BATCH])
        for name in ARTIFACTS:
            path = Path(entry.folder) / name
            if path.is_dir():
                self.client.log_artifacts(run, str(path), name)
            elif path.exists():
                self.client.log_artifact(run, str(path))
        if entry.tags.get("code_dirty") == "true":
            edits = patch(Path(entry.folder), entry.tags["code_version"])
            self.client.log_text(run, edits, "code.patch")
        killed = entry.result.get("error") in ("interrupted", KILLED)
        ended = "KILLED" if killed else ENDED[entry.result["status"]]
        self.client.set_terminated(run, ended, end_time=round(entry.end * 1000))
        return run

    def _run(self, tag: str, value: str, extra: Mapping[str, str], begin: float) -> str:
        """The id of the run with ``thimble.<tag>`` = ``value``, made if there is none."""
        quoted = value.replace("'", "")
        found: list[MlflowRun] = self.client.search_runs(
            [self.experiment], f"tags.`thimble.{tag}` = '{quoted}'", max_results=1
        )
        if found:
            return str(found[0].info.run_id)
        made = self.client.create_run(
            self.experiment,
            start_time=round(begin * 1000),
            tags={f"thimble.{tag}": quoted, **extra},
            run_name="/".join(Path(value).parts[-2:]) if tag == "sweep" else None,
        )
        return str(made.info.run_id)


def _make(folder: Path) -> None:
    """Make the database under another name: MLflow creates its tables in hundreds of steps, and one
    that was killed between two of them could never be opened again."""
    unfinished = folder / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    _experiment(MlflowClient(uri(unfinished)), folder)
    (unfinished / DATABASE).rename(folder / DATABASE)
    shutil.rmtree(unfinished)


def _experiment(client: MlflowClient, folder: Path) -> str:
    artifacts = (folder.absolute() / "artifacts").as_uri()
    return client.create_experiment(EXPERIMENT, artifact_location=artifacts)


def _metrics(entry: Entry) -> Iterator[Metric]:
    for name in METRICS:
        value = entry.result.get(name)
        if isinstance(value, int | float):
            yield Metric(name, float(value), round(entry.end * 1000), 0)


def _params(entry: Entry) -> Iterator[Param]:
    """The resolved config, one parameter a key, and the tools' versions, ``versions.compiler``."""
    path = Path(entry.folder) / "params.yaml"
    if path.exists():
        content = {k: v for k, v in load(path).items() if k not in ("code", "paper")}
        if (versions := path.with_name("versions.yaml")).exists():  # the disk was not full
            content["versions"] = load(versions)
        if (environment := path.with_name("environment.json")).exists():
            content["environment"] = load(environment)
        for key, value in _flat(content):
            yield Param(key, str(value)[:500])


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
