"""Estimate what a plan takes once it is built, flash and SRAM, without a compiler: constants are
counted, code by its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any

from pipeline import board
from pipeline.codegen import outline
from pipeline.codegen.constants import bytes_of
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan import serialize
from pipeline.plan.cost import high_water_nibbles
from pipeline.plan.vocabulary import Plan

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
TABLE = re.compile(r"(u?int\d+_t) \w+\[\w*\][ \w]*= *(\{[^;]*?\});")
ASSEMBLY = re.compile(r'^ *".*\\n" *$', re.MULTILINE)
TOKEN = re.compile(r"\w+|[^\w\s]+")

CODE = {
    "avr": (1600, 0.85),
    "cortex-m0plus": (3300, 0.645),
    "cortex-m3": (2600, 0.6),
    "cortex-m4": (2900, 0.51),
    "cortex-m7": (2900, 0.72),
}
"""Bytes of the program but for the network, and of a word or sign of its C, by core; least squares
over built networks. An instruction of assembly has 2."""

STACK = {"avr": 64, "cortex-m0plus": 400}
CORTEX_STACK, STATICS = 250, 20
"""Bytes of a usual stack, and of what lies beside the arena."""


def planned(plan: Plan, graph: Graph, hardware: Hardware) -> dict[str, int]:
    """``planned_sram_bytes`` and ``planned_flash_bytes``: about ``sram_bytes`` and ``flash_bytes``
    of what is built; the latter not of plans with a card, nor where there is no C. Nothing for a
    computer."""
    found = _sram(plan, hardware)
    with suppress(ThimbleError):
        if found and not plan.on_card:
            source, constants = outline(graph, plan, hardware)
            tables, code = text_bytes(source, hardware.cpu or hardware.core)
            found["planned_flash_bytes"] = constants + tables + code
    return found


def planned_in(folder: Path, described: Mapping[str, Any]) -> dict[str, int]:
    """Estimate what the plan in a run's ``folder`` takes on a board, as its config describes it."""
    plan, hardware = serialize.load(folder / "plan.json"), board.hardware(described)
    if plan.on_card:  # its graph may be large
        return _sram(plan, hardware)
    return planned(plan, Graph.load(folder), hardware)


def _sram(plan: Plan, hardware: Hardware) -> dict[str, int]:
    if hardware.core == "host":
        return {}
    held = ceil(high_water_nibbles(plan, hardware.stack_memory, constants=True) / 2)
    stack = STACK.get(hardware.cpu or hardware.core, CORTEX_STACK)
    return {"planned_sram_bytes": held + stack + STATICS}


def text_bytes(source: str, core: str) -> tuple[int, int]:
    """Estimate the bytes of constants, and of code with all that it is linked with."""
    text, tables = "".join(_native(COMMENT.sub("", source), core)), 0
    for kind, values in TABLE.findall(text):
        tables += bytes_of(kind) * (values.count(",") + (not values.endswith(",\n}")))
    text = TABLE.sub("", text)
    base, each = CODE.get(core, CODE["cortex-m4"])
    instructions = sum(":" not in line for line in ASSEMBLY.findall(text))
    words = len(TOKEN.findall(ASSEMBLY.sub("", text)))
    return tables, round(base + 2 * instructions + each * words)


def _native(source: str, core: str) -> Iterator[str]:
    """Yield the lines that are compiled for ``core``: its own, not their portable twins."""
    branches: list[bool] = []
    for line in source.splitlines(keepends=True):
        if line.startswith("#if"):
            branches.append("__AVR__" not in line or core == "avr")
        elif line.startswith("#endif"):
            branches.pop()
        elif line.startswith("#else"):
            branches[-1] = not branches[-1]
        elif all(branches):
            yield line
