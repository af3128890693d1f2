"""What plans charge for sealing is what simulated cores take."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.sealing import COSTS
from tests.security.bench import LARGE, SMALL, measured
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

BOARDS = {"cortex-m4": "nucleo_l4r5zi", "cortex-m7": "stm32f746g_sd"}


@needs_arm
@pytest.mark.parametrize(("cpu", "security"), quick([], COSTS, ci=1))
def test_costs_are_what_was_measured(tmp_path: Path, cpu: str, security: str) -> None:
    hardware, cost = board_named(BOARDS[cpu]), COSTS[cpu, security]  # type: ignore[index]
    for size in (SMALL, LARGE):
        taken = measured(tmp_path / f"{size}", hardware, f"{security}, read", size)
        assert cost.byte * size + cost.piece == pytest.approx(taken.cycles, rel=0.03)
