"""A tracked run, by what a person calls it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from pipeline.errors import ThimbleError
from pipeline.tracking import spool
from pipeline.words import MORE


def artifacts(run: str) -> Path:
    """Return the folder of the artifacts of ``run``: an MLflow id, the beginning of one, or the
    name of the run's folder.

    Raises:
        ThimbleError: for none, for several, and for a sweep: it is its jobs that can be repeated.
    """
    from pipeline.tracking.store import DATABASE, Store

    folder = spool.folder()
    if not re.fullmatch(r"[\w.-]+", run) or not (folder / DATABASE).exists():
        raise ThimbleError(f"{run}: no run is tracked under this name in {folder}")
    store = Store(folder)
    found = [
        one
        for query in (f"attributes.run_id LIKE '{run}%'", f"tags.`thimble.run_dir` LIKE '%/{run}'")
        for one in store.client.search_runs([store.experiment], query, max_results=MOST)
    ]
    names = ", ".join(f"{one.info.run_id} ({one.data.tags['thimble.run_dir']})" for one in found)
    if not found:
        raise ThimbleError(f"{run}: no run is tracked under this name in {folder}")
    if len(found) > 1:
        raise ThimbleError(f"{run}: several runs are called so: {names}")
    if "thimble.sweep" in found[0].data.tags:
        query = f"tags.`mlflow.parentRunId` = '{found[0].info.run_id}'"
        jobs = store.client.search_runs([store.experiment], query, max_results=MOST)
        listed = ", ".join(job.info.run_id for job in jobs)
        raise ThimbleError(f"{run} is a sweep: replay one of its jobs, {listed}")
    return Path(url2pathname(urlparse(found[0].info.artifact_uri).path))


def best_by(metric: str, query: str) -> list[dict[str, Any]]:
    """Return the best runs by ``metric``, the best first: id, name, folder and all metrics.

    Args:
        query: MLflow's filter, such as ``metrics.sram_bytes < 65536``; "" for none.

    Raises:
        ThimbleError: for a filter that MLflow doesn't read, or where nothing is tracked yet.
    """
    from mlflow.exceptions import MlflowException

    from pipeline.tracking.store import DATABASE, Store

    folder = spool.folder()
    if not (folder / DATABASE).exists():
        raise ThimbleError(f"nothing is tracked yet in {folder}")
    store, less = Store(folder), not metric.startswith(MORE)
    order = [f"metrics.{metric} {'ASC' if less else 'DESC'}"]
    there = f"metrics.{metric} > -1" + (f" and {query}" if query else "")
    try:
        found = store.client.search_runs([store.experiment], there, 1, BEST, order)
    except MlflowException as error:
        raise ThimbleError(f"{query}: {error.message}") from None
    return [
        {"id": run.info.run_id, "name": run.info.run_name, **run.data.metrics,
         "run_dir": run.data.tags["thimble.run_dir"]}
        for run in found
    ]  # fmt: skip


BEST = 10
"""Runs that are shown."""

MOST = 5
"""Runs that a message lists."""
