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
from pipeline.hardware import Hardware
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
    load, instantiate, hardware = config.load, config.instantiate, config.hardware

    def recording_instantiate(node: Node, **extra: Any) -> Any:
        made = instantiate(dict(node), **extra)
        READ.update(f"{node.path}{f.name}" for f in dataclasses.fields(made) if f.name in node)
        READ.add(f"{node.path}_target_")
        return made

    def recording_hardware(node: Node) -> Hardware:
        board = hardware(dict(node))
        plain = object.__getattribute__

        def getattribute(self: Hardware, name: str) -> Any:
            if name in Hardware.__dataclass_fields__:
                READ.add(f"hardware.{name}")
            return plain(self, name)

        Hardware.__getattribute__ = getattribute  # type: ignore[method-assign]
        return board

    config.load = lambda: Node(load())
    config.instantiate = recording_instantiate
    config.hardware = recording_hardware


if __name__ == "__main__":
    record()
    importlib.import_module(f"stages.{sys.argv[1]}").main()
    print("\n" + json.dumps({"imported": imported(), "read": sorted(READ)}))
