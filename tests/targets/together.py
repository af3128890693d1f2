"""Many networks in one firmware for a simulated core: compiled once, run by one QEMU.

Each has a prefix of its own. A stand-in ``model.c`` has all their inputs for its input and all
their outputs for its outputs, and feeds each network in pieces of another size, so that the
harness, the board's limits and the bound of the stack are those of any other firmware.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from pipeline import artifacts
from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import FlashTiming, Hardware, Uart
from pipeline.plan.vocabulary import Plan
from pipeline.prefix import Prefix
from pipeline.targets import builds, qemu, toolchain
from pipeline.targets.harness import harness_sources
from tests.importers.tflite_reference import frames

PIECES = (1, 3, 64, 1 << 16, 17)
"""Bytes that are fed at once, to one network after the other."""

HEADER = """
#ifndef MODEL_H
#define MODEL_H
#include <stdint.h>
#define NN_INPUT_BYTES {inputs}
#define NN_OUTPUT_COUNT {outputs}
#define NN_ARENA_BYTES {arena}
typedef uint8_t nn_output_t;
typedef enum {{ NN_OK, NN_INCOMPLETE, NN_CORRUPT }} nn_status_t;
nn_status_t nn_init(void);
nn_status_t nn_feed(const uint8_t *bytes, uint32_t count);
nn_status_t nn_invoke(void);
const nn_output_t *nn_output(void);
#endif
"""

SOURCE = """
#include "model.h"
#include <string.h>
{includes}
static uint8_t nn_arena[NN_ARENA_BYTES];
static uint32_t nn_fed;
nn_status_t nn_init(void) {{
    nn_fed = 0;
    return {init} ? NN_OK : NN_CORRUPT;
}}
nn_status_t nn_feed(const uint8_t *bytes, uint32_t count) {{
    for (; count; count--) {{
        nn_arena[nn_fed++] = *bytes++;
    }}
    return NN_OK;
}}
nn_status_t nn_invoke(void) {{
    const uint8_t *from = nn_arena;
    uint8_t *to = nn_arena + NN_INPUT_BYTES;
{invoke}
    return NN_OK;
}}
const nn_output_t *nn_output(void) {{ return nn_arena + NN_INPUT_BYTES; }}
"""

ONE = """
    for (uint32_t at = 0; at < {NN}_INPUT_BYTES; at += {piece}) {{
        const uint32_t left = {NN}_INPUT_BYTES - at;
        if ({nn}_feed(from + at, left < {piece} ? left : {piece}) != {NN}_OK) {{
            return NN_INCOMPLETE;
        }}
    }}
    if ({nn}_invoke() != {NN}_OK) {{
        return NN_CORRUPT;
    }}
    memcpy(to, {nn}_output(), sizeof({nn}_output_t) * {NN}_OUTPUT_COUNT);
    from += {NN}_INPUT_BYTES;
    to += sizeof({nn}_output_t) * {NN}_OUTPUT_COUNT;"""


@dataclass(frozen=True)
class Case:
    """A network, its plan, ``given`` (n, *input shape), as many as the others have, and what they
    are ``expected`` to give."""

    name: str
    graph: Graph
    plan: Plan
    given: IntArray
    expected: IntArray

    @classmethod
    def of(cls, name: str, graph: Graph, plan: Plan, count: int = 2, seed: int = 0) -> Case:
        given = frames(graph, count, seed)
        return cls(name, graph, plan, given, graph.outputs(given))


def differing(folder: Path, cases: Sequence[Case], hardware: Hardware) -> list[str]:
    """The names of the cases that ``hardware``, simulated, gives other outputs for."""
    hardware = replace(hardware, flash_timing=FlashTiming(), uart=Uart())  # no cycles, no board.elf
    names = [Prefix(f"n{number}") for number in range(len(cases))]
    _write(folder / "generated", cases, names, hardware)
    with patch.object(toolchain, "build_host"):  # that the C is right natively is tested elsewhere
        size = builds.build(folder / "generated", folder / "build", hardware)
    assert size.status == "ok", f"{size.resource}: {size.needed_bytes:,} B, have fewer networks"
    given = np.concatenate([_bytes(case.given, case.graph.input, case) for case in cases], axis=1)
    runs = qemu.run(folder / "build", vars(size), hardware, given)
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes
    wanted = [_bytes(case.expected, case.graph.output, case) for case in cases]
    ends = np.cumsum([part.shape[1] for part in wanted])
    parts = np.split(runs.outputs.view(np.uint8).reshape(len(given), -1), ends[:-1], axis=1)
    return [
        case.name for case, part, want in zip(cases, parts, wanted, strict=True)
        if not np.array_equal(part, want)
    ]  # fmt: skip


def _bytes(values: IntArray, tensor: str, case: Case) -> np.ndarray:
    """(n, bytes), as the firmware has them."""
    kind = case.graph.tensors[tensor].dtype
    stored = np.ascontiguousarray(values.reshape(len(values), -1).astype(str(kind)))
    return stored.view(np.uint8).reshape(len(values), -1)


def _write(
    folder: Path, cases: Sequence[Case], names: Sequence[Prefix], hardware: Hardware
) -> None:
    files = harness_sources(hardware)
    for case, name in zip(cases, names, strict=True):
        own = name.files(generate(case.graph, case.plan, hardware, {}))
        files |= {file: text.replace("_ARENA_BYTES", "_OWN_BYTES") for file, text in own.items()}
    inputs = sum(_bytes(case.given[:1], case.graph.input, case).size for case in cases)
    outputs = sum(_bytes(case.expected[:1], case.graph.output, case).size for case in cases)
    numbers = {"inputs": inputs, "outputs": outputs, "arena": -(-(inputs + outputs) // 8) * 8}
    words = [{"nn": name.text, "NN": name.text.upper()} for name in names]
    files["model.h"] = HEADER.format(**numbers)
    files["model.c"] = SOURCE.format(
        includes="\n".join(f'#include "{name.header}"' for name in names),
        init=" && ".join("{nn}_init() == {NN}_OK".format(**word) for word in words),
        invoke="".join(
            ONE.format(**word, piece=PIECES[number % len(PIECES)])
            for number, word in enumerate(words)
        ),
    )
    files["link.ld"] = files["link.ld"].replace(  # all arenas are painted, and never cleared
        "    .data (port", "    .arenas (NOLOAD) : { *(.bss.n*_arena) }\n    .data (port", 1
    )
    for name, content in files.items():
        artifacts.write_text(folder / name, content)
