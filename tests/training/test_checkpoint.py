from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.training.checkpoint import Checkpoint, fingerprint

STATE = {"network": {"w": torch.arange(5.0)}, "place": {"epoch": 3, "rows": [{"phase": "float"}]}}


def test_a_state_survives(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "new", "abc")
    assert checkpoint.load() is None
    checkpoint.save(STATE)
    found = checkpoint.load()
    assert found is not None
    assert torch.equal(found["network"]["w"], torch.arange(5.0))
    assert found["place"] == STATE["place"]


def test_another_trainings_state_is_not_taken(tmp_path: Path) -> None:
    Checkpoint(tmp_path, "abc").save(STATE)
    assert Checkpoint(tmp_path, "abd").load() is None


@pytest.mark.parametrize("keep", [0, 10, 40, -1])
def test_a_damaged_file_counts_as_none(tmp_path: Path, keep: int) -> None:
    checkpoint = Checkpoint(tmp_path, "abc")
    checkpoint.save(STATE)
    checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:keep])
    assert checkpoint.load() is None
    checkpoint.save(STATE)
    assert checkpoint.load() is not None


def test_a_file_of_another_version_counts_as_none(tmp_path: Path) -> None:
    import hashlib

    checkpoint = Checkpoint(tmp_path, "abc")
    content = b"not what torch.save writes"
    checkpoint.path.write_bytes(hashlib.sha256(content).digest() + content)
    assert checkpoint.load() is None


def test_without_a_folder_nothing_is_kept() -> None:
    checkpoint = Checkpoint(None, "abc")
    checkpoint.save(STATE)
    assert checkpoint.load() is None


def test_saving_leaves_one_file(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "abc")
    checkpoint.save(STATE)
    checkpoint.save(STATE)
    assert [path.name for path in tmp_path.iterdir()] == ["training-abc.ckpt"]


def test_fingerprints_tell_settings_and_data_apart() -> None:
    data = np.arange(6, dtype=np.uint8)
    keys = {fingerprint("a", 1, data), fingerprint("a", 2, data), fingerprint("a", 1, data + 1)}
    assert len(keys) == 3
    assert fingerprint("a", 1, data) == fingerprint("a", 1, data.copy())
