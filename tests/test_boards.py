"""The boards of conf/hardware: figures that belong together do, and each can be planned for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from omegaconf import OmegaConf

from pipeline import schedule
from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import cortex_m, machines
from tests.codegen.affine.configurations import network
from tests.targets.cortex_m import board_named

NAMES = sorted(file.stem for file in (ROOT / "conf" / "hardware").glob("*.yaml"))
CORTEX_M = [
    name
    for name in NAMES
    if OmegaConf.load(ROOT / "conf" / "hardware" / f"{name}.yaml").core == "cortex_m"
]


@pytest.mark.parametrize("name", CORTEX_M)
def test_memory_adds_up(name: str) -> None:
    hardware = board_named(name)
    inside = [region for region in hardware.regions if not region.external]
    assert inside[0].start == 0x20000000 and hardware.ram_in_one_piece == hardware.sram_bytes
    flash = [region.bytes for region in inside if region.kind == "rom"]
    assert flash == [hardware.flash_bytes]
    spans = sorted((region.start, region.start + region.bytes) for region in hardware.regions)
    assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))


@pytest.mark.parametrize("name", CORTEX_M)
def test_the_simulated_machine_has_it(name: str) -> None:
    hardware = board_named(name)
    assert hardware.name == name and hardware.simulator == "qemu"
    assert machines.machine(hardware).name.startswith("mps2-")
    assert cortex_m.ram_bytes(hardware) == hardware.sram_bytes
    assert f"-mcpu={hardware.cpu}" in hardware.toolchain.flags
    assert cortex_m.flash_granted(hardware.flash_bytes) == hardware.flash_bytes


@pytest.mark.parametrize("name", CORTEX_M)
def test_every_board_can_be_planned_for(name: str) -> None:
    hardware, graph = board_named(name), network()
    assert schedule.check(Ordinary().plan(graph, hardware), graph, hardware)["status"] == "ok"


def test_all_the_boards_are_there() -> None:
    cpus = {board_named(name).cpu for name in CORTEX_M}
    assert cpus >= {"cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33"}
    assert len(CORTEX_M) >= 7


@pytest.mark.parametrize("key", ["clock_hz", "sram_bytes", "flash_bytes", "baud"])
def test_a_board_without_is_one_line(key: str) -> None:
    with pytest.raises(ThimbleError, match=rf"hardware\.{key}=0: it is at least 1"):
        board_named("nucleo_l4r5zi", **{key: 0})


def test_a_board_that_takes_no_parameters_over_its_line_says_so() -> None:
    board = board_named("nucleo_l4r5zi", weights_in="stream")
    with pytest.raises(ThimbleError, match=r"over its line, hardware\.weights_in=stream: set"):
        Ordinary().plan(network(), board)
