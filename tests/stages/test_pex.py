"""Pex's tables from one command each: every published figure, and what is not published."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.home import ROOT


def run(folder: Path, *words: str) -> dict[str, Any]:
    """``run.py`` with a cache of its own."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "run.py"), *words, "tracking=none", "output=json"],
        cwd=folder,
        env={**os.environ, "THIMBLE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_a_keyword_network_along_channels(tmp_path: Path) -> None:
    """Rounded accumulators are calibrated on the way; the layers that have them are counted."""
    words = ("model=ds_cnn_s", "hardware=host", "quantize.images=2", "until=schedule")
    partial = ("strategy=partial", "strategy.accumulator_bits=8", "strategy.search=pex")
    result = run(tmp_path, *words, *partial)
    assert result["status"] == "ok" and result["pmu_bytes"] == 16_000
    assert result["accumulate_layers"] == 1 and result["macs"] == result["macs_executed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pex_table3", "pex_table4", "pex_appendix_d"])
def test_every_published_peak(tmp_path: Path, name: str) -> None:
    """To the digits that are printed: three."""
    result = run(tmp_path, f"experiment={name}")
    assert result["status"] == "ok" and len(result["rows"]) == len(result["jobs"])
    assert {job["status"] for job in result["jobs"]} == {"ok"}
    for row in result["rows"]:
        assert row["metric"] == "pmu_bytes"
        assert abs(row["ours"] - row["paper"]) <= 0.004 * row["paper"], row["name"]
    assert bool(result.get("unpublished")) == (name != "pex_table4")
