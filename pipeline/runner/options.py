"""Nodes with a ``_target_`` hold what that class takes: a new class needs no change here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline import home
from pipeline.config import own_target
from pipeline.errors import ThimbleError
from pipeline.runner import early, messages
from pipeline.runner.closure import target_file
from pipeline.runner.fields import fields

CODE_GROUPS = ("data", "frontend", "model", "train", "prune", "quantize", "strategy")
"""Config groups whose ``_target_`` a stage imports: ``${code.<group>}`` in dvc.yaml."""

EXAMPLES = {
    "model.input_shape": "[height,width,channels]",
    "model.factory": "package.module:Net",
    "model.path": "FILE",
}
"""What a key that has to be given looks like."""

FOR_PEOPLE = ("_target_", "name")
"""The keys of every option; the others are fields of its class."""


class Check(Callback):
    """Hydra calls this before a single run, when there is no folder yet."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        try:
            check(config)
        except ThimbleError as error:
            raise SystemExit(str(error)) from None  # Hydra makes a warning of other exceptions


def check(config: DictConfig) -> None:
    """Raise ThimbleError for what no stage could work with in the config of a run, or of a job."""
    for group in CODE_GROUPS:
        if lacking := sorted(OmegaConf.missing_keys(config[group])):
            added = " ".join(f"{key}={EXAMPLES.get(key, '…')}" for key in lacking)
            raise ThimbleError(
                f"{group}={config[group].name} needs {' and '.join(lacking)}: add {added}"
            )
    for group in CODE_GROUPS:
        node = OmegaConf.to_container(config[group], resolve=True)
        assert isinstance(node, dict)
        checked(group, {str(key): value for key, value in node.items()})
    early.check(config)


def checked(group: str, node: Mapping[str, Any]) -> dict[str, Any]:
    """``node`` with each value in the type that its class says.

    Raises:
        ThimbleError: for a key that the class has not, saying the nearest; for a value of another
            type; when there is no such class.
    """
    for key in FOR_PEOPLE:
        if not node.get(key):
            raise ThimbleError(f"{group}.{key} is missing: each file in conf/{group}/ gives it")
    types = _fields(node)
    keys = [f"{group}.{key}" for key in (*FOR_PEOPLE, *types)]
    for key in node:
        if key not in (*FOR_PEOPLE, *types):
            if others := _others(group, key, node["name"]):
                does = f"{' and '.join(others)} {'does' if len(others) == 1 else 'do'}"
                raise ThimbleError(
                    f"unknown key {group}.{key}: {group}={node['name']} does not have it, {does}"
                )
            raise ThimbleError(messages.did_you_mean(f"{group}.{key}", keys))
    # each may be left out: its class has a default, or says what is missing
    shape = make_dataclass(group, [(name, kind | None, None) for name, kind in types.items()])
    given = {key: value for key, value in node.items() if key in types and value is not None}
    try:
        merged = OmegaConf.merge({group: OmegaConf.structured(shape)}, {group: given})
    except OmegaConfBaseException as error:
        raise ThimbleError(messages.explain(error) or f"{group}: {error}") from None
    typed = OmegaConf.to_container(merged, resolve=False, enum_to_str=True)
    assert isinstance(typed, dict)
    return {key: typed[group].get(key, node[key]) for key in node if node[key] is not None}


def _others(group: str, key: str, but: str) -> list[str]:
    """The other options of ``group`` whose YAML gives ``key``, each as it is typed."""
    files = sorted((home.ROOT / "conf" / group).glob("*.yaml"))
    found = {file.stem: OmegaConf.load(file) for file in files if file.stem != but}
    return [f"{group}={name}" for name, node in found.items() if key in node]


def _fields(node: Mapping[str, Any]) -> dict[str, Any]:
    target = own_target(node)
    name = target_file(target)
    if not (home.ROOT / name).is_file():
        raise ThimbleError(f"_target_ {target!r} does not exist: there is no {name}")
    found = fields(home.ROOT, target)
    if found is None:
        raise ThimbleError(f"_target_ {target!r} does not exist: {name} has no such class")
    return found
