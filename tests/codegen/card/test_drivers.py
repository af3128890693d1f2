"""Drivers for boards: compiled and linked here, never run."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.strategies.swap import Swap
from pipeline.targets import elf
from pipeline.targets.cortex_m import STATICS
from pipeline.targets.cortex_m_board import MORE_BYTES, driver_flags
from pipeline.targets.toolchain import Size
from tests.strategies.swap.nets import random_chain
from tests.targets.cortex_m import board_named, built, needs_arm

SYSTEM_VECTORS, SDMMC1, DMA2_STREAM3 = 16, 49, 59


def firmware(folder: Path, hardware: Hardware) -> Size:
    graph = random_chain(9)
    return built(folder, graph, hardware, Swap().plan(graph, hardware))


def symbols(program: Path) -> dict[str, int]:
    done = subprocess.run(["arm-none-eabi-nm", program], capture_output=True, text=True, check=True)
    lines = (line.split() for line in done.stdout.splitlines())
    return {words[-1]: int(words[0], 16) for words in lines if len(words) == 3}


@needs_arm
@pytest.mark.ci
def test_the_board_s_firmware_has_its_driver_behind_both_interrupts(tmp_path: Path) -> None:
    hardware = board_named("stm32f746g_sd")
    size = firmware(tmp_path, hardware)
    folder, known = tmp_path / "build", symbols(tmp_path / "build" / "board.elf")
    command = ["arm-none-eabi-objcopy", "-O", "binary", "-j", ".text", "board.elf", "code"]
    subprocess.run(command, cwd=folder, check=True)
    code = (folder / "code").read_bytes()
    vectors = [int.from_bytes(code[n : n + 4], "little") for n in range(0, 4 * 76, 4)]
    handler = known["port_card_interrupt"] | 1
    for line in (SDMMC1, DMA2_STREAM3):
        assert vectors[SYSTEM_VECTORS + line] == handler
    others = {n for n, each in enumerate(vectors) if each == handler}
    assert others == {15, SYSTEM_VECTORS + SDMMC1, SYSTEM_VECTORS + DMA2_STREAM3}
    assert {"block_device_poll", "storage_interrupted", "data_cache_clean"} <= set(known)
    programs = (
        elf.read(folder / name, "arm-none-eabi-objdump") for name in ("board.elf", "firmware.elf")
    )
    board, simulated = (program.size(*STATICS) for program in programs)
    assert size.status == "ok" and board <= simulated + MORE_BYTES


def test_a_driver_that_there_is_not() -> None:
    hardware = board_named("stm32f746g_sd")
    card = replace(hardware.card, driver="stm32f7 -include=/etc/passwd")
    with pytest.raises(ThimbleError, match=r"hardware.card.driver=.*: have stm32f7, or none"):
        driver_flags(replace(hardware, card=card))
    assert driver_flags(board_named("nucleo_f446re")) == ()
