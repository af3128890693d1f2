"""Generated C, compiled natively and run on frames; graphs and boards to generate for."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import ihex
from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from tests.comparing import equal, said
from tests.strategies.chains import board
from tests.tiers import quick
from tests.tracing import begins

SANITIZERS = ("-g1", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WARNINGS = ("-std=gnu99", "-Wall", "-Wextra", "-Werror")

MAIN = r"""
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#ifdef NN_PARAMETER_BYTES
/* Backwards in two pieces, twice: only the last bytes count, and only once they are checked. */
static int load(void) {
    static uint8_t sent[NN_PARAMETER_BYTES];
    const uint16_t half = NN_PARAMETER_BYTES / 2;
    if (fread(sent, 1, sizeof sent, stdin) != sizeof sent) return 20;
    if (nn_invoke() != NN_NO_PARAMETERS || nn_loaded() != NN_NO_PARAMETERS) return 21;
    sent[half] ^= 1;
    if (nn_load(half, sent + half, sizeof sent - half) != NN_OK) return 22;
    if (nn_load(0, sent, half) != NN_OK || nn_loaded() != NN_NO_PARAMETERS) return 23;
    sent[half] ^= 1;
    if (nn_load(half, sent + half, 1) != NN_OK) return 24;
    if (nn_invoke() != NN_NO_PARAMETERS) return 25;
    if (nn_loaded() != NN_OK || nn_invoke() != NN_INCOMPLETE) return 26;
    if (nn_load(1, sent, sizeof sent) != NN_CORRUPT) return 27;
    return nn_invoke() == NN_NO_PARAMETERS && nn_loaded() == NN_OK ? 0 : 28;
}
#else
static int load(void) { return 0; }
#endif
/* frames on stdin, fed in chunks of argv[1] bytes; outputs on stdout */
int main(int argc, char **argv) {
    uint8_t frame[NN_INPUT_BYTES];
    /* on AVR nn_feed counts in 16 bits */
    const uint32_t most = NN_INPUT_BYTES < 0x8000 ? NN_INPUT_BYTES : 0x8000;
    const uint32_t chunk = argc > 1 ? (uint32_t)atoi(argv[1]) : most;
    const int refused = load();
    if (refused) return refused;
    while (fread(frame, 1, sizeof frame, stdin) == sizeof frame) {
        if (nn_init() != NN_OK) return 2;
        for (uint32_t at = 0; at < NN_INPUT_BYTES; at += chunk) {
            if ((at > 0 || !NN_INPUT_FILLABLE) && nn_invoke() != NN_INCOMPLETE) return 3;
            const uint32_t left = NN_INPUT_BYTES - at;
            if (nn_feed(frame + at, left < chunk ? left : chunk) != NN_OK) return 4;
        }
        if (nn_feed(frame, 1) != NN_CORRUPT) return 5;
        if (nn_invoke() != NN_OK) return 6;
        fwrite(nn_output(), sizeof(nn_output_t), NN_OUTPUT_COUNT, stdout);
        if (!NN_INPUT_FILLABLE && nn_invoke() != NN_INCOMPLETE) return 7;
    }
    return 0;
}
"""


def uno(weights_in: str = "sram", streams: bool = True) -> Hardware:
    """An Arduino Uno with room for any test's activations."""
    return replace(board(streams, weights_in), core="avr", part="atmega328p")


def write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


def compiled(folder: Path, flags: Sequence[str], sources: Sequence[str]) -> None:
    """Compile ``sources`` to ``program``: model.c and main.c as one, in half the time."""
    both = '#include "model.c"\n#include "main.c"\n'
    rest = [name for name in sources if name not in ("model.c", "main.c")]
    texts = [path.read_text() for path in folder.glob("*.[ch]")]
    if "-O0" in flags and any("#pragma GCC unroll" in text for text in texts):
        flags = (*flags, "-Wno-error")  # gcc says that it does not unroll
    linker = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []  # in a third of the time
    command = ["cc", *WARNINGS, *flags, *rest, *linker, "-o", "program", "-x", "c", "-I.", "-"]
    done = subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, input=both
    )
    assert done.returncode == 0, done.stderr[:3000]


class Native:
    """``graph`` as generated for ``plan``, compiled natively; a crash is an error."""

    def __init__(
        self, folder: Path, graph: Graph, plan: Plan, hardware: Hardware, *, sanitize: bool = True
    ) -> None:
        self.graph, self.folder = graph, folder
        self.about = said(graph, plan, folder, hardware.name)
        self.about["begins"] = lambda frame: begins(
            graph, plan, folder, self.given[frame], self.parameters + self.sent(self.given[frame])
        )
        write(folder, {**generate(graph, plan, hardware, {}), "main.c": MAIN})
        sent = folder / "parameters.hex"
        self.parameters = ihex.flash_image(sent) if sent.exists() else b""
        self.program = folder / "program"
        flags = SANITIZERS if sanitize else ("-O1",)
        compiled(folder, flags, ["model.c", "main.c"])

    def __call__(self, frames: IntArray, chunk: int | None = None) -> IntArray:
        """(n, *input shape) -> (n, *output shape)."""
        self.given = frames
        output = self.graph.tensors[self.graph.output]
        data = self.parameters + self.sent(frames)
        command = [str(self.program), *([str(chunk)] if chunk else [])]
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
        values = np.frombuffer(done.stdout, np.dtype(str(output.dtype)))
        return values.astype(np.int64).reshape(-1, *output.shape)

    def sent(self, frames: IntArray) -> bytes:
        dtype = self.graph.tensors[self.graph.input].dtype
        return frames.astype(np.int8 if dtype.signed else np.uint8).tobytes()


def by_tier(kinds: Collection[Any], *seeds: range) -> list[Any]:
    """Pairs of a kind and seeds for ``parametrize``: the first seeds are ``make test``'s, the
    second CI's, and others those of each night."""
    return quick(len(kinds), [(kind, each) for each in seeds for kind in kinds], ci=len(kinds))


def frames(graph: Graph, count: int, seed: int = 0) -> IntArray:
    """Random frames, the darkest and the brightest one first."""
    tensor = graph.tensors[graph.input]
    low, high = tensor.dtype.minimum, tensor.dtype.maximum
    random = np.random.default_rng(seed).integers(low, high + 1, (count, *tensor.shape))
    random[0], random[1] = low, high
    return random


def agrees(native: Native, count: int = 8, chunk: int | None = None) -> bool:
    given = frames(native.graph, count)
    equal(native(given, chunk), native.graph.outputs(given), **native.about, chunk=chunk)
    return True
