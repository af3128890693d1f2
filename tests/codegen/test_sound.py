"""Front ends in C: from samples the same bits as in Python, on the host and on simulated chips."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.frames import stored
from pipeline.frontends.frontend import Frontend
from pipeline.frontends.mfcc import Mfcc
from pipeline.frontends.square_wave import SquareWave
from pipeline.graph.graph import Graph
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import qemu, simavr
from tests.codegen.int8.support import host
from tests.codegen.support import SANITIZERS, WARNINGS, uno, write
from tests.comparing import equal
from tests.graphs import Net
from tests.public_models import needs_models
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import board_named, built, needs_arm
from tests.targets.test_qemu_mlperf import network as network_of_mlperf
from tests.tiers import quick

WAVES = SquareWave(bins=6, frames=9, chunk=64, history=3, low_hz=150.0, high_hz=3_000.0)
CEPSTRA = Mfcc(frames=4, coefficients=10)

MAIN = r"""
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
/* sounds on stdin, heard in pieces of argv[1] bytes; outputs on stdout */
int main(int argc, char **argv) {
    static uint8_t sound[NN_SOUND_BYTES];
    const uint32_t piece = argc > 1 ? (uint32_t)atoi(argv[1]) : sizeof sound;
    if (nn_init() != NN_OK) return 2;
    while (fread(sound, 1, sizeof sound, stdin) == sizeof sound) {
        for (uint32_t at = 0; at < sizeof sound; at += piece) {
            const uint32_t left = sizeof sound - at;
            if (nn_listen(sound + at, left < piece ? left : piece) != NN_OK) return 4;
        }
        if (nn_listen(sound, 1) != NN_CORRUPT) return 5;
        if (nn_invoke() != NN_OK) return 6;
        fwrite(nn_output(), sizeof(nn_output_t), NN_OUTPUT_COUNT, stdout);
    }
    return 0;
}
"""


def network(ear: Frontend, dtype: str = "int8") -> Graph:
    """Every feature shows in its output."""
    net = Net(ear.shape, np.random.default_rng(3), dtype=dtype, name="ears")
    net.conv(4, (1, 1))
    return net.graph()


def sounds(ear: Frontend, count: int = 5) -> np.ndarray:
    """Loud, quiet, clipped, silent and steady ones."""
    random = np.random.default_rng(4)
    made = random.normal(0, 3_000, (count, ear.samples))
    made[0] *= 100
    made[1] /= 1_000
    made[2] = 0
    made[3] = 9_000 * np.sin(np.arange(ear.samples) / 7)
    return np.clip(np.rint(made), -32_768, 32_767).astype(np.int16)


def expected(graph: Graph, ear: Frontend, heard: np.ndarray) -> np.ndarray:
    frames = stored(ear.features(heard), graph.tensors[graph.input])
    return graph.outputs(frames.astype(np.int64))


NATIVELY = [
    (ear, dtype, piece)
    for ear, dtype in product((CEPSTRA, WAVES), ("int8", "uint8"))
    for piece in (37, None)
]


@pytest.mark.parametrize(("ear", "dtype", "piece"), quick(1, NATIVELY, ci=4))
def test_the_same_bits_natively(
    ear: Frontend, dtype: str, piece: int | None, tmp_path: Path
) -> None:
    graph = network(ear, dtype)
    board = host()
    files = generate(graph, Ordinary().plan(graph, board), board, {}, frontend=ear)
    write(tmp_path, {**files, "main.c": MAIN})
    command = ["cc", *WARNINGS, *SANITIZERS, "model.c", "main.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    heard = sounds(ear)
    words = [str(tmp_path / "program"), *([str(piece)] if piece else [])]
    done = subprocess.run(words, input=heard.astype("<i2").tobytes(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    output = graph.tensors[graph.output]
    found = np.frombuffer(done.stdout, np.dtype(str(output.dtype))).reshape(-1, *output.shape)
    equal(found, expected(graph, ear, heard).reshape(found.shape))


@needs_avr
@pytest.mark.parametrize("streams", quick(0, [True, False], ci=1))
def test_the_same_bits_on_the_chip(streams: bool, tmp_path: Path) -> None:
    """With the whole spectrogram held, and with the network's rows computed as they come; the stack
    is within its bound, and no byte of the line is missed."""
    board = replace(load_hardware(baud=38_400), streams_input=streams, weights_in="flash")
    graph = network(WAVES)
    plan = (Joint() if streams else Ordinary()).plan(graph, board)
    size = built(tmp_path, graph, board, plan, WAVES)
    assert size.ram_objects["nn_ear"] == WAVES.state_bytes
    heard = sounds(WAVES, 4)
    runs = simavr.run(tmp_path / "build", vars(size), board, heard.astype("<i2").view(np.uint8))
    wanted = expected(graph, WAVES, heard).reshape(4, -1)
    equal(runs.outputs.view(np.int8), wanted)
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


@needs_arm
@pytest.mark.ci
@needs_models
def test_mlperf_tiny_from_samples_on_a_cortex_m4(tmp_path: Path) -> None:
    """Its keyword network behind the MFCC that it was trained with: from a second of sound to the
    scores, on the simulated board, as the graph has them of the features in Python."""
    ear, board = Mfcc(), board_named("nucleo_f446re")
    graph = network_of_mlperf("kws_ref_model")
    image = graph.tensors[graph.input]
    assert ear.scale == pytest.approx(image.scale[0], rel=1e-6)
    assert ear.zero_point == image.zero_point
    size = built(tmp_path, graph, board, Ordinary().plan(graph, board), ear)
    assert size.ram_objects["nn_ear"] == ear.state_bytes
    heard = sounds(ear, 4)
    runs = qemu.run(tmp_path / "build", vars(size), board, heard.astype("<i2").view(np.uint8))
    equal(runs.outputs.view(np.int8), expected(graph, ear, heard).reshape(4, -1))
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


def test_without_a_front_end_nothing_listens() -> None:
    graph, board = network(WAVES), uno("flash")
    files = generate(graph, Ordinary().plan(graph, board), board, {})
    assert "nn_listen" not in files["model.h"] and "nn_ear" not in files["model.c"]


def test_a_network_that_takes_something_else() -> None:
    graph, board = network(WAVES), host()
    plan = Ordinary().plan(graph, board)
    with pytest.raises(ThimbleError, match="4 frames of 10 features, the network takes 9x6x1"):
        generate(graph, plan, board, {}, frontend=CEPSTRA)
    image = replace(graph.tensors[graph.input], raw=(0.0, 1.0), scale=(0.1,), zero_point=0)
    scaled = replace(graph, tensors={**graph.tensors, graph.input: image})
    with pytest.raises(ThimbleError, match=r"leave model.input_range out"):
        generate(scaled, Ordinary().plan(scaled, board), board, {}, frontend=WAVES)
