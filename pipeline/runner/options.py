"""Nodes with a ``_target_`` hold what that class takes: a new class needs no change here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass
from functools import cache
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline import home
from pipeline.config import own_target
from pipeline.errors import ThimbleError
from pipeline.runner import early, messages
from pipeline.runner.fields import fields
from pipeline.runner.schema import CODE_GROUPS

EXAMPLES = {"model.factory": "package.module:Net", "model.path": "FILE"}
"""Examples of keys that have to be given."""

FOR_PEOPLE = ("_target_", "name")
"""The keys of every option; the others are fields of its class."""


class Check(Callback):
    """Hydra calls this before a single run, when there is no folder yet."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        try:
            check(config)
        except (ThimbleError, OmegaConfBaseException) as error:
            said = messages.explain(error)  # Hydra makes a warning of other exceptions
            raise SystemExit(said) from None


def check(config: DictConfig) -> None:
    """Raise ThimbleError for what no stage could work with in the config of a run, or of a job."""
    for group in (*CODE_GROUPS, "hardware"):
        if lacking := sorted(OmegaConf.missing_keys(config[group])):
            added = " ".join(f"{key}={EXAMPLES.get(key, '…')}" for key in lacking)
            raise ThimbleError(
                f"{group}={config[group].name} needs {' and '.join(lacking)}: add {added}"
            )
    for group in CODE_GROUPS:
        node: Any = OmegaConf.to_container(config[group], resolve=True)
        checked(group, node)
    early.check(config)


def checked(group: str, node: Mapping[str, Any]) -> dict[str, Any]:
    """``node`` with each value in the type that its class says, and without those that are None.

    Raises:
        ThimbleError: for a key that the class has not, saying the nearest; for a value of another
            type; when there is no such class.
    """
    for key in FOR_PEOPLE:
        if not node.get(key):
            raise ThimbleError(f"{group}.{key} is missing: each file in conf/{group}/ gives it")
    target = own_target(node)
    if (types := fields(home.ROOT, target)) is None:
        raise ThimbleError(f"_target_ {target!r} does not exist: there is no such class")
    for key in node:
        if key not in (*FOR_PEOPLE, *types):
            raise ThimbleError(messages.did_you_mean(group, key, [*FOR_PEOPLE, *types]))
    given = {key: value for key, value in node.items() if value is not None}
    typed = {key: value for key, value in given.items() if key in types}
    try:
        merged = OmegaConf.merge({group: _typed(target)}, {group: typed})
    except OmegaConfBaseException as error:
        raise ThimbleError(messages.explain(error) or f"{group}: {error}") from None
    plain: Any = OmegaConf.to_container(merged, enum_to_str=True)
    return {key: plain[group].get(key, value) for key, value in given.items()}


@cache
def _typed(target: str) -> DictConfig:
    """Return a node with the types of the class ``target``. Each may be left out: its class has a
    default, or says what is missing."""
    types = fields(home.ROOT, target) or {}
    shape = make_dataclass("Shape", [(name, kind | None, None) for name, kind in types.items()])
    found: DictConfig = OmegaConf.structured(shape)
    return found
