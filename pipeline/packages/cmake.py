"""A static library for CMake, the toolchain file of its core, and an example that says what it
computes of one image: in QEMU for a Cortex-M, natively on this computer. For a Cortex-M the same
folder is a module of Zephyr; for Raspberry Pi's it has an application of the Pico SDK, too. With a
front end there is one for this computer's microphone."""

from __future__ import annotations

from pipeline.codegen.render import FIRMWARE, render
from pipeline.packages.library import Library
from pipeline.packages.package import Package

LEVEL = "-O2"
"""Optimization level of the CMakeLists.txt."""
STATIC = ("link.ld", "start.c")
"""Files of the example in QEMU."""
ZEPHYR = ("zephyr/module.yml", "zephyr/Kconfig", "zephyr/CMakeLists.txt")
PICO = ("pico/CMakeLists.txt", "pico/main.c")
PICO_SDK = "raspberrypi"
"""PlatformIO's name of the boards that the SDK is for."""


def package(library: Library) -> Package:
    hardware = library.hardware
    machine = [flag for flag in hardware.toolchain.flags if flag.startswith("-m")]
    platform, _, board = hardware.platformio.partition("/")
    asked = {
        "board": board,
        "library": library,
        "core": hardware.core,
        "machine": machine,
        "compiler": hardware.toolchain.compiler,
    }
    listens = ("listen.c",) * (library.listens and hardware.core == "host")
    more = (*ZEPHYR * (hardware.core == "cortex_m"), *PICO * (platform == PICO_SDK))
    programs = {path: render(f"cmake/{path}.j2", **asked) for path in ("main.c", *listens, *more)}
    examples = {path: f"example/{path}" for path in ("main.c", *listens)}
    files = library.placed(programs, {path: path for path in more} | examples)
    files["CMakeLists.txt"] = render("cmake/CMakeLists.txt.j2", **asked)
    if hardware.core != "host":
        files["cmake/toolchain.cmake"] = render("cmake/toolchain.cmake.j2", **asked)
    if hardware.core == "cortex_m":
        for name in STATIC:
            files[f"example/{name}"] = (FIRMWARE / "packages" / "cmake" / name).read_text()
    return Package(library.name, files)
