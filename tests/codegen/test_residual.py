"""From samples through residual units of 4 bits to a word in 2 KB, and in time: Google-12 of Gural
and Murmann 2019, table 2, as ``experiment=keywords_uno`` has it, with weights that have learnt
nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.frames import stored
from pipeline.frontends.square_wave import SquareWave
from pipeline.models.google12 import Google12
from pipeline.models.network import state_arrays
from pipeline.quantize.int4 import Int4
from pipeline.strategies.replace import Replace
from pipeline.targets import simavr
from tests.codegen.test_sound import sounds
from tests.comparing import equal
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import built

EAR = SquareWave(bins=20, frames=80, chunk=192)
MODEL = Google12()


@needs_avr
@pytest.mark.ci
def test_residual_units_keep_up_with_the_sound(tmp_path: Path) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        graph = Int4().graph("google12", MODEL, state_arrays(MODEL.build()), None)
    board = replace(load_hardware(), weights_in="flash", streams_input=True)
    size = built(tmp_path, graph, board, Replace().plan(graph, board), EAR)
    assert size.status == "ok" and size.flash_bytes <= board.flash_bytes
    heard = sounds(EAR, 4)
    runs = simavr.run(tmp_path / "build", vars(size), board, heard.astype("<i2").view(np.uint8))
    image = stored(EAR.features(heard), graph.tensors[graph.input]).astype(np.int64)
    equal(runs.outputs, graph.outputs(image).reshape(len(heard), -1))
    assert size.statics_bytes + (runs.stack_bytes or 0) <= board.sram_bytes
    sound_cycles = EAR.samples / 16_000 * board.clock_hz
    assert runs.compute_cycles.max() <= sound_cycles
