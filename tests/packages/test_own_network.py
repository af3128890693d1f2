"""From a PyTorch file of one's own to a sketch that runs on an Uno: one command, then the IDE's."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pipeline.home import ROOT
from tests.comparing import equal
from tests.packages.arduino_core import needs_core, sketch
from tests.packages.conftest import Uno
from tests.runner import parent
from tests.runner.project import clean_environment
from tests.targets.conftest import needs_avr

NET = """
from torch import nn
from torch.nn import functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 6, 3)
        self.out = nn.Linear(150, 10)

    def forward(self, x):
        x = F.relu(self.conv1(F.avg_pool2d(x, 2)))
        return self.out(F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1))
"""
COMMAND = (
    *("model=torch", "model.factory=mine:Net", "model.input_shape=[28,28,1]", "quantize=int4"),
    *("data=synthetic", "train=smoke", "strategy=herringbone", "package=arduino"),
    *("target.images=4", "codegen.prefix=mine", "output=json", "tracking=none"),
)


@needs_avr
@needs_core
@pytest.mark.slow
def test_one_command_and_the_sketch_gives_its_outputs(core: Path, uno: Uno, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(NET)
    folder = f"hydra.run.dir={tmp_path / 'run'}"
    command = [sys.executable, ROOT / "run.py", *COMMAND, folder]
    env = {**clean_environment(), "THIMBLE_HOME": str(tmp_path / "home")}
    done = parent.run(command, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["mismatches_device"] == 0 and result["package"]["kind"] == "arduino"
    with zipfile.ZipFile(tmp_path / "run" / result["package"]["file"]) as archive:
        archive.extractall(tmp_path / "libraries")
    elf = sketch(tmp_path / "libraries" / "Net", "SerialClassifier", core, tmp_path / "elf")
    images = np.load(tmp_path / "run" / "data" / "dataset.npz")["test_images"][:4]
    said, _ = uno(elf, images.tobytes(), image=784, lines=1 + 2 * 4)
    found = [line.split()[:10] for line in said.splitlines() if line.endswith(" us")]
    expected = np.load(tmp_path / "run" / "outputs.npz")["device_outputs"].view(np.int16)
    equal(np.array(found, int), expected.reshape(4, 10))
