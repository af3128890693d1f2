"""Turn complaints of Hydra and OmegaConf into one line with what to type instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline import home
from pipeline.errors import ThimbleError
from pipeline.runner.schema import composed

UNKNOWN_KEY = re.compile(r"Could not override '([^']+)'|full_key: (\S+)")
"""Key in a message that it is ``not in`` something, or that there is ``No match``."""

CORES = sorted(path.stem for path in (home.ROOT / "conf" / "hardware" / "core").glob("*.yaml"))


def explain(error: BaseException) -> str | None:
    """Return one line for a mistake in the command; None when it is not the command's fault."""
    if isinstance(error, ThimbleError):
        return str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _unknown_option(str(error.missing_cfg_file), list(error.options or []))
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not understood, write key=value ({_first(error)})"
    if not isinstance(error, HydraException | OmegaConfBaseException):
        return None
    text = f"{error}\n{error.__cause__ or ''}"
    found = UNKNOWN_KEY.search(text) if "not in" in text or "No match" in text else None
    return _unknown_key(found[1] or found[2]) if found else _invalid_value(error)


def _unknown_option(option: str, options: list[str]) -> str:
    group, _, name = option.removesuffix(".yaml").rpartition("/")
    near = " or ".join(f"{group}={each}" for each in get_close_matches(name, options, 3))
    hint = f"did you mean {near}?" if near else f"there are {', '.join(options)}"
    own = _own_board(name) if group == "hardware" else ""
    return f"unknown {group} {name!r}: {hint}{own}"


def _own_board(name: str) -> str:
    """Say how to add the board ``name``, of a core that is there."""
    near = get_close_matches(name, CORES, 1)
    cores = f"the nearest is {near[0]}" if near else f"one of {', '.join(CORES)}"
    return (
        f"; a board of your own is a YAML that names its chip or core ({cores}): "
        "docs/contributing.md says how, python run.py board check FILE what it lacks"
    )


def _unknown_key(key: str) -> str:
    """Return one line for a key that the default composition lacks, or, of a group that it has not,
    for the group."""
    try:
        config = composed(hydra=True)
    except (HydraException, OmegaConfBaseException):  # that is broken, too
        return f"unknown key {key}"
    place, _, name = key.rpartition(".")
    node: Any = OmegaConf.select(config, place) if place else None
    if OmegaConf.is_dict(node):
        return did_you_mean(place, name, map(str, node))
    groups = (group for group in config.hydra.runtime.choices if "/" not in group)
    own = (str(each) for each in config if each != "hydra")
    return did_you_mean("", key.partition(".")[0], dict.fromkeys([*own, *groups]))


def did_you_mean(place: str, name: str, keys: Iterable[str]) -> str:
    """Return one line for the unknown key ``name`` below ``place``, which has ``keys``."""
    keys, dot = list(keys), f"{place}." if place else ""
    near = get_close_matches(name, keys, 1, cutoff=0.5)
    hint = f"did you mean {dot}{near[0]}? " if near else ""
    return f"unknown key {dot}{name}: {hint}{place or 'the top level'} has {', '.join(keys)}"


def _invalid_value(error: BaseException) -> str:
    """The reason behind ``Error merging override hardware.sram_bytes=abc``, after the full key.

    Under a debugger, or with OC_CAUSE=1, OmegaConf's errors have causes, themselves among them.
    """
    while error.__cause__ is not None and not isinstance(error, OmegaConfBaseException):
        error = error.__cause__
    key = re.search(r"full_key: (\S+)", str(error))
    return f"{key[1]}: {_first(error)}" if key else _first(error)


def _first(error: BaseException) -> str:
    """Return the first line that ``error`` says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].strip()
