"""Which board each kind of package is for: asked before the first stage of a run."""

from __future__ import annotations

from pipeline.errors import ThimbleError

PLATFORMIO = {
    "arduino": ("atmelavr", "uno"),
    "nucleo_f446re": ("ststm32", "nucleo_f446re"),
    "nucleo_f767zi": ("ststm32", "nucleo_f767zi"),
    "nucleo_g0b1re": ("ststm32", "nucleo_g0b1re"),
    "nucleo_l4r5zi": ("ststm32", "nucleo_l4r5zi"),
    "nucleo_u575zi": ("ststm32", "nucleo_u575zi_q"),
    "stm32f746g_disco": ("ststm32", "disco_f746ng"),
    "stm32f769i_disco": ("ststm32", "disco_f769ni"),
}
"""PlatformIO's platform and board by ``hardware.name``."""


def check(kind: str, hardware: str, core: str) -> None:
    """
    Raises:
        ThimbleError: there is no package of this kind for the board called ``hardware``.
    """
    if kind == "arduino" and core != "avr":
        raise ThimbleError(
            f"package=arduino: hardware={hardware} is no Arduino with an AVR; try "
            "package=platformio or package=cmake"
        )
    if kind == "platformio" and hardware not in PLATFORMIO:
        raise ThimbleError(
            f"package=platformio: hardware={hardware} is not known to be one of its boards; "
            f"have {', '.join(PLATFORMIO)}, or try package=cmake"
        )
