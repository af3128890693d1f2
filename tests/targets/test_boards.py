"""Boards that make no sense. What all of conf/hardware keeps to is in tests/contracts."""

from __future__ import annotations

import pytest

from pipeline.errors import ThimbleError
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.configurations import network
from tests.targets.cortex_m import board_named


@pytest.mark.parametrize("key", ["clock_hz", "sram_bytes", "flash_bytes", "baud"])
def test_a_board_without_is_one_line(key: str) -> None:
    with pytest.raises(ThimbleError, match=rf"hardware\.{key}=0: it is at least 1"):
        board_named("nucleo_l4r5zi", **{key: 0})


def test_a_board_that_takes_no_parameters_over_its_line_says_so() -> None:
    board = board_named("nucleo_l4r5zi", weights_in="stream")
    with pytest.raises(ThimbleError, match=r"over its line, hardware\.weights_in=stream: set"):
        Ordinary().plan(network(), board)
