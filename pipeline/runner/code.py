"""Say what code each stage runs, in a small file that DVC takes for its input: ``code/STAGE``.

dvc.yaml's ``meta`` of a stage names the config groups whose ``_target_`` it imports, other files of
the project that it reads, and tools whose version matters. Code runs from where it is installed:
run.py writes a stage's file before the stage runs and compares it afterwards, so that the results
of code that was edited meanwhile are not kept.
``python -m pipeline.runner.code`` is the first stage of ``dvc repro``, which always runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from pipeline import config, home
from pipeline.artifacts import write_text
from pipeline.runner import own, versions
from pipeline.runner.closure import closure, digest, module_files, remember
from pipeline.tracking.checkout import FOLDER

SKIPPED = "__pycache__"


class Code:
    """Says what the stages of a run of ``params``, the content of its params.yaml, run.

    The user's own files and the tools are looked at once, the project's files each time.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params = params

    def text(self, stage: str) -> str:
        """The content of the file of ``stage``: hashes of files and of what is the user's own, and
        versions."""
        about = self._stages[stage].get("meta", {})
        groups = about.get("targets", ())
        modules = (self._params[group]["_target_"].rpartition(".")[0] for group in groups)
        targets = [file for module in modules for file in module_files(home.ROOT, module)]
        files = closure(home.ROOT, [f"stages/{stage}.py", *targets])
        files.update(name for listed in about.get("files", ()) for name in _below(listed))
        content = {
            "files": {name: digest(home.ROOT, name) for name in files},
            "own": {group: self._own[group] for group in groups if self._own.get(group)},
            "versions": {name: self._versions[name] for name in about.get("versions", ())},
        }
        return json.dumps(content, indent=1, sort_keys=True) + "\n"

    def write(self, folder: Path, stage: str) -> None:
        """Write the file of ``stage`` in ``folder``."""
        write_text(folder / FOLDER / stage, self.text(stage))

    @cached_property
    def _stages(self) -> Any:
        return stages()

    @cached_property
    def _own(self) -> Mapping[str, str]:
        return own.hashes(self._params, home.typed())

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        return versions.found(self._params)


def stages() -> dict[str, Any]:
    """Those of the project's dvc.yaml that a run has, in order."""
    content = yaml.load((home.ROOT / "dvc.yaml").read_text(), yaml.CSafeLoader)["stages"]
    return {name: stage for name, stage in content.items() if name != FOLDER}


def edited(before: str, after: str) -> Iterable[str]:
    """The files that two texts of a stage differ in."""
    one, other = (json.loads(text)["files"] for text in (before, after))
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _below(listed: str) -> Iterable[str]:
    """A file, or all those in a folder."""
    place = home.ROOT / listed
    if place.is_file():
        return [listed]
    found = (path for path in place.rglob("*") if path.is_file() and SKIPPED not in path.parts)
    return [path.relative_to(home.ROOT).as_posix() for path in found]


if __name__ == "__main__":
    every = Code(config.load())
    for name in stages():
        every.write(Path(), name)
    remember()
