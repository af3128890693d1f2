"""Boards that each kind of package is for: asked before the first stage of a run."""

from __future__ import annotations

from pipeline.errors import ThimbleError


def check(kind: str, hardware: str, core: str, platformio: str) -> None:
    """
    Args:
        hardware, core, platformio: ``hardware.name``, ``.core`` and ``.platformio``.

    Raises:
        ThimbleError: there is no package of this kind for the board.
    """
    if kind == "arduino" and core != "avr":
        raise ThimbleError(
            f"package=arduino: hardware={hardware} is no Arduino with an AVR; try "
            "package=platformio or package=cmake"
        )
    if kind == "platformio" and platformio.count("/") != 1:
        raise ThimbleError(
            f"package=platformio: hardware={hardware} is not known to be one of its boards; set "
            "hardware.platformio=PLATFORM/BOARD, or try package=cmake"
        )
