"""What Hydra and OmegaConf complain about, in one line with what to type instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.errors import ThimbleError
from pipeline.runner.schema import composed

MOST_LISTED = 12
"""Options of a group that are all named in a message."""

UNKNOWN_KEY = re.compile(r"Could not override '([^']+)'|full_key: (\S+)")
"""In a message that says that a key is ``not in`` something, or that there is ``No match``."""


def explain(error: BaseException) -> str | None:
    """One line for a mistake in the command; None when it is not the command's fault."""
    if isinstance(error, ThimbleError):
        return str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _unknown_option(str(error.missing_cfg_file), list(error.options or []))
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not understood, write key=value ({_lines(error)[0]})"
    if not isinstance(error, HydraException | OmegaConfBaseException):
        return None
    text = f"{error}\n{error.__cause__ or ''}"
    found = UNKNOWN_KEY.search(text) if "not in" in text or "No match" in text else None
    keys = known_keys() if found else []
    return did_you_mean(found[1] or found[2], keys) if found and keys else _invalid_value(error)


def _unknown_option(option: str, options: list[str]) -> str:
    group, _, name = option.removesuffix(".yaml").rpartition("/")
    near = " or ".join(f"{group}={each}" for each in get_close_matches(name, options, 3))
    hint = f"did you mean {near}? " if near else ""
    listed = f"there are {', '.join(options)}"
    if len(options) > MOST_LISTED:
        listed = f"python run.py --help lists all {len(options)}"
    return f"unknown {group} {name!r}: {hint}{listed}"


def did_you_mean(key: str, keys: list[str]) -> str:
    """One line for the unknown ``key``, dotted, where there are ``keys``."""
    near = get_close_matches(key, keys, 1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    group = key.rpartition(".")[0]
    siblings = [name for place, _, name in (k.rpartition(".") for k in keys) if place == group]
    listed = f"{group or 'the top level'} has {', '.join(siblings)}"
    return f"unknown key {key}: {hint}{listed if siblings else 'see python run.py --cfg job'}"


def known_keys() -> list[str]:
    """Every key of the default composition, dotted, and the groups; empty if that is broken."""
    try:
        content: Any = OmegaConf.to_container(composed(hydra=True))
    except (HydraException, OmegaConfBaseException):
        return []
    groups = [group for group in content.pop("hydra")["runtime"]["choices"] if "/" not in group]
    return list(dict.fromkeys([*_flat(content), *groups]))


def _flat(content: Mapping[Any, Any], prefix: str = "") -> Iterable[str]:
    for key, value in content.items():
        yield f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")


def _invalid_value(error: BaseException) -> str:
    """``Error merging override hardware.sram_bytes=abc: Value 'abc' … (hardware.sram_bytes)``."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    first, *others = _lines(cause)
    keys = [line.removeprefix("full_key: ") for line in others if line.startswith("full_key: ")]
    return ": ".join([*keys[:1], first])


def _lines(error: BaseException) -> list[str]:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines or [type(error).__name__]
