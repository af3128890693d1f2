"""Parameters are what a person chooses; a board's constants are none until one is set."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.runner.job import resolved
from pipeline.runner.schema import composed
from pipeline.tracking.params import BOARD, LONGEST, params
from tests.boards import NAMES


def config(*overrides: str) -> dict[str, Any]:
    return resolved(composed(*overrides))


@pytest.mark.parametrize("board", NAMES)
def test_no_board_fills_the_screen(board: str) -> None:
    found = params(config(f"hardware={board}", "train=quick"), {"torch": "2"}, [])
    chosen = {key for key in found if key.startswith("hardware.")}
    assert chosen == set(BOARD) and found["hardware.name"] == board
    assert len(found) <= 50


@pytest.mark.parametrize("board", ["nucleo_g0b1re", "stm32f746g_sd", "arduino"])
def test_a_constant_that_was_changed_is_one(board: str) -> None:
    """By a word, or an experiment; also one that the board has from another."""
    words = ["hardware.power.active_ma=7", "++hardware.card.bytes=5"]
    found = params(config(f"hardware={board}", "hardware.sram_bytes=9000", *words), {}, words)
    assert found["hardware.power.active_ma"] == "7.0" and found["hardware.card.bytes"] == "5"
    assert found["hardware.sram_bytes"] == "9000"
    assert "hardware.power.idle_ma" not in found and "hardware.flash_bytes" not in found


def test_what_changes_no_result_and_what_has_no_value_is_none() -> None:
    content = config("output=json", "tracking=wait")
    found = params({**content, "paper": [{"metric": "wear"}]}, {}, [])
    assert not [key for key in found if key.split(".")[0] in ("paper", "output", "cache")]
    assert not [key for key in found if key.endswith("_target_")] and "" not in found.values()
    assert found["strategy.name"] == "herringbone" and found["seed"] == "1"


def test_versions_are_whole_and_long_values_are_cut() -> None:
    found = params({"model": {"blocks": "x" * 900}}, {"host": "gcc 12", "simulator": ""}, [])
    assert found["versions.host"] == "gcc 12" and found["versions.simulator"] == ""
    assert len(found["model.blocks"]) == LONGEST
