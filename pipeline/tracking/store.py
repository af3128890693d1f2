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

import mlflow
from mlflow import MlflowClient
from mlflow.entities import LoggedModelStatus, Metric, Param, RunTag
from mlflow.entities import Run as MlflowRun

from pipeline.config import load
from pipeline.errors import ThimbleError, said
from pipeline.tracking import data, model, page
from pipeline.tracking.checkout import recorded
from pipeline.tracking.entry import KILLED, Entry
from pipeline.tracking.figures import curves, known, missing
from pipeline.tracking.files import kept
from pipeline.tracking.params import params

EXPERIMENT = "thimble"
DATABASE = "mlflow.db"
OWN = ("tracking=", "output=")
"""Overrides that make no other run."""

LONGEST_TAG = 5000
"""Characters that MLflow takes."""

BATCH = 100
"""Parameters or metrics that one call takes."""

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
        mlflow.set_tracking_uri(uri(folder))
        found = self.client.get_experiment_by_name(EXPERIMENT)
        self.experiment: str = found.experiment_id if found else _experiment(self.client, folder)
        for key, value in page.tags(self.experiment).items():
            self.client.set_experiment_tag(self.experiment, key, value)

    def log(self, entry: Entry) -> str:
        """Log ``entry`` as a run and return its id; a job's run is nested in its sweep's."""
        tag = ("sweep", entry.folder) if entry.parent else ("entry", entry.name)
        extra = {}
        if entry.sweep:
            extra["mlflow.parentRunId"] = self._run("sweep", entry.sweep, {}, entry.begin)
        run = self._run(*tag, extra, entry.begin)
        if entry.title:
            self.client.update_run(run, name=entry.title)
        folder = Path(entry.folder)
        config = load(path) if (path := folder / "params.yaml").is_file() else {}
        reasons = {} if entry.parent else missing(entry.result, config)
        made = self._network(run, folder, config, reasons) if config and not entry.parent else None
        tags = _tags(entry, reasons).items()
        self.client.log_batch(run, tags=[RunTag(key, value[:LONGEST_TAG]) for key, value in tags])
        metrics, chosen = list(_metrics(entry, made)), _params(entry, config)
        for first in range(0, max(len(metrics), len(chosen)), BATCH):
            part = slice(first, first + BATCH)
            self.client.log_batch(run, metrics=metrics[part], params=chosen[part])
        for path in kept(folder):
            place = path if path.is_dir() else path.parent
            log = self.client.log_artifacts if path.is_dir() else self.client.log_artifact
            log(run, str(path), "/".join(place.relative_to(folder).parts))
        killed = entry.result.get("error") in ("interrupted", KILLED)
        ended = "KILLED" if killed else ENDED[entry.result["status"]]
        self.client.set_terminated(run, ended, end_time=round(entry.end * 1000))
        return run

    def _network(
        self, run: str, folder: Path, config: Mapping[str, Any], reasons: dict[str, str]
    ) -> str | None:
        """Log the data set and, unless ``reasons`` say why not, the network; returns its id. What
        cannot be logged is one more of ``reasons``: the run itself is."""
        of_run = f"source_run_id = '{run}'"
        for found in self.client.search_logged_models([self.experiment], of_run):
            if found.status == LoggedModelStatus.READY:  # and the process was killed after it
                return str(found.model_id)
            self.client.delete_logged_model(found.model_id)
        with mlflow.start_run(run_id=run):
            for name, log in (("data", data.log), ("model", model.log)):
                try:
                    if name not in reasons:
                        made = log(folder, config)
                except ThimbleError as error:
                    reasons[name] = str(error)
                except Exception as error:  # a damaged file, or MLflow's
                    reasons[name] = said(error)
        return None if "model" in reasons else made

    def _run(self, tag: str, value: str, extra: Mapping[str, str], begin: float) -> str:
        """Return the id of the run with ``thimble.<tag>`` = ``value``, made if there is none."""
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


def _tags(entry: Entry, reasons: Mapping[str, str]) -> dict[str, str]:
    """Return tags for what became of the run, why metrics are missing, and its source in MLflow."""
    tags = {"thimble.status": str(entry.result["status"]), "thimble.run_dir": entry.folder}
    tags["mlflow.source.name"] = "run.py"
    if "code_version" in entry.tags:
        tags["mlflow.source.git.commit"] = entry.tags["code_version"]
    if error := entry.result.get("error"):
        tags["error"] = str(error)
    tags |= {f"missing.{name}": reason for name, reason in reasons.items()}
    return tags | {"mlflow.note.content": _description(entry, reasons)} | entry.tags


def _description(entry: Entry, reasons: Mapping[str, str]) -> str:
    """Return the command that makes the run again, and what it lacks: MLflow cuts long tags off."""
    words = [word for word in entry.result.get("overrides", ()) if not word.startswith(OWN)]
    command = ["python run.py", *(["-m"] if entry.parent else []), *words]
    lines = [f"- no {name}: {reason}" for name, reason in reasons.items()]
    return "\n".join([f"`{' '.join(command)}`", "", *lines]).strip()


def _metrics(entry: Entry, made: str | None) -> Iterator[Metric]:
    """Yield the figures of the run's end, those of the model ``made`` too, and the curves of its
    training."""
    when = round(entry.end * 1000)
    for name, value in known(entry.result).items():
        yield Metric(name, value, when, 0, model_id=made)
    for name, value, step in curves(Path(entry.folder)):
        yield Metric(name, value, when, step)


def _params(entry: Entry, config: Mapping[str, Any]) -> list[Param]:
    tools = recorded(Path(entry.folder))["versions"]
    found = params(config, tools, entry.result.get("overrides", ()))
    return [Param(key, value) for key, value in found.items()] if config else []
