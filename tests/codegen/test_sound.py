"""Front ends in C: from samples the same bits as in Python, on the host and on simulated chips; of
windows that slide, too, and of residual units of 4 bits that keep up with the sound."""

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
from pipeline.frontends.microfrontend import Microfrontend
from pipeline.frontends.square_wave import SquareWave
from pipeline.graph.graph import Graph
from pipeline.models.google12 import Google12
from pipeline.quantize.int4 import Int4
from pipeline.sliding import Windows
from pipeline.strategies.in_place import Replace
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.support import SANITIZERS, WARNINGS, host, on_board, uno, write
from tests.comparing import equal
from tests.frontends.test_square_wave import SMALL as SHORT
from tests.graphs import Chained, Net
from tests.programs import said
from tests.public_models import needs_models
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import board_named, needs_arm
from tests.targets.test_qemu_mlperf import network as network_of_mlperf
from tests.tiers import quick

WAVES = SquareWave(bins=6, frames=9, chunk=64, history=3, low_hz=150.0, high_hz=3_000.0)
CEPSTRA = Mfcc(frames=4, coefficients=10)
WORDS = Microfrontend(frames=7)

MAIN = Path(__file__).with_name("sound.c").read_text()


def network(ear: Frontend, dtype: str = "int8") -> Graph:
    """Every feature shows in its output."""
    net = Chained(Net(ear.shape, np.random.default_rng(3), dtype=dtype, name="ears"))
    return net.conv(4, (1, 1)).graph()


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
    return graph.evaluate(frames.astype(np.int64))


NATIVELY = [
    (ear, dtype, piece)
    for ear, dtype in product((CEPSTRA, WORDS, WAVES), ("int8", "uint8"))
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
    said(["cc", *WARNINGS, *SANITIZERS, "model.c", "main.c", "-o", "program"], tmp_path)
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
    heard = sounds(WAVES, 4)
    wanted = expected(graph, WAVES, heard)
    size, _ = on_board(tmp_path, graph, board, plan, heard, expected=wanted, frontend=WAVES)
    assert size.ram_objects["nn_ear"] == WAVES.state_bytes


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
    heard = sounds(ear, 4)
    wanted = expected(graph, ear, heard)
    size, _ = on_board(tmp_path, graph, board, None, heard, expected=wanted, frontend=ear)
    assert size.ram_objects["nn_ear"] == ear.state_bytes


EAR = SquareWave(bins=20, frames=80, chunk=192)


@needs_avr
@pytest.mark.ci
def test_residual_units_keep_up_with_the_sound(tmp_path: Path) -> None:
    """Google-12 of Gural and Murmann 2019, table 2, as ``experiment=keywords_uno``, untrained."""
    graph = in_four_bits(Google12())
    board = replace(load_hardware(), weights_in="flash", streams_input=True)
    heard, plan = sounds(EAR, 4), Replace().plan(graph, board)
    wanted = expected(graph, EAR, heard)
    size, runs = on_board(tmp_path, graph, board, plan, heard, expected=wanted, frontend=EAR)
    assert size.statics_bytes + (runs.stack_bytes or 0) <= board.sram_bytes
    assert runs.compute_cycles.max() <= EAR.samples / 16_000 * board.clock_hz


SMALL = replace(SHORT, frames=24)


def in_four_bits(model: Google12) -> Graph:
    import torch

    from pipeline.models.network import state_arrays

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return Int4().graph("google12", model, state_arrays(model.build()), None)


@needs_avr
@pytest.mark.ci
def test_on_the_chip_a_stream_costs_what_is_new(tmp_path: Path) -> None:
    """4 bits in assembly behind a front end that goes on from call to call: all RAM is known."""
    small = Google12(input_shape=SMALL.shape, joined=2, channels=(4, 6), units=(), classes=3)
    windows, board = Windows(4), replace(load_hardware(), weights_in="flash", streams_input=True)
    graph, ear = windows.graph(in_four_bits(small)), windows.frontend(SMALL)
    sounds_of = {"test_sounds": sounds(SMALL, 4)}
    data = windows.data(
        {**sounds_of, "test_images": SMALL.features(sounds_of["test_sounds"]),
         "test_labels": np.zeros(4)}, SMALL, graph,
    )  # fmt: skip
    heard = data["test_sounds"]
    frames = stored(data["test_images"], graph.tensors[graph.input]).astype(np.int64)
    plan, wanted = Joint().plan(graph, board), graph.evaluate(frames)
    size, runs = on_board(tmp_path, graph, board, plan, heard, expected=wanted, frontend=ear)
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes
    assert size.ram_objects["nn_ear"] == ear.state_bytes
    assert graph.macs < 0.6 * in_four_bits(small).macs


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
