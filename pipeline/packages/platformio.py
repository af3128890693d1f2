"""A library for PlatformIO, and a project that uses it on the board: ``pio run`` is all to type."""

from __future__ import annotations

import json

from pipeline.codegen.render import render
from pipeline.packages.library import Library
from pipeline.packages.package import Package

LEVEL = "-Os"
"""Optimization level, PlatformIO's for Arduino sketches."""


def package(library: Library) -> Package:
    """Package for a board that there is one for, see ``boards``."""
    platform, board = library.hardware.platformio.split("/")
    sketch = render("arduino/SerialClassifier.ino.j2", library=library)
    main = {"main.cpp": f"#include <Arduino.h>\n\n{sketch}"}
    files = library.placed(main, {"main.cpp": "project/src/main.cpp"})
    files["library.json"] = json.dumps(_about(library, platform), indent=2) + "\n"
    files["project/platformio.ini"] = render(
        "platformio/platformio.ini.j2", library=library, platform=platform, board=board
    )
    files["extras/send.py"] = render("arduino/send.py.j2", library=library)
    return Package(library.name, files)


def _about(library: Library, platform: str) -> dict[str, object]:
    return {
        "name": library.name,
        "version": library.version,
        "description": f"{library.about}, as C whose memory is known before it is compiled.",
        "keywords": "neural network, inference",
        "frameworks": "*",
        "platforms": platform,
        "headers": library.options.names.header,
        "build": {"srcDir": "src", "includeDir": "src"},
    }
