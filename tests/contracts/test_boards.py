"""Contract of every option of conf/hardware: one that is there is tested here."""

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels.cortex_m import has_dsp
from pipeline.targets import cortex_m, machines
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
every_cortex_m = pytest.mark.parametrize("name", CORTEX_M)


def small(hardware: Hardware) -> Graph:
    """A network of the kind that there is C for on the board."""
    if hardware.core == "avr":
        return Chain((8, 8, 1), "uint8").conv("a", 4).maximum("b").dense("c", 3).graph()
    return network()


@every
def test_figures_have_sources_and_memories_are_sane(name: str) -> None:
    hardware = BOARDS[name]
    assert hardware.name == name and hardware.title and hardware.part
    assert len(hardware.power.source) > 20
    assert len(hardware.card.source) > 20 or not hardware.card.bytes
    names = [memory.name for memory in hardware.memories]
    assert len(set(names)) == len(names) and {"sram", "flash"} <= set(names)
    assert all(memory.bytes > 0 for memory in hardware.memories)
    assert 0 <= hardware.stack_reserve_bytes < hardware.sram_bytes <= hardware.flash_bytes * 2
    assert {hardware.activation_memory, hardware.weight_memory} <= set(names)
    spans = sorted((region.start, region.start + region.bytes) for region in hardware.regions)
    assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_chip_is_its_common_board(name: str) -> None:
    assert load_hardware(name) == BOARDS[load_hardware(name).name]


@every_cortex_m
def test_the_simulated_machine_has_its_memory(name: str) -> None:
    hardware = BOARDS[name]
    inside = [region for region in hardware.regions if not region.external]
    assert inside[0].start in (0x20000000, 0x24000000)
    assert hardware.ram_in_one_piece == hardware.sram_bytes
    assert [region.bytes for region in inside if region.kind == "rom"] == [hardware.flash_bytes]
    assert hardware.simulator == "qemu"
    assert machines.machine(hardware).name.startswith("mps2-")
    assert cortex_m.ram_bytes(hardware) == hardware.sram_bytes
    assert f"-mcpu={hardware.cpu}" in hardware.toolchain.flags
    assert cortex_m.flash_granted(hardware.flash_bytes) >= hardware.flash_bytes


@pytest.mark.parametrize("name", quick([*ONE_A_FAMILY][:2], NAMES))
def test_generated_c_is_built_for_it(name: str, tmp_path: Path) -> None:
    hardware = BOARDS[name]
    tools = hardware.toolchain
    if not all(map(shutil.which, (tools.compiler, tools.objcopy, tools.objdump))):
        pytest.skip(f"{tools.package} is not installed: make setup")
    size = built(tmp_path, small(hardware), hardware)
    assert size.status == "ok" and size.statics_bytes > 0


@pytest.mark.parametrize("name", [n for n in ONE_A_FAMILY if n in CORTEX_M])
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
