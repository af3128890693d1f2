"""From samples through a residual unit of 4 bits in 2 KB: Google-12 of Gural & Murmann 2019, table
2, with one unit, its channels as many as fit beside the state of the spectrogram."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline import artifacts
from pipeline.codegen import generate
from pipeline.frames import stored
from pipeline.frontends.square_wave import SquareWave
from pipeline.graph.graph import Graph
from pipeline.strategies.sliding import Sliding
from pipeline.targets import builds, simavr
from pipeline.targets.harness import harness_sources
from tests.codegen.int4.test_sums import plus
from tests.codegen.test_sound import sounds
from tests.strategies.chains import Chain
from tests.targets.conftest import load_hardware, needs_avr

EAR = SquareWave(bins=20, frames=80, chunk=192, history=4)
CHANNELS = 20
SAME = (1, 1, 1, 1)


def google12() -> Graph:
    """4 frames in 1, 3x3 with stride 2, 3x3, the unit, a 3x3 maximum, 12 classes."""
    chain = Chain((80, 20, 1), "uint8").average("pooled", 4, kernel=(1, 1), stride=(1, 1))
    chain.conv("joined", 6, (4, 1), stride=(4, 1)).conv("second", CHANNELS, stride=(2, 2))
    chain.conv("third", CHANNELS)
    chain.conv("a", CHANNELS, padding=SAME).conv("b", CHANNELS, padding=SAME)
    plus(chain, "third", "b")
    return chain.maximum("pool", kernel=(3, 3), stride=(3, 3)).dense("logits", 12).graph()


@needs_avr
@pytest.mark.slow
def test_a_residual_unit_in_2_kb(tmp_path: Path) -> None:
    """1,808 B measured, 20,762 B of flash; not in real time, since what pads has no assembly."""
    graph, board = google12(), replace(load_hardware(), weights_in="flash", streams_input=True)
    files = generate(graph, Sliding().plan(graph, board), board, {}, frontend=EAR)
    for name, content in {**files, **harness_sources(board)}.items():
        artifacts.write_text(tmp_path / "generated" / name, content)
    size = builds.build(tmp_path / "generated", tmp_path / "build", board)
    heard = sounds(EAR, 4)[:1]
    given = heard.astype("<i2").view(np.uint8)
    # the line waits while rows are computed
    runs = simavr.run(tmp_path / "build", vars(size), board, given, 2 * EAR.samples)
    image = stored(EAR.features(heard), graph.tensors[graph.input]).astype(np.int64)
    assert (runs.outputs == graph.outputs(image).reshape(1, -1)).all()
    assert size.statics_bytes + (runs.stack_bytes or 0) <= 1_850 < board.sram_bytes
