"""docs/examples/boxes.h, compiled, against numpy on random outputs."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeline.home import ROOT
from tests.codegen.support import WARNINGS

MODEL = Path(__file__).with_name("boxes.h").read_text()


def found(folder: Path, kind: str, of: np.ndarray) -> np.ndarray:
    """(boxes, 6): left, top, right, bottom, score, label."""
    command = ["cc", *WARNINGS, "-shared", "-fPIC", f"-I{ROOT / 'docs/examples'}", "-x", "c", "-"]
    subprocess.run([*command, "-o", folder / "boxes.so"], input=MODEL, text=True, check=True)
    given, room = np.ascontiguousarray(of, np.uint8), np.zeros((99, 6), np.float32)
    call = ctypes.CDLL(str(folder / "boxes.so"))[kind]
    count = call(given.ctypes.data_as(ctypes.c_void_p), room.ctypes.data_as(ctypes.c_void_p))
    return np.c_[room[:count, :5], room[:count, 5].copy().view(np.int32)]


@pytest.mark.parametrize("seed", range(4))
def test_yolo(seed: int, tmp_path: Path) -> None:
    ends = np.array([[40, 40, 50, 50, 0, 0, 0], [90, 90, 99, 99, 132, 132, 132]])
    real = ((of := np.random.default_rng(seed).integers(*ends, (60, 7))) - 3) / 128
    score, label = real[:, 4] * real[:, 5:].max(1), real[:, 5:].argmax(1)
    low, high = real[:, :2] - real[:, 2:4] / 2, real[:, :2] + real[:, 2:4] / 2
    best, kept = [n for n in np.argsort(-score, kind="stable") if score[n] >= 0.3][:20], list[int]()
    for n in best:
        of_one = [k for k in kept if label[k] == label[n]]
        both = np.minimum(high[of_one], high[n]) - np.maximum(low[of_one], low[n])
        shared = np.maximum(both, 0).prod(1)
        if not (
            shared / ((high - low).prod(1)[[*of_one]] + (high - low)[n].prod() - shared) > 0.4
        ).any():
            kept.append(n)
    assert len(best) > len(kept) > 1
    wanted = np.c_[low, high, score, label][kept]
    np.testing.assert_allclose(found(tmp_path, "yolo", of), wanted, atol=1e-6)


def test_fomo(tmp_path: Path) -> None:
    """Cells that touch, in whatever order they are found, are one box; of class 0 there is none."""
    of = np.full((6, 8, 3), 3)
    of[[0, 1, 2, 4, 5], [0, 1, 0, 4, 7], 1] = 130, 120, 122, 119, 118
    of[0, 1, 2], of[3, 3, 0] = 124, 131
    real = (np.array([130, 124, 119]) - 3) / 128
    boxes = np.array([[0, 0, 2, 3, 1], [1, 0, 2, 1, 2], [4, 4, 5, 5, 1]]) / [8, 6, 8, 6, 1]
    np.testing.assert_allclose(
        found(tmp_path, "fomo", of), np.insert(boxes, 4, real, axis=1), atol=1e-6
    )
