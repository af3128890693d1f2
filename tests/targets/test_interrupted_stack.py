"""Stacks of programs that cards interrupt at their deepest: bounds against painted memory."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.targets import qemu
from tests.targets.cortex_m import ONE_A_CORE, board_named, built_stand_in, needs_arm
from tests.tiers import quick

pytestmark = needs_arm

GLOBALS = Path(__file__).with_name("interrupted_stack.c").read_text()
WORDS = {"even": '#define PUSH ""\n#define POP ""\n',
         "odd": '#define PUSH "push {r0}\\n"\n#define POP "pop {r0}\\n"\n'}  # fmt: skip
FLOATS = 72
"""Bytes that the core stacks besides with floating point: s0 to s15, FPSCR and a word."""


@pytest.mark.parametrize("name", quick(0, ONE_A_CORE, ci=0))
def test_the_bound_is_what_one_interrupt_at_the_deepest_point_takes(
    tmp_path: Path, name: str
) -> None:
    """The core begins a frame at a multiple of 8, and so may leave a word free, which the bound
    always counts. Once the code has used floating point the frame has room for it, though nothing
    is kept there (lazy stacking); a Cortex-M0+ has none."""
    hardware, bounds = board_named(name), dict[tuple[int, str], int]()
    for floats in (0, 1) if hardware.cpu != "cortex-m0plus" else (0,):
        for words, macros in WORDS.items():
            folder = tmp_path / f"{floats}.{words}"
            text = macros + GLOBALS.replace("ROOM", "304").replace("FLOATS", str(floats))
            size = built_stand_in(folder, hardware, globals=text, invoke="deep();")
            assert size.stack_path[-3:] == ("(interrupt)", "port_card_interrupt", "fill")
            runs = qemu.run(folder / "build", vars(size), hardware, np.zeros((1, 16), np.uint8))
            spare = size.stack_bound_bytes - (runs.stack_bytes or 0)
            assert spare == {"even": 4, "odd": 0}[words]
            bounds[floats, words] = size.stack_bound_bytes
    assert bounds[0, "odd"] == bounds[0, "even"] + 4
    if len(bounds) > 2:
        assert bounds[1, "even"] - bounds[0, "even"] == FLOATS
