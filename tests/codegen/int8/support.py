"""Plans by a planner that cannot be wrong, and generated C run natively."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline.codegen import generate
from pipeline.codegen.card import image
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware, Memory
from pipeline.home import ROOT
from pipeline.plan.vocabulary import Buffer, Compute, Plan, Track, packed, whole
from tests.codegen.support import SANITIZERS, compiled
from tests.comparing import equal, said
from tests.strategies.chains import board
from tests.tracing import begins

DEVICE = ROOT / "firmware" / "storage" / "file_device.c"
"""The card of a plan that swaps."""

MAIN = r"""
#include "model.h"
#include <stdio.h>
#include <string.h>
/* frames on stdin, outputs on stdout */
static unsigned char frame[NN_INPUT_BYTES];
int main(void) {
    for (unsigned n = 0; fread(frame, 1, sizeof frame, stdin) == sizeof frame; n++) {
        if (nn_init() != NN_OK) return 2;
#if NN_INPUT_FILLABLE
        if (n % 2) {
            memcpy(nn_input(), frame, sizeof frame);
        } else
#endif
        {
            const uint32_t half = NN_INPUT_BYTES / 2;
            if (half && (nn_feed(frame, half) != NN_OK || nn_invoke() != NN_INCOMPLETE)) return 3;
            if (nn_feed(frame + half, NN_INPUT_BYTES - half) != NN_OK) return 4;
            if (nn_feed(frame, 1) != NN_CORRUPT) return 5;
        }
        if (nn_invoke() != NN_OK) return 6;
#ifdef NN_OUTPUT_TAKEN
        nn_output_t values[7];
        for (uint32_t left = NN_OUTPUT_COUNT, some; left; left -= some) {
            some = left < 7 ? left : 7;
            if (nn_take(values, some) != NN_OK) return 8;
            fwrite(values, sizeof *values, some, stdout);
        }
        if (nn_take(values, 1) != NN_INCOMPLETE) return 9;
#else
        fwrite(nn_output(), sizeof(nn_output_t), NN_OUTPUT_COUNT, stdout);
#endif
#if NN_INPUT_KEPT
        if (memcmp(nn_input(), frame, sizeof frame)) return 7;
#endif
    }
    return 0;
}
"""


def host(sram_bytes: int = 1 << 24) -> Hardware:
    return replace(board(False, "flash", sram_bytes), flash_bytes=1 << 26)


def apart(graph: Graph, sram_bytes: int = 1 << 24) -> Plan:
    """Every tensor at an address of its own, operators in the graph's order."""
    buffers, top = [], 0
    for name, tensor in graph.tensors.items():
        if name not in graph.constants:
            layout = packed(tensor.shape, tensor.dtype.bits, top)
            buffers.append(Buffer(name, name, "sram", tensor.shape, tensor.dtype.bits, layout))
            top += -(-tensor.size * tensor.dtype.bits // 32) * 8
    fixed = constants(graph)
    by_name = {buffer.name: buffer for buffer in (*buffers, *fixed)}
    steps = tuple(
        Compute(
            op.name,
            whole(by_name[op.output]),
            tuple(whole(by_name[name]) for name in dict.fromkeys((*op.inputs, *op.parameters))),
        )
        for op in graph.operators
    )
    memories = (Memory("sram", sram_bytes), Memory("flash", 1 << 26, "rom"))
    resident = (graph.input, *(buffer.name for buffer in fixed))
    return Plan(
        graph.name, "apart", memories, (*buffers, *fixed), (Track("cpu", steps),), resident,
        graph.output,
    )  # fmt: skip


def constants(graph: Graph) -> list[Buffer]:
    fixed, top = [], 0
    for name in graph.constants:
        tensor = graph.tensors[name]
        layout = packed(tensor.shape, tensor.dtype.bits, top)
        fixed.append(
            Buffer(name, name, "flash", tensor.shape, tensor.dtype.bits, layout, "constant")
        )
        top += -(-tensor.size * tensor.dtype.bits // 8) * 2
    return fixed


class Native:
    """``graph`` as generated for ``plan``, compiled natively; a crash is an error."""

    def __init__(
        self,
        folder: Path,
        graph: Graph,
        plan: Plan,
        *,
        sanitize: bool = True,
        files: Mapping[str, str] | None = None,
        device: Path | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        """``files``: what was generated, if not by ``affine``; ``device``: the card, if not
        ``DEVICE``; ``options``: the compiler's."""
        self.graph, self.about = graph, said(graph, plan, folder, "host")
        self.about["begins"] = lambda frame: begins(
            graph, plan, folder, self.given[frame], self.sent(self.given[frame])
        )
        folder.mkdir(parents=True, exist_ok=True)
        self.files = files or generate(graph, plan, host(), {})
        written = {**self.files, "main.c": MAIN}
        self.card = folder / image.NAME
        if plan.on_card:
            written[(device or DEVICE).name] = (device or DEVICE).read_text()
            image.Image(graph, plan).write(self.card)
        for name, content in written.items():
            (folder / name).write_text(content)
        self.program = folder / "program"
        flags = SANITIZERS if sanitize else ("-O2",)
        sources = sorted(name for name in written if name.endswith(".c"))
        compiled(folder, (*flags, *options), sources)

    def __call__(self, frames: IntArray) -> IntArray:
        """(n, *input shape) -> (n, *output shape)."""
        status, found = self.run(frames)
        assert status == 0
        return found

    def run(self, frames: IntArray) -> tuple[int, IntArray]:
        """The status that the program ends with, see MAIN, and the outputs until then."""
        tensors = self.graph.tensors
        self.given, target = frames, tensors[self.graph.output]
        done = subprocess.run(
            [str(self.program)],
            cwd=self.program.parent,
            input=self.sent(frames),
            capture_output=True,
            check=False,
        )
        assert not done.stderr, (done.returncode, done.stderr.decode()[-2000:])
        values = np.frombuffer(done.stdout, target.dtype.stored)
        return done.returncode, values.astype(np.int64).reshape(-1, *target.shape)

    def sent(self, frames: IntArray) -> bytes:
        return frames.astype(self.graph.tensors[self.graph.input].dtype.stored).tobytes()


def frames(graph: Graph, count: int = 6, seed: int = 0) -> IntArray:
    """Random frames, the darkest and the brightest one first."""
    tensor = graph.tensors[graph.input]
    low, high = tensor.dtype.minimum, tensor.dtype.maximum
    random = np.random.default_rng(seed).integers(low, high + 1, (count, *tensor.shape))
    random[0], random[1] = low, high
    return random


def agrees(native: Native, count: int = 6) -> bool:
    given = frames(native.graph, count)
    equal(native(given), native.graph.outputs(given), **native.about)
    return True
