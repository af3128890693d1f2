"""What Hydra and OmegaConf complain about, in one line with what to type instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.errors import ThimbleError
from pipeline.runner.schema import composed

MOST_LISTED = 12
"""Options of a group that are all named in a message."""


def explain(error: BaseException) -> str | None:
    """One line for a mistake in the command; None when it is not the command's fault."""
    if isinstance(error, ThimbleError):
        return str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _unknown_option(str(error.missing_cfg_file), list(error.options or []))
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not understood, write key=value ({_first(error)})"
    if isinstance(error, (HydraException, OmegaConfBaseException, ConfigCompositionException)):
        key = _unknown_key(error)
        keys = known_keys() if key else []
        return did_you_mean(key, keys) if keys else _invalid_value(error)
    return None


def _unknown_option(option: str, options: list[str]) -> str:
    group, _, name = option.removesuffix(".yaml").rpartition("/")
    near = difflib.get_close_matches(name, options, 3)
    hint = f"did you mean {' or '.join(f'{group}={each}' for each in near)}? " if near else ""
    if len(options) > MOST_LISTED:
        return f"unknown {group} {name!r}: {hint}python run.py --help lists all {len(options)}"
    return f"unknown {group} {name!r}: {hint}there are {', '.join(options)}"


def _unknown_key(error: BaseException) -> str:
    """The full key that exists nowhere in the config, if that is what ``error`` says."""
    text = f"{error}\n{error.__cause__ or ''}"
    for pattern in (
        r"Could not override '([^']+)'\.?\s*\n.*(?:not in|No match)",
        r"Could not override '([^']+)'",
        r"Key '[^']*' not in '[^']*'\s+full_key: (\S+)",
    ):
        if found := re.search(pattern, text, re.DOTALL):
            if pattern.startswith("Could") and "not in" not in text and "No match" not in text:
                return ""
            return found[1]
    return ""


def did_you_mean(key: str, keys: list[str]) -> str:
    """One line for the unknown ``key``, dotted, where there are ``keys``."""
    near = difflib.get_close_matches(key, keys, 1, cutoff=0.5)
    group = key.rpartition(".")[0]
    siblings = [k for k in keys if k.rpartition(".")[0] == group]
    hint = f"did you mean {near[0]}? " if near else ""
    listed = f"{group or 'the top level'} has {', '.join(s.rpartition('.')[2] for s in siblings)}"
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
    cause = error.__cause__ or error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    key = next((line.split(": ", 1)[1] for line in lines if line.startswith("full_key: ")), "")
    return f"{key}: {lines[0]}" if key else (lines[0] if lines else _first(error))


def _first(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
