import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.training.checkpoint import Checkpoint, fingerprint

STATE = {"network": {"w": torch.arange(5.0)}, "place": {"epoch": 3, "rows": [{"phase": "float"}]}}


def test_a_state_survives_for_its_own_training(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "new", "abc")
    assert checkpoint.load() is None
    for _ in range(2):
        checkpoint.save(STATE)
        found = checkpoint.load()
        assert found is not None
        assert torch.equal(found["network"]["w"], torch.arange(5.0))
        assert found["place"] == STATE["place"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["training-abc.ckpt"]
    assert Checkpoint(tmp_path / "new", "abd").load() is None
    nowhere = Checkpoint(None, "abc")
    nowhere.save(STATE)
    assert nowhere.load() is None


@pytest.mark.parametrize("keep", [0, 10, 40, -1])
def test_a_damaged_file_counts_as_none(tmp_path: Path, keep: int) -> None:
    checkpoint = Checkpoint(tmp_path, "abc")
    checkpoint.save(STATE)
    other = b"not what torch.save writes"
    for content in (checkpoint.path.read_bytes()[:keep], hashlib.sha256(other).digest() + other):
        checkpoint.path.write_bytes(content)
        assert checkpoint.load() is None
    checkpoint.save(STATE)
    assert checkpoint.load() is not None


def test_fingerprints_tell_settings_and_data_apart() -> None:
    data = np.arange(6, dtype=np.uint8)
    keys = {fingerprint("a", 1, data), fingerprint("a", 2, data), fingerprint("a", 1, data + 1)}
    assert len(keys) == 3
    assert fingerprint("a", 1, data) == fingerprint("a", 1, data.copy())
