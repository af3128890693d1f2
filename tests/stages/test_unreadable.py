"""A network or a data set that cannot be read is told apart from a failure: it made no run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipeline.errors import Unreadable
from stages import fetch, quantize, train

TFLITE = {"_target_": "pipeline.importers.tflite.TFLite", "path": "bad"}
TORCH = {"_target_": "pipeline.importers.torch_model.TorchModel", "factory": "nowhere:Net"}
TORCH |= {"input_shape": [4, 4, 1]}
RANDOM = {"_target_": "pipeline.training.random_weights.RandomWeights"}
NPZ = {"_target_": "pipeline.datasets.npz.Npz", "path": "bad"}
PLAIN = {"_target_": "pipeline.frontends.none.NoFrontend"}


@pytest.mark.parametrize(
    ("stage", "config"),
    [
        (quantize, {"model": TFLITE}),
        (train, {"model": TORCH, "train": RANDOM, "seed": 1, "threads": 1}),
        (fetch, {"data": NPZ, "frontend": PLAIN}),
    ],
)
def test_what_cannot_be_read(
    stage: Any, config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "bad").write_text("no network")
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "dataset.npz", train_images=np.zeros((1, 4, 4, 1), np.uint8))
    with pytest.raises(Unreadable):
        stage.main()
