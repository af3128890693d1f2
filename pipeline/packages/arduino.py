"""An Arduino library: a zip for the menu Sketch, Include Library, with examples."""

from __future__ import annotations

from math import prod

from pipeline.codegen.render import render
from pipeline.errors import ThimbleError
from pipeline.packages import boards
from pipeline.packages.library import Library
from pipeline.packages.package import Package

LEVEL = "-Os"
"""As the core compiles."""
CORE_BYTES = 9
"""RAM of the Arduino AVR core's clock; what other cores take is not known here."""
SERIAL_BYTES = 180
"""RAM of Serial with its buffers, and the stack that print needs, on an AVR."""

CAMERAS = ("nano33ble",)
"""Boards for which a common library reads a camera: Arduino_OV767X, from its connector's pins."""
MICROPHONES = ("nano33ble",)
"""Boards whose core reads their microphone: PDM."""
PICTURE = 144, 176
"""Rows and columns of the camera's smallest picture but one."""


def package(library: Library) -> Package:
    """
    Raises:
        ThimbleError: where not even the smallest sketch has room.
    """
    missing = CORE_BYTES - library.memory.left_bytes
    if missing > 0:
        raise ThimbleError(
            f"package=arduino: {library.memory.sram_bytes:,} of "
            f"{library.memory.sram_limit_bytes:,} B: no room for any sketch, {missing} B are "
            "missing; try package.weights_in=flash or a smaller model"
        )
    examples = ["Smallest", *["SerialClassifier"] * has_serial(library)]
    examples += ["Camera"] * has_camera(library)
    examples += ["Listen"] * (library.listens and library.hardware.name in MICROPHONES)
    texts = {f"{name}.ino": _said(f"{name}.ino", library) for name in examples}
    places = {f"{name}.ino": f"examples/{name}/{name}.ino" for name in examples}
    files = library.placed(texts, places)
    files["library.properties"] = _said("library.properties", library)
    if has_serial(library):
        files["extras/send.py"] = _said("send.py", library)
    return Package(library.name, files)


def has_serial(library: Library) -> bool:
    return library.memory.left_bytes >= CORE_BYTES + SERIAL_BYTES


def has_camera(library: Library) -> bool:
    """Check whether there are a camera, and room for a picture and as much again for the core."""
    image = library.image
    seen = library.hardware.name in CAMERAS and len(image) == 3 and image[2] in (1, 3)
    room = library.memory.left_bytes
    return seen and not library.listens and 2 * prod(PICTURE) * min(image[2], 2) <= room


def note(library: Library, in_flash: Library | None) -> str:
    """Say how much RAM is left for a sketch, or how much is missing.

    Args:
        in_flash: the same with its weights there, where that is another one.
    """
    memory = library.memory
    if has_serial(library):
        own = "" if library.hardware.core == "avr" else " and the Arduino core"
        return f"{memory.said}; leaves {memory.left_bytes:,} B for a sketch{own}"
    said = (
        f"{memory.sram_bytes:,} of {memory.sram_limit_bytes:,} B: no room for Serial (about "
        f"{SERIAL_BYTES} B, {CORE_BYTES + SERIAL_BYTES - memory.left_bytes} are missing)"
    )
    if in_flash is not None and in_flash.memory.left_bytes > memory.left_bytes:
        said += f"; package.weights_in=flash leaves {in_flash.memory.left_bytes:,} B"
    return said


def _said(name: str, library: Library) -> str:
    cores = boards.ARCHITECTURES[library.hardware.platformio.partition("/")[0]]
    return render(f"arduino/{name}.j2", library=library, cores=cores, picture=PICTURE)
