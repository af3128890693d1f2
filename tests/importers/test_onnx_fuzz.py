"""Whatever an .onnx file holds: a graph, or one line; no crash, no hang, no runaway memory."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.importers.lower import lower
from pipeline.importers.onnx import completed
from pipeline.importers.onnx_external import files
from pipeline.quantize.int8 import Int8
from tests.importers.onnx_fuzz import damaged, hostile
from tests.importers.onnx_models import imported, parsed

SECONDS, GROWTH_KB = 20, 600_000


def outcome(content: bytes, calibrate: bool = True) -> str:
    """What importing ``content`` ends in; anything but a ThimbleError is raised."""
    try:
        network = imported("net", parsed(content), (0.0, 1.0))
        if network.given:
            lower(network, completed(network))
        elif calibrate:
            Int8(images=2).from_float(network)
    except ThimbleError as error:
        text = str(error)
        assert text and "\n" not in text and len(text) < 2000
        return text
    return "imported"


def peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def tried(count: int, seed: int) -> dict[str, int]:
    found: dict[str, int] = {}
    before = peak_kb()
    with np.errstate(all="ignore"):
        for index, content in enumerate(damaged(count, seed)):
            begin = time.process_time()
            text = outcome(content, calibrate=index % 100 == 0)
            assert time.process_time() - begin < SECONDS
            found[text] = found.get(text, 0) + 1
    assert peak_kb() - before < GROWTH_KB
    return found


@pytest.mark.ci
def test_damaged_files() -> None:
    found = tried(3000, 0)
    assert found["imported"] > 200 and len(found) > 300  # neither all whole nor all the same


def test_files_beside_damaged_files(tmp_path: Path) -> None:
    """The runner asks for them before any stage has looked at the model."""
    for content in damaged(300, 7):
        (tmp_path / "net.onnx").write_bytes(content)
        assert files(tmp_path / "net.onnx") == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_many_damaged_files(seed: int) -> None:
    assert sum(tried(20_000, seed).values()) == 20_000


@pytest.mark.parametrize("name", hostile())
def test_hostile_files(name: str) -> None:
    before, begin = peak_kb(), time.process_time()
    text = outcome(hostile()[name])
    assert time.process_time() - begin < SECONDS
    assert peak_kb() - before < GROWTH_KB
    assert text != "imported" or name in ("many",)
