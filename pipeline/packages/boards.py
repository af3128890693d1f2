"""Boards that each kind of package is for: asked before the first stage of a run."""

from __future__ import annotations

from pipeline.errors import ThimbleError

ARCHITECTURES = {
    "atmelavr": "avr", "atmelsam": "samd", "nordicnrf52": "mbed_nano,mbed,nrf52",
    "raspberrypi": "rp2040,mbed_rp2040", "ststm32": "stm32,mbed_portenta", "teensy": "teensy",
}  # fmt: skip
"""Arduino's cores, as a library names them, by PlatformIO's platforms."""


def check(kind: str, hardware: str, platformio: str) -> None:
    """
    Args:
        hardware, platformio: ``hardware.name`` and ``.platformio``.

    Raises:
        ThimbleError: there is no package of this kind for the board.
    """
    if kind == "arduino" and platformio.partition("/")[0] not in ARCHITECTURES:
        raise ThimbleError(
            f"package=arduino: hardware={hardware} is not known to have an Arduino core; try "
            "package=cmake"
        )
    if kind == "platformio" and platformio.count("/") != 1:
        raise ThimbleError(
            f"package=platformio: hardware={hardware} is not known to be one of its boards; set "
            "hardware.platformio=PLATFORM/BOARD, or try package=cmake"
        )
