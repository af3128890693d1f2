"""``python tests/stages/recorder.py FOLDER=STAGE …``: run each stage in a workspace of its own, and
note in its ``recorded.json`` which of the project's files it imports and which keys it reads.

Each stage is a fork of this process, which has imported none of the project's files, but PyTorch
and NumPy: that takes most of the time of most stages.
"""

import dataclasses
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy  # noqa: F401
import torch  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
READ: set[str] = set()


class Node(dict[str, Any]):
    """A mapping of the config that notes which of its leaves are read."""

    def __init__(self, content: dict[str, Any], path: str = "") -> None:
        super().__init__(content)
        self.path = path

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        path = f"{self.path}{key}"
        if isinstance(value, dict):
            return Node(value, f"{path}.")
        READ.add(path)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


def record(config: Any) -> None:
    load, instantiate = config.load, config.instantiate

    def recording_instantiate(node: Node, **extra: Any) -> Any:
        made = instantiate(dict(node), **extra)
        READ.update(f"{node.path}{f.name}" for f in dataclasses.fields(made) if f.name in node)
        READ.add(f"{node.path}_target_")
        return made

    def recording_hardware(node: Node) -> Any:
        made = hardware(dict(node))
        plain = object.__getattribute__

        def getattribute(self: Any, name: str) -> Any:
            if name in type(self).__dataclass_fields__:
                READ.add(f"hardware.{name}")
            return plain(self, name)

        type(made).__getattribute__ = getattribute
        return made

    config.load = lambda: Node(load())
    config.instantiate = recording_instantiate
    if board := sys.modules.get("pipeline.board"):
        hardware = board.hardware
        board.hardware = recording_hardware


def imported() -> list[str]:
    """The project's files that were imported: what ``code.json`` has to list."""
    here = f"{ROOT}/"
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return sorted({file.removeprefix(here) for file in files if file.startswith(here)})


def recorded(folder: str, name: str) -> None:
    os.chdir(folder)
    sys.path.insert(0, str(ROOT))
    stage = importlib.import_module(f"stages.{name}")
    record(importlib.import_module("pipeline.config"))
    stage.main()
    found = {"imported": imported(), "read": sorted(READ)}
    Path("recorded.json").write_text(json.dumps(found))


def ended_well(folder: str, name: str) -> bool:
    process = os.fork()
    if not process:
        recorded(folder, name)
        os._exit(0)
    return os.waitpid(process, 0)[1] == 0


if __name__ == "__main__":
    ended = [ended_well(*word.rsplit("=", 1)) for word in sys.argv[1:]]
    sys.exit(not all(ended))
