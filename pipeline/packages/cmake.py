"""A static library for CMake, the toolchain file of its core, and an example that says what it
computes of one image: in QEMU for a Cortex-M, natively on this computer."""

from __future__ import annotations

from pipeline.codegen.render import FIRMWARE, render
from pipeline.packages.library import Library
from pipeline.packages.package import Package

LEVEL = "-O2"
"""Optimization level of the CMakeLists.txt."""
STATIC = ("link.ld", "start.c")
"""Files of the example in QEMU."""


def package(library: Library) -> Package:
    hardware = library.hardware
    machine = [flag for flag in hardware.toolchain.flags if flag.startswith("-m")]
    example = {"main.c": render("cmake/main.c.j2", library=library)}
    files = library.placed(example, {"main.c": "example/main.c"})
    asked = {
        "library": library,
        "core": hardware.core,
        "machine": machine,
        "compiler": hardware.toolchain.compiler,
    }
    files["CMakeLists.txt"] = render("cmake/CMakeLists.txt.j2", **asked)
    if hardware.core != "host":
        files["cmake/toolchain.cmake"] = render("cmake/toolchain.cmake.j2", **asked)
    if hardware.core == "cortex_m":
        for name in STATIC:
            files[f"example/{name}"] = (FIRMWARE / "packages" / "cmake" / name).read_text()
    return Package(library.name, files)
