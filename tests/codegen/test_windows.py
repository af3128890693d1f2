"""Windows that slide, in C: each one's outputs, of a sound that is heard once, and fewer cycles for
those behind the first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline import artifacts
from pipeline.frames import stored
from pipeline.frontends.frontend import Frontend
from pipeline.frontends.mfcc import Mfcc
from pipeline.graph.graph import Graph
from pipeline.models.google12 import Google12
from pipeline.quantize.int4 import Int4
from pipeline.sliding import Windows
from pipeline.strategies.sliding import Sliding
from pipeline.targets import qemu, simavr
from pipeline.targets.runs import Runs
from tests.codegen.test_sound import sounds
from tests.comparing import equal
from tests.frontends.test_square_wave import SMALL as SHORT
from tests.graphs import Net
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import board_named, built, needs_arm

SMALL = replace(SHORT, frames=24)


def in_four_bits() -> Graph:
    model = Google12(input_shape=SMALL.shape, joined=2, channels=(4, 6), units=(), classes=3)
    return Int4().graph("google12", model, random_weights(model), None)


def random_weights(model: Google12) -> artifacts.Arrays:
    import torch

    from pipeline.models.network import state_arrays

    torch.manual_seed(1)
    return state_arrays(model.build())


def each_window(one: Graph, ear: Frontend, heard: np.ndarray, windows: Windows) -> np.ndarray:
    """(n, windows * outputs) of windows over the features of all that was heard."""
    features, image = ear.features(heard), one.tensors[one.input]
    outputs = []
    for at in range(0, windows.rows * windows.windows, windows.rows):
        rows = stored(features[:, at : at + image.shape[0]], image).astype(np.int64)
        outputs.append(one.outputs(rows).reshape(len(heard), -1))
    return np.concatenate(outputs, axis=1)


@needs_avr
@pytest.mark.ci
def test_on_the_chip_a_new_window_costs_less(tmp_path: Path) -> None:
    """4 bits in assembly; the arena, the stack's bound and the front end are all there is."""
    one, windows = in_four_bits(), Windows(3, 4)
    graph, ear = windows.graph(one), SMALL.longer(windows.more)
    board = replace(load_hardware(), weights_in="flash", streams_input=True)
    size = built(tmp_path, graph, board, Sliding().plan(graph, board), ear)
    heard = sounds(ear, 4)[:2]
    given = heard.astype("<i2").view(np.uint8)
    runs: Runs = simavr.run(tmp_path / "build", vars(size), board, given, 2 * SMALL.samples)
    equal(runs.outputs, each_window(one, ear, heard, windows))
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes
    new = (runs.compute_cycles - runs.first_cycles) / (windows.windows - 1)
    assert (new < runs.first_cycles * 0.6).all()


@needs_arm
@pytest.mark.slow
def test_on_a_cortex_m4(tmp_path: Path) -> None:
    ear, windows = Mfcc(frames=9), Windows(3, 2)
    net = Net(ear.shape, np.random.default_rng(3))
    net.conv(4, (3, 3), padding=(0, 0, 1, 1), stride=(2, 1))
    net.conv(5, (2, 3), padding=(0, 0, 1, 1))
    net.dense(4)
    one, board = net.graph(), board_named("nucleo_f446re")
    graph, longer = windows.graph(one), ear.longer(windows.more)
    size = built(tmp_path, graph, board, Sliding().plan(graph, board), longer)
    heard = sounds(longer, 4)[:2]
    runs = qemu.run(tmp_path / "build", vars(size), board, heard.astype("<i2").view(np.uint8))
    equal(runs.outputs.view(np.int8), each_window(one, longer, heard, windows))
