"""A folder of its own for each run: the resolved config, copies of the code, a DVC repository.

Code is copied, not linked: DVC hashes dependencies once a stage has run, so that an edit made
meanwhile to a linked file would be stored under the wrong hash.
"""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import yaml
from filelock import FileLock, Timeout

from pipeline import home
from pipeline.artifacts import write_text
from pipeline.errors import ThimbleError
from pipeline.runner import cached, own, versions
from pipeline.runner.closure import closure, remember, target_file
from pipeline.runner.options import CODE_GROUPS, checked

CODE = ("stages", "pipeline", "firmware")
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


def params_text(config: Mapping[str, Any]) -> str:
    """The content of params.yaml: the resolved config, the files of its ``_target_`` nodes, and
    hashes of the user's own files."""
    nodes = {group: checked(group, config[group]) for group in CODE_GROUPS}
    code = {group: target_file(node["_target_"]) for group, node in nodes.items()}
    content = {**config, **nodes, "code": code, "files": own.hashes(config, home.typed())}
    return yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=True, default_flow_style=False)


def create(folder: Path, config: Mapping[str, Any]) -> FileLock:
    """Make ``folder`` a workspace for ``config`` and return its lock, held.

    A folder used before (``hydra.run.dir=…`` given twice) gets the current code and config, and
    loses what the earlier run made: its results are not this run's. Raises ThimbleError while
    another run is using it, and for the project's own folder.
    """
    if folder.resolve() == home.ROOT:
        raise ThimbleError("hydra.run.dir is the project itself: choose a folder for the run")
    others = [name for name in CODE if (folder / name).exists()]
    if others and not (folder / ".dvc" / "run.lock").exists():
        raise ThimbleError(
            f"hydra.run.dir={folder} is no run's folder and has {others[0]!r} of its own, "
            "which a run would remove: choose another folder"
        )
    (folder / ".dvc").mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".dvc" / "run.lock", blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise ThimbleError(
            f"{folder} is in use by another run: wait for it, or choose another hydra.run.dir"
        ) from None
    _end_orphans(folder)
    _clear(folder)
    shutil.rmtree(folder / ".dvc" / "tmp", ignore_errors=True)  # DVC's locks: half-written, perhaps
    write_text(folder / "params.yaml", params_text(config))
    write_text(folder / VERSIONS, versions.text(config))
    if not (home.ROOT / VERSIONS).exists():  # for `dvc repro` there
        write_text(home.ROOT / VERSIONS, (folder / VERSIONS).read_text())
    write_text(folder / ".dvcignore", (home.ROOT / ".dvcignore").read_text())
    for name in CODE:
        shutil.rmtree(folder / name, ignore_errors=True)
        _copy(home.ROOT / name, folder / name)
    write_text(folder / "dvc.yaml", pipeline_text(folder))
    shutil.rmtree(folder / LOG, ignore_errors=True)
    (folder / LOG).mkdir()
    shutil.rmtree(folder / ".dvc" / "site", ignore_errors=True)
    (folder / ".dvc" / "site" / "repo").mkdir(parents=True)  # DVC's own is everybody's to write to
    config_text = DVC_CONFIG.format(
        cache=keep(folder, config) / "cache", site=folder.absolute() / ".dvc" / "site"
    )
    write_text(folder / ".dvc" / "config", config_text)
    return lock


def _copy(source: Path, target: Path) -> None:
    """The code below ``source``, which others may be able to write to; not so the copy."""
    target.mkdir()
    for path in sorted(source.iterdir()):
        if path.is_file():
            copied = Path(shutil.copyfile(path, target / path.name))
            copied.chmod(copied.stat().st_mode | path.stat().st_mode & stat.S_IXUSR)
        elif path.is_dir() and path.name != "__pycache__":
            _copy(path, target / path.name)


def keep(folder: Path, config: Mapping[str, Any]) -> Path:
    """Where the cache and the checkpoints of a run in ``folder`` are: with all others, or, when
    everything is to be made anew, in ``folder``."""
    return folder.absolute() / ".dvc" / "fresh" if config["cache"].get("fresh") else home.home()


def _end_orphans(folder: Path) -> None:
    """End what a killed run.py left running in ``folder``: it would write into this run's files."""
    if not (folder / ".dvc" / "config").exists():
        return
    orphans = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(folder.resolve()):
                runner = process.environ().get("THIMBLE_RUNNER", "")
                if runner and not psutil.pid_exists(int(runner)):
                    process.kill()
                    orphans.append(process)
    psutil.wait_procs(orphans, timeout=5)


def _clear(folder: Path) -> None:
    """Remove the outputs of an earlier run's stages; the cache has them."""
    if not (folder / ".dvc" / "config").exists():  # no workspace yet: what is there is not ours
        return
    content = yaml.load((home.ROOT / "dvc.yaml").read_text(), yaml.CSafeLoader)
    stages = content["stages"].values()
    for out in [*(out for stage in stages for out in stage["outs"]), *REPORTS]:
        cached.remove(folder / out)


def stages(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The stages of a run, in order. A network that brings its weights is not trained: its config
    says at which stage it ``enters``; before that there is only the data. A package is made at the
    end, whatever the last stage was."""
    last = home.STAGES.index(config["until"])
    entry = home.STAGES.index(config["model"].get("enters", home.STAGES[0]))
    found = tuple(s for n, s in enumerate(home.STAGES) if n <= last and (n == 0 or n >= entry))
    chosen = config.get("package", {}).get("name", "none")
    return (*found, home.PACKAGE) if chosen != "none" else found


def pipeline_text(folder: Path) -> str:
    """The project's dvc.yaml, with all the code that this config's stages import as deps, and
    without the stages that its network does not go through.

    dvc.yaml lists what the project's own stages import (``make deps``). What it lacks, say a helper
    of one's own strategy, is added here, so that editing it reruns the stage.
    """
    text = (home.ROOT / "dvc.yaml").read_text()
    config = yaml.load((folder / "params.yaml").read_text(), yaml.CSafeLoader)
    content, code = yaml.load(text, yaml.CSafeLoader), config["code"]
    grown = leave_out(content["stages"], stages({**config, "until": home.STAGES[-1]}))
    for name, stage in content["stages"].items():
        listed = stage["deps"]
        targets = [code[group] for group in CODE_GROUPS if f"${{code.{group}}}" in listed]
        reached = closure(folder, [f"stages/{name}.py", *targets])
        for file in sorted(reached.difference(targets, listed)):
            if not covered(file, listed):
                listed.append(file)
                grown = True
    remember()
    return yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False) if grown else text


def leave_out(content: dict[str, Any], kept: tuple[str, ...]) -> bool:
    """Remove all but the stages ``kept``, and what the others would have made from their deps."""
    gone = [content.pop(name) for name in list(content) if name not in kept]
    made = {out for stage in gone for out in stage["outs"]}
    for stage in content.values():
        stage["deps"] = [dep for dep in stage["deps"] if dep not in made]
    return bool(gone)


def covered(name: str, deps: list[str]) -> bool:
    return any(name == dep or name.startswith(f"{dep}/") for dep in deps)


VERSIONS = "versions.yaml"
REPORTS = ("dvc.lock", "hashes.json", "result.json")
LOG = ".stages"
"""In a workspace: what each stage that really ran reported, and the logs."""
