"""A folder of its own for each run: the resolved config, its results, a DVC repository."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import yaml
from filelock import FileLock, Timeout

from pipeline import home
from pipeline.artifacts import write_text
from pipeline.errors import ThimbleError
from pipeline.runner import code, store
from pipeline.runner.options import checked
from pipeline.runner.schema import CODE_GROUPS
from pipeline.tracking.checkout import FILE, PATCH

DVC_CONFIG = """\
[core]
    no_scm = true
    analytics = false
    check_update = false
    site_cache_dir = {site}
[cache]
    dir = {cache}
    type = "reflink,hardlink,symlink,copy"
"""


def params(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of params.yaml: the resolved config, its ``_target_`` nodes as their
    classes have them."""
    return {**config, **{group: checked(group, config[group]) for group in CODE_GROUPS}}


def params_text(content: Mapping[str, Any]) -> str:
    return yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=True, default_flow_style=False)


@contextlib.contextmanager
def held(folder: Path, config: Mapping[str, Any]) -> Iterator[None]:
    """Make ``folder`` a workspace for ``config``, which no other run uses meanwhile.

    A folder used before (``hydra.run.dir=…`` given twice) gets the current config, and loses what
    the earlier run made: its results are not this run's. Raises ThimbleError while another run is
    using it, for a folder with the user's own files, and for the project's own.
    """
    if folder.resolve() == home.ROOT:
        raise ThimbleError("hydra.run.dir is the project itself: choose a folder for the run")
    made, dvc = [out for stage in code.stages().values() for out in stage["outs"]], folder / ".dvc"
    others = [name for name in made if (folder / name).exists()]
    if others and not _used(dvc):
        raise ThimbleError(
            f"hydra.run.dir={folder} is no run's folder and has {others[0]!r} of its own, "
            "which a run would remove: choose another folder"
        )
    dvc.mkdir(parents=True, exist_ok=True)
    with locked(dvc / "run.lock"):
        if _used(dvc):
            _end_orphans(folder)
            for name in (*made, *REPORTS):  # the cache has them
                store.remove(folder / name)
        for place in (dvc / "tmp", dvc / "site", folder / LOG):  # half-written, perhaps
            shutil.rmtree(place, ignore_errors=True)
        (folder / LOG).mkdir()
        (dvc / "site" / "repo").mkdir(parents=True)  # DVC's own is everybody's to write to
        write_text(folder / "params.yaml", params_text(config))
        write_text(folder / "dvc.yaml", pipeline_text(config))
        cache, site = keep(folder, config) / "cache", folder.absolute() / ".dvc" / "site"
        write_text(dvc / "config", DVC_CONFIG.format(cache=cache, site=site))
        yield


def _used(dvc: Path) -> bool:
    """Check that an earlier run has written the folder ``dvc``."""
    config = dvc / "config"
    return config.is_file() and "site_cache_dir" in config.read_text()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock ``path``. It is removed while it is held: who has opened it meanwhile finds
    that it has no name any more, and has not got it."""
    try:
        lock = FileLock(path, blocking=False).acquire()
    except Timeout:
        raise ThimbleError(
            f"{path.parents[1]} is in use by another run: wait for it, or choose another "
            "hydra.run.dir"
        ) from None
    with lock:
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def keep(folder: Path, config: Mapping[str, Any]) -> Path:
    """Return the folder of the cache and the checkpoints of a run in ``folder``: that of all
    others, or, when everything is to be made anew, one in ``folder``."""
    return folder.absolute() / ".dvc" / "fresh" if config["cache"].get("fresh") else home.home()


def _end_orphans(folder: Path) -> None:
    """End what a killed run.py left running in ``folder``: it would write into this run's files."""
    orphans = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(folder.resolve()):
                runner = process.environ().get("THIMBLE_RUNNER", "")
                if runner and not psutil.pid_exists(int(runner)):
                    process.kill()
                    orphans.append(process)
    psutil.wait_procs(orphans, timeout=5)


def stages(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the stages of a run, in order. A network that brings its weights is not trained: its
    config says at which stage it ``enters``; before that there is only the data. A package is made
    at the end, whatever the last stage was."""
    entry = config["model"].get("enters", home.STAGES[0])
    found = tuple(
        stage
        for stage in home.STAGES
        if home.no_later(stage, config["until"])
        and (stage == home.STAGES[0] or home.no_later(entry, stage))
    )
    chosen = config.get("package", {}).get("name", "none")
    return (*found, home.PACKAGE) if chosen != "none" else found


def pipeline_text(config: Mapping[str, Any]) -> str:
    """The project's dvc.yaml without the stages that this config's network does not go through."""
    content = code.stages()
    leave_out(content, stages({**config, "until": home.STAGES[-1]}))
    return yaml.dump({"stages": content}, Dumper=yaml.CSafeDumper, sort_keys=False)


def leave_out(content: dict[str, Any], kept: tuple[str, ...]) -> None:
    """Remove all but the stages ``kept``, and what the others would have made from their deps."""
    gone = [content.pop(name) for name in list(content) if name not in kept]
    made = {out for stage in gone for out in stage["outs"]}
    for stage in content.values():
        if "deps" in stage:
            stage["deps"] = [dep for dep in stage["deps"] if dep not in made]


def forget(folder: Path) -> None:
    """Remove a run's folder, and in ``outputs`` the day's if it was its only one."""
    store.remove(folder)
    outputs = home.typed() / "outputs"
    with contextlib.suppress(OSError):  # there are others
        while folder.parent.is_relative_to(outputs):
            folder = folder.parent
            folder.rmdir()


REPORTS = ("dvc.lock", "result.json", FILE, PATCH, "README.txt")
LOG = ".stages"
"""Folder in a workspace: what each stage that really ran reported, and the logs."""
