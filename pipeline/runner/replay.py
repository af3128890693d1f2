"""``python run.py replay=RUN``: repeat a recorded run, and say whether every hash agrees.

RUN is an MLflow run's id, or enough of it, the name of its folder, or a path to that folder or to
the params.yaml in it. A replay makes everything anew: what comes out of a cache proves nothing.
Only the data set, which is verified by hash, is not downloaded again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline import home
from pipeline.artifacts import read_json
from pipeline.errors import ThimbleError
from pipeline.runner import allowed
from pipeline.runner.schema import Config
from pipeline.runner.stage import read_yaml
from pipeline.tracking.checkout import FILE as CODE
from pipeline.tracking.checkout import recorded as origin

KEY = "replay="
WITH = ("output=", "tracking=", "cache.fresh=", "hydra.run.dir=")
"""Overrides that may be typed beside it: none that changes a result."""

FOLDER = "THIMBLE_REPLAY"
"""The environment variable that tells the run the folder that it is to repeat."""

HERE = ("output", "tracking", "cache")
"""Keys of the config that are the replay's own."""

ABOUT = ("code_version", "code_dirty", "typed")
"""Surroundings that change no result by themselves."""

ORDER = (*home.STAGES, home.PACKAGE)


@dataclass(frozen=True)
class Record:
    """Record of a finished run in ``folder``, its own or that of its artifacts in MLflow: the
    resolved config, and its origin (tracking/checkout.py)."""

    folder: Path
    params: Mapping[str, Any]
    origin: Mapping[str, Mapping[str, Any]]

    def config(self, composed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the recorded config, with what does not change results as ``composed`` has it."""
        kept = {k: v for k, v in self.params.items() if k not in HERE}
        try:
            merged: Any = OmegaConf.merge(OmegaConf.structured(Config), kept)
        except OmegaConfBaseException as error:
            said = str(error).splitlines()[0]
            raise ThimbleError(f"this version cannot repeat that run: {said}{self.hint}") from None
        if not self.own:
            allowed.task(merged, [self.folder], "if you trust it, set")
        plain: Any = OmegaConf.to_container(merged, resolve=True, enum_to_str=True)
        return {**plain, **{key: composed[key] for key in HERE}}

    @property
    def name(self) -> str:
        """An MLflow run's id, or the folder."""
        return self.folder.parent.name if self.folder.name == "artifacts" else str(self.folder)

    @property
    def own(self) -> bool:
        """Check whether it was tracked here: what had to be typed then was typed."""
        from pipeline.tracking import spool

        return self.folder.resolve().is_relative_to(spool.folder().resolve())

    @property
    def hint(self) -> str:
        """Say how to get the code that was recorded."""
        environment = self.origin["environment"]
        commit = environment.get("code_version", "")
        patch = " and its code.patch" if environment.get("code_dirty") == "true" else ""
        return f"; try git checkout {commit[:12]}{patch}" if commit else ""


def arguments(words: list[str]) -> list[str]:
    """Return the command line ``words``; one with ``replay=RUN`` as that of an ordinary run, in a
    folder named by what it repeats, so that the same command again continues after a kill.

    Raises:
        ThimbleError: when there is no such run, or none that can be repeated; for other overrides.
    """
    os.environ.pop(FOLDER, None)
    named = [word for word in words if word.startswith(KEY)]
    if not named:
        return words
    rest = [word for word in words if word not in named]
    if wrong := [*(word for word in rest if not word.startswith(WITH)), *named[1:]]:
        raise ThimbleError(f"{named[0]} repeats a run as it was: leave out {' '.join(wrong)}")
    folder = find(named[0].removeprefix(KEY))
    record = read(folder)
    record.config(dict.fromkeys(HERE))
    typed = record.origin["environment"].get("typed", "")  # the user's own code is there
    if Path(typed).is_dir() and (record.own or os.environ.get(allowed.TRUST) == "1"):
        os.environ["THIMBLE_TYPED"] = typed
    os.environ[FOLDER] = str(folder)
    claim = json.dumps([record.params, record.origin["made"]], sort_keys=True)
    place = f"outputs/replay/{hashlib.sha256(claim.encode()).hexdigest()[:12]}"
    return ["cache.fresh=true", f"hydra.run.dir={place}", *rest]


def recorded() -> Record | None:
    """Return the record of the run that this one is to repeat, if it is a replay."""
    return read(Path(folder)) if (folder := os.environ.get(FOLDER)) else None


def read(folder: Path) -> Record:
    """Raises ThimbleError for a run that ended badly, and for a folder that holds none."""
    if not (folder / "params.yaml").is_file():
        raise ThimbleError(f"replay: there is no params.yaml in {folder}")
    result = read_json(folder / "result.json") if (folder / "result.json").exists() else {}
    if result.get("status") not in ("ok", "infeasible"):
        why = f"failed: {result['error']}" if result.get("error") else "did not end"
        raise ThimbleError(f"replay: the run in {folder} {why}; there is nothing to compare with")
    record = Record(folder, read_yaml(folder / "params.yaml"), origin(folder))
    if not record.origin["environment"]:
        raise ThimbleError(
            f"replay: {folder} lacks {CODE}, or has that of an earlier version: "
            "give another run's folder or MLflow id"
        )
    return record


def verdict(record: Record, folder: Path) -> dict[str, Any]:
    """Return what the replay in ``folder`` adds to its result: ``replay``, and an error if a file
    differs, is missing or is one too many."""
    here = origin(folder)
    there, now = record.origin["made"], here["made"]
    stages = [stage for stage in ORDER if stage in there or stage in now]
    differs = [
        {"stage": stage, "file": file, "recorded": one.get(file), "here": other.get(file)}
        for stage in stages
        for one, other in [(there.get(stage, {}), now.get(stage, {}))]
        for file in _differing(one, other)
    ]
    wrong, count = {item["stage"] for item in differs}, sum(map(len, there.values()))
    changed = list(_changes(record.origin, here))
    result: dict[str, Any] = {
        "replay": {
            "of": record.name,
            "agrees": not differs,
            "files": count,
            "stages": {stage: stage not in wrong for stage in stages},
            "differs": differs,
            "changed": changed,
        }
    }
    if differs:
        error = (
            f"the replay differs from the recorded run in {len(differs)} of {count} files, "
            f"first in {differs[0]['stage']}: {differs[0]['file']}"
        )
        error += f" (changed since: {'; '.join(changed)}){record.hint}" if changed else ""
        result |= {"status": "failed", "error": error}
    return result


def _changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is not as it was: code, the user's files, versions, the processor; each in a few
    words."""
    if files := _differing(was["files"], now["files"]):
        more = f" and {len(files) - 2} more" if len(files) > 2 else ""
        yield f"code, {', '.join(files[:2])}{more}"
    for group in _differing(was["own"], now["own"]):
        yield f"your own files of {group}"
    there, here = ({**each["versions"], **each["environment"]} for each in (was, now))
    for name in _differing(there, here):
        if name not in ABOUT:
            yield f"{name} {there.get(name) or '(none)'} → {here.get(name) or '(none)'}"


def _differing(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    return sorted(key for key in there.keys() | here.keys() if there.get(key) != here.get(key))


def find(run: str) -> Path:
    """Return the folder of what was kept of ``run``."""
    path = home.typed() / Path(run).expanduser()
    if path.is_file():
        return path.parent
    if path.is_dir():
        return path
    if "/" in run:
        raise ThimbleError(f"replay={run}: there is no such folder, nor params.yaml")
    from pipeline.tracking.find import artifacts

    return artifacts(run)
