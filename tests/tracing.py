"""Find the layer at which generated C begins to differ: the arena is written out after each call,
and the first layer whose tensor is never in it as it should be is the one.

Only a test that has failed pays for it.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.plan.storage import Storage
from pipeline.plan.vocabulary import Buffer, Plan

CALL = re.compile(r"^( *)(?:const nn_status_t \w+ = )?([a-z]\w+)\([^;]*\);$", re.MULTILINE)
TRACE = """
#include <stdio.h>
#include <string.h>
static void nn_traced(const char *name) {
    static FILE *to;
    char call[64] = {0};
    strncpy(call, name, sizeof call - 1);
    if (!to) to = fopen("trace", "wb");
    fwrite(call, 1, sizeof call, to);
    fwrite(nn_arena, 1, sizeof nn_arena, to);
    fflush(to);
}
"""
NAME_BYTES = 64
COMMON = ("nn_traced", "nn_init", "nn_feed", "nn_invoke", "nn_run", "nn_once_invoke")
LONGEST_BYTES = 1 << 28


def begins(graph: Graph, plan: Plan, folder: Path, frame: IntArray, data: bytes) -> str:
    """Say at which layer the C in ``folder`` begins to differ from ``graph`` on ``frame``.

    Args:
        folder: holds model.c, main.c and what they need.
        data: what the program reads.
    """
    calls, arenas = _traced(folder, data)
    if not calls:
        return "no layer can be told: the program ran no call that could be traced"
    values = graph.run(frame[None])
    buffers = _whole(plan, graph)
    for op in graph.operators:
        buffer = buffers.get(op.output)
        if buffer is None:
            continue
        right = values[op.output][0]
        stored = [_stored(buffer, graph, arena) for arena in arenas]
        wrong = [int(np.count_nonzero(each != right)) for each in stored]
        if min(wrong):
            own = [i for i, call in enumerate(calls) if op.name in call] or range(len(calls))
            nearest = min(own, key=lambda i: wrong[i])
            place = tuple(int(n) for n in np.argwhere(stored[nearest] != right)[0])
            return (
                f"begins in layer {op.name}, C function {calls[nearest]}, tensor {op.output}: "
                f"{wrong[nearest]} of {right.size} elements differ, first at {list(place)}: "
                f"expected {right[place]}, got {stored[nearest][place]}"
            )
    return "all layers whose tensors are whole in memory are right"


def _traced(folder: Path, data: bytes) -> tuple[list[str], list[np.ndarray]]:
    """The calls that the program makes of model.c's functions, and the arena after each."""
    source = (folder / "model.c").read_text()
    head, arena, rest = re.split(r"(static uint8_t nn_arena\[[^;]*;)", source, maxsplit=1)
    found = re.search(r"^(nn_status_t nn_init|static void nn_run)\(void\) \{", rest, re.MULTILINE)
    start = found.start() if found else 0
    steps = CALL.sub(
        lambda call: (
            call[0] if call[2] in COMMON else f'{call[0]}\n{call[1]}nn_traced("{call[2]}");'
        ),
        rest[start:],
    )
    (folder / "traced.c").write_text(head + arena + TRACE + rest[:start] + steps)
    others = [path.name for path in folder.glob("*.c") if path.name not in ("model.c", "traced.c")]
    command = ["cc", "-std=gnu99", "-O1", "-w", "traced.c", *others, "-o", "traced"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    trace = folder / "trace"
    trace.unlink(missing_ok=True)
    subprocess.run(
        [str(folder / "traced")], cwd=folder, input=data, check=False, capture_output=True
    )
    if not trace.exists() or trace.stat().st_size > LONGEST_BYTES:
        return [], []
    size = _arena_bytes(folder)
    rows = np.frombuffer(trace.read_bytes(), np.uint8)
    rows = rows[: len(rows) // (size + NAME_BYTES) * (size + NAME_BYTES)]
    rows = rows.reshape(-1, size + NAME_BYTES)
    names = [bytes(row[:NAME_BYTES]).rstrip(b"\0").decode() for row in rows]
    return names, [row[NAME_BYTES:] for row in rows]


def _arena_bytes(folder: Path) -> int:
    """By the compiler, which knows what the headers make of it."""
    probe = '#include "traced.c"\nchar size[sizeof nn_arena];\n'
    command = ["cc", "-std=gnu99", "-w", "-c", "-x", "c", "-", "-o", "size.o"]
    subprocess.run(command, cwd=folder, input=probe.encode(), check=True, capture_output=True)
    said = subprocess.run(["nm", "-S", "size.o"], cwd=folder, check=True, capture_output=True)
    (line,) = (each for each in said.stdout.decode().splitlines() if each.endswith(" size"))
    return int(line.split()[1], 16)


def _whole(plan: Plan, graph: Graph) -> Mapping[str, Buffer]:
    """Tensor -> the buffer that holds all of it, as what it is, in the arena's memory."""
    return {
        buffer.tensor: buffer
        for buffer in plan.buffers
        if buffer.tensor in graph.tensors
        and buffer.tensor not in graph.constants
        and buffer.role != "accumulator"
        and buffer.memory == plan.memories[0].name
        and buffer.shape == graph.tensors[buffer.tensor].shape
    }


def _stored(buffer: Buffer, graph: Graph, arena: np.ndarray) -> IntArray:
    storage, addresses = Storage(0), buffer.addresses(buffer.box)
    room = int(addresses.max()) // 2 + 5
    storage.bytes = np.resize(arena, max(room, len(arena))).copy()
    return storage.read(addresses, graph.tensors[buffer.tensor].dtype).reshape(buffer.shape)
