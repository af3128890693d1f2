"""Say what code each stage runs: ``code.json``, whose hash of a stage DVC takes for its input.

dvc.yaml's ``meta`` of a stage names the config groups whose ``_target_`` it imports, other files of
the project that it reads, and tools whose version matters. Code runs from where it is installed:
run.py asks before a stage runs and afterwards, so that the results of code that was edited
meanwhile are not kept.
``python -m pipeline.runner.code`` is the first stage of ``dvc repro``, which always runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from pipeline import config, home
from pipeline.artifacts import write_json
from pipeline.runner import own, versions
from pipeline.runner.closure import closure, digest, module_files
from pipeline.tracking.checkout import FILE


class Code:
    """Says what the stages of a run of ``params``, the content of its params.yaml, run.

    The user's own files and the tools are looked at once, the project's files each time.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params, self._stages = params, stages()

    def about(self, stage: str) -> dict[str, Any]:
        """Return what ``stage`` runs: hashes of files and of what is the user's own, versions, and
        the ``hash`` of them all."""
        about = self._stages[stage].get("meta", {})
        groups = about.get("targets", ())
        modules = (self._params[group]["_target_"].rpartition(".")[0] for group in groups)
        targets = [file for module in modules for file in module_files(home.ROOT, module)]
        files = closure(home.ROOT, [f"stages/{stage}.py", *targets])
        files.update(name for listed in about.get("files", ()) for name in _below(listed))
        content: dict[str, Any] = {
            "files": {name: digest(home.ROOT, name) for name in files},
            "own": {group: self._own[group] for group in groups if self._own.get(group)},
            "versions": {name: self._versions[name] for name in about.get("versions", ())},
        }
        text = json.dumps(content, sort_keys=True)
        return {"hash": hashlib.sha256(text.encode()).hexdigest()[:32], **content}

    @cached_property
    def _own(self) -> Mapping[str, str]:
        return own.hashes(self._params, home.typed())

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        return versions.found(self._params)


def stages() -> dict[str, Any]:
    """Return those of the project's dvc.yaml that a run has, in order."""
    content = yaml.load((home.ROOT / "dvc.yaml").read_text(), yaml.CSafeLoader)["stages"]
    return {name: stage for name, stage in content.items() if name != "code"}


def edited(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[str]:
    """Return the files of a stage that differ."""
    one, other = before["files"], after["files"]
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _below(listed: str) -> Iterator[str]:
    """Yield a file, or all those in a folder."""
    place = home.ROOT / listed
    for path in [place] if place.is_file() else place.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(home.ROOT).as_posix()


if __name__ == "__main__":
    every = Code(config.load())
    write_json(Path(FILE), {name: every.about(name) for name in stages()})
