"""The parameters of a run: what a person chooses. All else is in its params.yaml, an artifact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from pipeline import home

NONE = ("paper", "figure", "output", "tracking", "cache")
"""Keys of the config that are no choice, or that change no result."""

BOARD = ("hardware.name", "hardware.card.security")
"""Keys that are chosen of every board."""

LONGEST = 500
"""Characters of a value."""


def params(
    config: Mapping[str, Any], versions: Mapping[str, Any], overrides: Iterable[str]
) -> dict[str, str]:
    """One parameter a key of the resolved ``config`` that has a value, dotted; and the tools'
    ``versions``. A board's constants are none, unless the command or an experiment changed them.

    Args:
        overrides: what was set on the command line, ``key=value``.
    """
    typed = {word.partition("=")[0].lstrip("+~") for word in overrides}
    board = _written(str(config.get("hardware", {}).get("name")))
    found = {
        key: value
        for key, value in flat({key: config[key] for key in config if key not in NONE})
        if value != "" and not key.endswith("._target_")
        if not key.startswith("hardware.")
        or key in {*BOARD, *typed}
        or board.get(key, value) != value
    }
    found |= {f"versions.{name}": version for name, version in versions.items()}
    return {key: str(value)[:LONGEST] for key, value in found.items()}


def _written(board: str) -> dict[str, Any]:
    """Return the numbers and words in the files of ``board``, its chip and its core: a run that has
    others has chosen them. Empty where it is the user's own file, elsewhere."""
    path = home.ROOT / "conf" / "hardware" / f"{board}.yaml"
    content = yaml.load(path.read_text(), yaml.CSafeLoader) if path.is_file() else {}
    found: dict[str, Any] = {}
    for base in content.pop("defaults", ()):
        if isinstance(base, str):
            found |= _written(f"{board.rpartition('/')[0]}/{base}".lstrip("/"))
        for group, option in base.items() if isinstance(base, dict) else ():
            group, _, package = group.removeprefix("/hardware/").partition("@")
            found |= _written(f"{group}/{option}") if package == "_here_" else {}
    own = ((k, v) for k, v in flat(content) if not isinstance(v, list) and "$" not in str(v))
    return found | {f"hardware.{key}": value for key, value in own}


def flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a config by their dotted keys."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
