"""Estimate what a plan takes once it is built, flash and SRAM, without a compiler: constants are
counted, code by its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

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
LINES = re.compile(r"nn_line_t nn_lines\[(\d+)\]")
ARRAY = re.compile(r"^ +(u?int\d+_t) \w+\[(\d+)\];", re.MULTILINE)
ASSEMBLY = re.compile(r'^ *".*\\n" *$', re.MULTILINE)
TOKEN = re.compile(r"\w+|[^\w\s]+")


class Usual(NamedTuple):
    """Bytes of the program but for the network, of a word or sign of its C, more of an ``int32_t``,
    and of a usual stack: least squares over built networks. An instruction of assembly has 2."""

    base: int
    each: float
    stack: int
    wide: int = 0


BYTES = {
    "avr": Usual(1400, 0.75, 64, 20),
    "cortex-m0plus": Usual(3300, 0.645, 320),
    "cortex-m3": Usual(2600, 0.6, 250),
    "cortex-m4": Usual(2900, 0.51, 250),
    "cortex-m7": Usual(2900, 0.72, 250),
}
NIBBLES = {
    "avr": Usual(1340, 0.72, 64),
    "cortex-m0plus": Usual(2980, 0.93, 260),
    "cortex-m4": Usual(2740, 0.86, 200),
}
"""The same of networks of 4 bits; cores that aren't here are as a Cortex-M4."""

STATICS, LINE_BYTES, BESIDE_BYTES = 20, 10, 50
"""Bytes of what lies beside the arena, of a row of pixels that a kernel of 4 bits goes through
(``nn_lines``), and of a stack beside a large array of a function's own, such as sums."""


def planned(plan: Plan, graph: Graph, hardware: Hardware) -> dict[str, int]:
    """``planned_sram_bytes`` and ``planned_flash_bytes``: about ``sram_bytes`` and ``flash_bytes``
    of what is built; the latter not of plans with a card, nor where there is no C. Nothing for a
    computer."""
    found = _sram(plan, hardware)
    with suppress(ThimbleError):
        if found and not plan.on_card:
            source, constants = outline(graph, plan, hardware)
            usual = _usual(plan, hardware)
            own = "".join(_native(COMMENT.sub("", source), hardware.core))
            tables, code = text_bytes(own, usual)
            arrays = [bytes_of(kind) * int(count) for kind, count in ARRAY.findall(own)]
            more = BESIDE_BYTES + max(arrays, default=0) - usual.stack
            found["planned_sram_bytes"] += max(0, more)
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
    return {"planned_sram_bytes": held + _usual(plan, hardware).stack + STATICS}


def _usual(plan: Plan, hardware: Hardware) -> Usual:
    found = NIBBLES if any(buffer.bits == 4 for buffer in plan.buffers) else BYTES
    return found.get(hardware.cpu or hardware.core, found["cortex-m4"])


def text_bytes(text: str, usual: Usual) -> tuple[int, int]:
    """Estimate the bytes of constants, and of code with all that it is linked with."""
    tables = 0
    for kind, values in TABLE.findall(text):
        tables += bytes_of(kind) * (values.count(",") + (not values.endswith(",\n}")))
    tables += LINE_BYTES * sum(map(int, LINES.findall(text)))
    instructions = sum(":" not in line for line in ASSEMBLY.findall(text))
    text = ASSEMBLY.sub("", TABLE.sub("", text))
    code = usual.each * len(TOKEN.findall(text)) + usual.wide * text.count("int32_t")
    return tables, round(usual.base + 2 * instructions + code)


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
