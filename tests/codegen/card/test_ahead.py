"""The next inference's inputs are fed, and the last one's results taken, while one computes."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.card.image import Image
from pipeline.errors import ThimbleError
from pipeline.frames import fed
from pipeline.hardware import Hardware
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.strategies.swap import Swap
from tests import programs
from tests.codegen.card.support import board, elements, large, planned, sources
from tests.codegen.support import DEVICE, SANITIZERS, WARNINGS, frames, write
from tests.comparing import equal
from tests.strategies.swap.nets import random_chain
from tests.strategies.swap.test_best import residual
from tests.targets.cortex_m import board_named
from tests.tiers import quick

PROGRAM, SIZE = Path(__file__).parent / "fixture" / "ahead.c", 1024
CASES = {1: (random_chain(9), 3), 2: (large(), 6), 3: (residual(), 4)}
"""A network, and by what its tensors are divided for the memory of so many frames."""


@pytest.mark.parametrize("count", quick(0, [2, 3, 1], ci=2))
def test_what_comes_and_goes_meanwhile_changes_no_answer(tmp_path: Path, count: int) -> None:
    """In whole pieces and parts of them; all of it passes before the inference ends."""
    graph, share = CASES[count]
    plan = planned(graph, elements(graph) // share + SIZE, frames=count, ahead_bytes=SIZE)
    verify(plan, graph)
    given = frames(graph, 4 * count)
    expected = graph.evaluate(given)
    said = interpret(plan, graph, given[:count] if count > 1 else given[0]).output
    equal(said.reshape(count, -1), expected[:count].reshape(count, -1))
    texts = {"ahead.c": PROGRAM.read_text(), DEVICE.name: DEVICE.read_text()}
    folder = write(tmp_path, sources(graph, plan) | texts)
    Image(graph, plan).write(folder / "card.img")
    written = [path.name for path in folder.glob("*.c")]
    programs.said(["cc", *WARNINGS, *SANITIZERS, *written, "-o", "program"], folder)
    for chunk in (64, 100, 512, graph.tensors[graph.input].size + 5):
        done = subprocess.run(
            [folder / "program", str(chunk)], cwd=folder, input=fed(graph, given).tobytes(),
            capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, expected.astype(np.int8).tobytes()), chunk


@pytest.mark.parametrize("hardware", [board_named("arduino_sd"), board("none", 6000)])
def test_a_card_that_is_checked_or_passes_bytes_is_fed_between(hardware: Hardware) -> None:
    for given in (Swap(ahead_bytes=SIZE), Swap(flush_bytes=SIZE)):
        with pytest.raises(ThimbleError, match="board with DMA"):
            given.plan(random_chain(9), hardware)
