"""MLPerf Tiny's networks on simulated Cortex-M cores, byte by byte what tflite-micro answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline import passes
from pipeline.importers.tflite import TFLite
from tests.importers.test_tflite import MLPERF_TINY, MODELS
from tests.importers.tflite_reference import frames, reference
from tests.targets.cortex_m import ONE_A_CORE, board_named, built, needs_arm, outputs, simulated

PASSES = ("constants", "fold_reshape", "fold_pad", "dead_channels")
TFLM_ARENA = {
    "ad01_int8": 3_984,
    "kws_ref_model": 24_272,
    "pretrainedResnet_quant": 55_984,
    "vww_96_int8": 103_680,
}
"""Bytes that tflite-micro says it takes on a computer of 64 bits."""

pytestmark = [
    needs_arm,
    pytest.mark.skipif(not MODELS.is_dir(), reason="MLPerf Tiny's models are not here"),
]


def check(model: str, board: str, folder: Path, count: int) -> None:
    path = MODELS / f"{model}.tflite"
    graph = passes.applied(TFLite(path=str(path)).graph(), PASSES)
    hardware = board_named(board)
    size = built(folder, graph, hardware)
    given = frames(graph, count)
    runs = simulated(folder, graph, hardware, size, given)
    found = outputs(graph, runs).reshape(count, -1)
    assert np.array_equal(found, graph.outputs(given).reshape(count, -1))
    assert np.array_equal(found, reference(path.read_bytes(), given))
    assert size.statics_bytes + (runs.stack_bytes or 0) < TFLM_ARENA[model]
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


def test_keyword_spotting_on_a_cortex_m4(tmp_path: Path) -> None:
    check("kws_ref_model", "nucleo_l4r5zi", tmp_path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("board", ONE_A_CORE)
@pytest.mark.parametrize("model", MLPERF_TINY)
def test_fifty_inputs_on_every_core(model: str, board: str, tmp_path: Path) -> None:
    check(model, board, tmp_path, 50)
