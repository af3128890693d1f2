"""``python -m tests.stages.recorder STAGE``: run a stage here, print what it imports and reads.

Run in a workspace, as the stage itself; the last line of standard output is a JSON object with the
project's files that were imported and the config keys that were read.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from typing import Any

from pipeline import config
from stages._main import imported

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


def record() -> None:
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


if __name__ == "__main__":
    stage = importlib.import_module(f"stages.{sys.argv[1]}")
    record()
    stage.main()
    print("\n" + json.dumps({"imported": imported(), "read": sorted(READ)}))
