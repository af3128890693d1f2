"""Without skips a firmware takes, for any image, what it takes for one without a 0, and answers the
same."""

from __future__ import annotations

import dataclasses
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.strategies.herringbone import Herringbone
from pipeline.targets import simavr, toolchain
from pipeline.targets.harness import harness_sources
from pipeline.targets.zeros import BYTE, IF_ZERO, TEST, UNLESS_ZERO, no_skips
from tests.codegen.support import write
from tests.comparing import equal
from tests.strategies.chains import Chain
from tests.targets.conftest import load_hardware

pytestmark = [
    pytest.mark.skipif(
        shutil.which("avr-gcc") is None, reason="avr-gcc is not installed: make setup"
    ),
    pytest.mark.usefixtures("compiled_once", "no_host"),
]


@pytest.mark.parametrize("weights_in", ["sram", "flash"])
def test_an_image_without_zeros_takes_what_is_announced(weights_in: str, tmp_path: Path) -> None:
    graph = Chain((5, 5, 3)).conv("a", 4).conv("b", 5).dense("d", 3).graph()
    for values in graph.constants.values():
        values[:] = np.abs(values) % 7 + 1  # so that every sum is large
    hardware = load_hardware(weights_in=weights_in)
    plan = Herringbone().plan(graph, hardware)
    write(tmp_path, {**generate(graph, plan, hardware, {}), **harness_sources(hardware)})
    size = toolchain.build(tmp_path, tmp_path / "build", hardware)
    full, empty = np.full((1, 5, 5, 3), 3, np.uint8), np.zeros((1, 5, 5, 3), np.uint8)
    assert all((each > 0).all() for each in graph.run(full.astype(np.int64)).values())
    taken = {}
    for name, image in (("full", full), ("empty", empty)):
        sent = dataclasses.asdict(size)
        try:
            runs = simavr.run(tmp_path / "build", sent, hardware, image)
        except ThimbleError as error:
            pytest.skip(str(error))
        equal(runs.outputs, graph.outputs(image.astype(np.int64)))
        taken[name] = int(runs.latency_cycles[0]), runs.unskipped_cycles
    (without, announced), (with_zeros, of_zeros) = taken["full"], taken["empty"]
    assert announced == without
    assert of_zeros is not None and of_zeros > 1.2 * with_zeros
    assert abs(of_zeros - without) < 0.02 * without  # sums of other numbers end a little faster


def elf(code: list[int]) -> bytes:
    """As much of one as is looked at: a segment of flash at byte 100."""
    head = bytearray(100)
    struct.pack_into("<I", head, 28, 52)
    struct.pack_into("<2H", head, 42, 32, 1)
    struct.pack_into("<4I", head, 52, 1, 100, 0, 0)
    return bytes(head) + struct.pack(f"<{len(code)}H", *code)


def test_bytes_of_two_activations_and_other_registers_are_known() -> None:
    of_r20, of_weights = TEST | 0x40, TEST | 0xB0
    code = [BYTE, IF_ZERO | 50 << 3, of_r20, IF_ZERO | 5 << 3, of_weights, 0x9F4B]
    patched, found = no_skips(elf(code), [(0, 12)])
    assert found == 2
    assert list(struct.unpack_from("<6H", patched, 100)) == [
        BYTE, 0, of_r20, 0, of_weights, 0x9F4B
    ]  # fmt: skip


def test_only_skips_in_functions_are_patched() -> None:
    back = UNLESS_ZERO | (0x7F & -3) << 3
    code = [TEST, IF_ZERO | 5 << 3, TEST, back, TEST, IF_ZERO | 1 << 3, 0x2411, IF_ZERO]
    patched, found = no_skips(elf(code), [(0, 8), (12, 4)])
    assert found == 2
    assert list(struct.unpack_from("<8H", patched, 100)) == [
        TEST, 0, TEST, 0xC000 | 0xFFF & -3, TEST, IF_ZERO | 1 << 3, 0x2411, IF_ZERO
    ]  # fmt: skip
    assert no_skips(elf(code), []) == (elf(code), 0)
