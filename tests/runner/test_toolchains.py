"""Boards name their toolchain in their defaults list: those here, and one's own in ``conf/``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipeline.home import ROOT
from tests.runner.project import HARDWARE, clean_environment


@pytest.mark.parametrize(
    ("board", "said"),
    [
        ("defaults: [{toolchain: avr_gcc}, _self_]\npart: m8\n", "compiler: avr-gcc"),
        ("defaults: [arduino, {override toolchain: native}, _self_]\n", "compiler: cc"),
        (yaml.safe_dump(HARDWARE), f"compiler: {HARDWARE['toolchain']['compiler']}"),
        ("defaults: [{toolchain: avr_gc}]\n", "unknown hardware/toolchain 'avr_gc': did you mean"),
    ],
)
def test_ones_own_board(tmp_path: Path, board: str, said: str) -> None:
    (tmp_path / "conf" / "hardware").mkdir(parents=True)
    (tmp_path / "conf" / "hardware" / "mine.yaml").write_text(board)
    command = [sys.executable, ROOT / "run.py", "hardware=mine", "--cfg", "job"]
    done = subprocess.run(
        [*command, "-p", "hardware.toolchain"],
        cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said in (done.stderr or done.stdout) and len(done.stderr.splitlines()) < 2, done
    assert done.returncode == said.startswith("unknown")
