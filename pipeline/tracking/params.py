"""The parameters of a run: what a person chooses. All else is in its params.yaml, an artifact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

NONE = ("paper", "figure", "output", "tracking", "cache")
"""Keys of the config that are no choice, or that change no result."""

BOARD = ("name", "clock_hz", "sram_bytes", "flash_bytes", "weights_in", "activations_in")
"""What is chosen of a board; its other constants are parameters only where they were set."""

LONGEST = 500
"""Characters of a value."""


def params(
    config: Mapping[str, Any], versions: Mapping[str, Any], overrides: Iterable[str]
) -> dict[str, str]:
    """One parameter a key of the resolved ``config`` that has a value, dotted; and the tools'
    ``versions``.

    Args:
        overrides: what was set on the command line, ``key=value``.
    """
    typed = {word.partition("=")[0].lstrip("+~") for word in overrides}
    found = {
        key: value
        for key, value in _flat({key: config[key] for key in config if key not in NONE})
        if value != "" and not key.endswith("._target_") and (_chosen(key) or key in typed)
    }
    found |= {f"versions.{name}": version for name, version in versions.items()}
    return {key: str(value)[:LONGEST] for key, value in found.items()}


def _chosen(key: str) -> bool:
    group, _, rest = key.partition(".")
    return group != "hardware" or rest in BOARD


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
