"""List the kinds of packages. The one place that knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.packages import arduino, cmake, platformio
from pipeline.packages.library import Library
from pipeline.packages.package import Package

NONE = "none"


@dataclass(frozen=True)
class Kind:
    """
    Attributes:
        level: of optimization, as whoever compiles it has it.
        make: what is in it.
        note: what a person is told of it; of a second library, the same with its weights in flash.
    """

    level: str
    make: Callable[[Library], Package]
    note: Callable[[Library, Library | None], str]


def _in_words(library: Library, _: Library | None) -> str:
    return library.memory.said if library.memory.stack.bytes else "for this computer"


KINDS = {
    "arduino": Kind(arduino.LEVEL, arduino.package, arduino.note),
    "platformio": Kind(platformio.LEVEL, platformio.package, _in_words),
    "cmake": Kind(cmake.LEVEL, cmake.package, _in_words),
}
