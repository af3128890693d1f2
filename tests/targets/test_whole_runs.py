"""Whole runs for boards with a Cortex-M: every network of the zoo, and a trained one's accuracy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import artifacts
from pipeline.home import ROOT
from tests.contracts.test_boards import CORTEX_M
from tests.runner.project import clean_environment
from tests.targets.cortex_m import board_named, needs_arm

OWN = ("integer", "onnx", "tflite", "torch")
ZOO = sorted(
    file.stem
    for file in (ROOT / "conf" / "model").glob("*.yaml")
    if file.stem not in OWN
)  # fmt: skip
CIFAR10 = Path.home() / ".cache" / "thimble" / "cifar10"
IMAGES = 1000

pytestmark = [needs_arm, pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What runs share: a network is made once for all boards."""
    return tmp_path_factory.mktemp("whole")


def run(home: Path, *words: str, strategy: str = "ordinary") -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of run.py."""
    common = (f"strategy={strategy}", "tracking=none", "output=json")
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), *common, *words],
        cwd=home, env={**clean_environment(), "THIMBLE_HOME": str(home / "home")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("board", CORTEX_M)
@pytest.mark.parametrize("model", ZOO)
def test_a_network_runs_or_does_not_fit(model: str, board: str, home: Path) -> None:
    words = (f"model={model}", f"hardware={board}", "data=none", "train=random", "target.images=1")
    code, result = run(home, *words, "quantize=int8")  # of mnist_2kb, too: its 4 bits are an Uno's
    if result["status"] == "infeasible":
        assert code == 3 and result["needed_bytes"] > result["available_bytes"]
        return
    assert code == 0 and result["status"] == "ok", result
    assert result["images_device"] == 1 and not result["mismatches_device"]
    hardware = board_named(board)
    assert result["sram_bytes"] <= hardware.sram_bytes
    if hardware.flash_timing.read_bytes:
        assert result["latency_low_us"] <= result["latency_us"] <= result["latency_high_us"]


@pytest.mark.parametrize("model", ["mobilenet_v1", "alexnet", "vgg16"])
def test_a_network_larger_than_the_chip_runs_from_a_card(model: str, home: Path) -> None:
    """Where the memory protection traps at 320,000 B, statics and stack included."""
    words = (f"model={model}", "hardware=stm32f746g_sd", "hardware.sram_bytes=320000")
    code, result = run(
        home, *words, "data=none", "train=random", "target.images=1", strategy="swap"
    )
    assert code == 0 and result["status"] == "ok", result
    assert result["images_device"] == 1
    assert not result["mismatches_device"] and not result["mismatches_host"]
    assert result["weight_bytes"] > 4_000_000 and result["sram_bytes"] <= 320_000


@pytest.mark.skipif(not CIFAR10.is_dir(), reason="CIFAR-10 has not been fetched here")
def test_accuracy_on_the_device_is_the_hosts(home: Path) -> None:
    words = ("model=resnet8", "data=cifar10", "train=float", "train.epochs=2")
    where = (
        "train.images=3000",
        f"data.path={CIFAR10}",
        "hardware=nucleo_l4r5zi",
        f"target.images={IMAGES}",
    )
    code, result = run(home, *words, *where)
    assert code == 0 and result["images_device"] == IMAGES, result
    assert not result["mismatches_device"] and not result["mismatches_host"]
    folder = Path(result["run_dir"])
    labels = artifacts.read_npz(folder / "data" / "dataset.npz")["test_labels"][:IMAGES]
    on_host = artifacts.read_npz(folder / "outputs.npz")["host_outputs"][:IMAGES].view(np.int8)
    accuracy = float((on_host.argmax(axis=1) == labels).mean())
    assert result["accuracy_device"] == pytest.approx(accuracy)
    assert accuracy > 0.15  # of ten classes, after a little training: equality is what counts
