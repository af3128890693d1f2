"""Contract of every option of conf/hardware: one that is there is tested here."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import Card, FlashTiming, Hardware, MemoryRegion, Power, Uart
from pipeline.kernels.cortex_m import has_dsp
from pipeline.targets import cortex_m_board, facts, flash
from pipeline.targets.harness import FIRMWARE
from tests.boards import NAMES, OTHER_NAMES, load_hardware
from tests.codegen.int8.support import network
from tests.programs import said
from tests.strategies.chains import Chain
from tests.targets.cortex_m import built
from tests.tiers import quick

BOARDS = {name: load_hardware(name) for name in reversed(NAMES)}
CORTEX_M = [name for name in NAMES if BOARDS[name].core == "cortex_m"]
ONE_A_FAMILY = {(board.core, board.cpu): name for name, board in BOARDS.items()}.values()
every = pytest.mark.parametrize("name", NAMES)


def small(hardware: Hardware) -> Graph:
    """A network of the kind that there is C for on the board."""
    if hardware.core == "avr":
        return Chain((8, 8, 1), "uint8").conv("a", 4).maximum("b").dense("c", 3).graph()
    return network()


@every
def test_its_facts_are_there_and_agree(name: str) -> None:
    assert BOARDS[name].name == name and list(facts.faults(BOARDS[name])) == []


FAULTS = {
    "title is empty": {"title": ""},
    "power.source: say where": {"power": Power(3.3, 1, 1, "a guess")},
    "card.source: say where": {"card": Card(bytes=512)},
    "stack_reserve_bytes=270336: it is not below": {"stack_reserve_bytes": 270336},
    "simulator='qem': have simavr": {"simulator": "qem"},
    "no firmware port for core 'riscv'": {"core": "riscv"},
    "no such memory outside of its chip": {"activations_in": "sdram"},
    "flasher='x {y}' is no command line": {"flasher": "x {y}"},
    "ram and rom overlap at 0x8": {
        "regions": (MemoryRegion("ram", 0, 16), MemoryRegion("rom", 8, 9))
    },
    "flash_bytes=7: hardware.regions has 2097152 B": {"flash_bytes": 7},
    "sram_bytes=1000: hardware.regions has 270336 B in one piece": {"sram_bytes": 1000},
    "sram_bytes=1000: memory protection grants 992 B": {"sram_bytes": 1000},
    "no simulated machine for cpu 'cortex-m23'": {"cpu": "cortex-m23"},
    "cpu=cortex-m23: its cycles have no model": {"cpu": "cortex-m23"},
    "-mcpu=cortex-m3 is not among them": {"cpu": "cortex-m3"},
    "uart.boot=rp2041: there is no boot_rp2041.h": {"uart": Uart(boot="rp2041")},
    "no such rate": {"uart": Uart(base=1, hz=1000)},
    "read_bytes=12: a power of two": {"flash_timing": FlashTiming(1, 12, 16)},
    "line_bytes=4: a line holds whole reads": {"flash_timing": FlashTiming(1, 8, 4)},
    "data_lines=3: not a multiple of its 2 ways": {
        "flash_timing": FlashTiming(1, 8, 8, data_lines=3, data_ways=2)
    },
}


@pytest.mark.parametrize("said", FAULTS)
def test_a_fact_that_is_missing_or_cannot_be_is_a_line(said: str) -> None:
    assert any(said in line for line in facts.faults(replace(BOARDS["pico"], **FAULTS[said])))


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_chip_is_its_common_board(name: str) -> None:
    assert load_hardware(name) == BOARDS[load_hardware(name).name]


@pytest.mark.parametrize(
    "name", quick(2, dict.fromkeys((*ONE_A_FAMILY, *NAMES)), ci=len(ONE_A_FAMILY) - 2)
)
def test_generated_c_is_built_for_it(name: str, tmp_path: Path) -> None:
    hardware = BOARDS[name]
    tools = hardware.toolchain
    if not all(map(shutil.which, (tools.compiler, tools.objcopy, tools.objdump))):
        pytest.skip(f"{tools.package} is not installed: make setup")
    size = built(tmp_path, small(hardware), hardware)
    assert size.status == "ok" and size.statics_bytes > 0
    if cortex_m_board.own(hardware) is not None:  # a dry run
        flash.checked(tmp_path / "build", hardware, "PORT")


@pytest.mark.parametrize("name", quick([*ONE_A_FAMILY], CORTEX_M))
def test_its_c_has_the_assembly_of_its_kernels(name: str, tmp_path: Path) -> None:
    """Not the C that stands in for it where a compiler has none."""
    tools, dsp = BOARDS[name].toolchain, has_dsp(BOARDS[name])
    if not shutil.which(tools.compiler):
        pytest.skip(f"{tools.package} is not installed: make setup")
    kind, header = ("DSP", "cortex_m/nn_dsp.h") if dsp else ("THUMB", "thumb/nn_thumb.h")
    check = f'#include "{header}"\n_Static_assert(NN_{kind}, "C alone");\n'
    (tmp_path / "check.c").write_text(check)
    folders = [f"-I{FIRMWARE}/kernels{folder}" for folder in ("", "/int8", "/frame")]
    said([tools.compiler, *tools.flags, *folders, "-fsyntax-only", "check.c"], tmp_path)
