"""Look up the way of building that a core has. The one place that knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline import prefix
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import card, cortex_m, native, toolchain
from pipeline.targets.harness import check_reply
from pipeline.targets.toolchain import Size

BUILDS: dict[str, Callable[[Path, Path, Hardware], Size]] = {
    "avr": toolchain.build,
    "cortex_m": cortex_m.build,
    "host": native.build,
}


def build(generated: Path, output: Path, hardware: Hardware) -> Size:
    """Compile the folder ``generated`` into ``output`` and say what it takes.

    Raises:
        ThimbleError: there is no build for the core, the network gives more than its protocol can
            say (before anything is compiled), or what that core's build raises.
    """
    if hardware.core not in BUILDS:
        raise ThimbleError(
            f"hardware {hardware.name}: no build for core {hardware.core!r}; have "
            f"{', '.join(BUILDS)}"
        )
    check_reply(generated / prefix.of(generated).header)
    card.carry(generated, output)
    return BUILDS[hardware.core](generated, output, hardware)
