"""The resolved config, as the stages read it: a plain ``params.yaml``, its ``_target_`` nodes."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pipeline.errors import ThimbleError

PACKAGE = "pipeline."
"""Only classes of this package are instantiated: other people's configs are code."""

RENAMED = {
    "pipeline.strategies.partial.partial.Partial": "pipeline.strategies.partial.Partial",
    "pipeline.strategies.patch.patch.Patch": "pipeline.strategies.patch.Patch",
    "pipeline.strategies.swap.swap.Swap": "pipeline.strategies.swap.Swap",
}
"""Classes that were elsewhere, and where they are now."""


def load(path: Path = Path("params.yaml")) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(), yaml.CSafeLoader)
    except FileNotFoundError:
        raise ThimbleError(f"{path} is missing: run stages through run.py or dvc repro") from None
    except yaml.YAMLError as error:
        raise ThimbleError(f"{path} is damaged: {str(error).splitlines()[0]}") from None
    if not isinstance(content, dict):
        raise ThimbleError(f"{path} does not hold a config: run run.py again")
    return content


def instantiate(node: Mapping[str, Any], **extra: Any) -> Any:
    """Make the object that ``node["_target_"]`` names, from the node's other keys.

    Keys that the class does not know, such as ``name``, are for people and are left out.
    """
    target = own_target(node)
    module, _, name = target.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise ThimbleError(f"_target_ {target!r} does not exist") from None
    if not dataclasses.is_dataclass(cls):
        raise ThimbleError(f"_target_ {target!r} is not one of the project's config classes")
    known = {field.name for field in dataclasses.fields(cls) if field.init}
    values = {key: frozen(item) for key, item in node.items() if key in known}
    make: Any = cls
    return make(**values, **extra)


def own_target(node: Mapping[str, Any]) -> str:
    """``node["_target_"]``, refused when it is none of the project's own classes."""
    target = str(node.get("_target_", ""))
    if not target.startswith(PACKAGE) or not all(map(str.isidentifier, target.split("."))):
        raise ThimbleError(f"_target_ {target!r} is outside {PACKAGE}*: refused, a config is code")
    if target in RENAMED:
        raise ThimbleError(f"_target_ {target!r} has moved: write {RENAMED[target]}")
    return target


def frozen(item: Any) -> Any:
    """Lists as tuples and mappings as dicts, so that a config class is hashable."""
    if isinstance(item, Mapping):
        return {key: frozen(value) for key, value in item.items()}
    listed = isinstance(item, Sequence) and not isinstance(item, str)
    return tuple(frozen(value) for value in item) if listed else item
