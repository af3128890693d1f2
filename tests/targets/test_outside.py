"""Weights and activations in memories outside of the chip: placed, reached, limited, counted."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import verdict
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware, MemoryRegion
from pipeline.plan.cost import cost
from pipeline.plan.verify import verify
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import cortex_m, elf, machines
from tests.codegen.int8.support import frames, network
from tests.codegen.support import on_board
from tests.strategies.bench_joint import network as named
from tests.targets.cortex_m import board_named, built, needs_arm
from tests.targets.test_qemu import look, run, touch
from tests.tiers import quick

pytestmark = pytest.mark.usefixtures("compiled_once", "no_host")
WEIGHTS = {"weights_in": "external_flash"}
ACTIVATIONS = {"activations_in": "sdram"}


def discovery(**changes: object) -> Hardware:
    return board_named("stm32f769i_disco", **changes)


@needs_arm
@pytest.mark.parametrize("changes", quick(0, [WEIGHTS | ACTIVATIONS, WEIGHTS, ACTIVATIONS], ci=2))
def test_answers_are_the_same_and_memory_is_counted_apart(
    changes: dict[str, object], tmp_path: Path
) -> None:
    graph, hardware = network(), discovery(**changes)
    inside = built(tmp_path / "inside", graph, discovery())
    size, runs = on_board(tmp_path, graph, hardware)
    program = elf.read(tmp_path / "build" / "firmware.elf", hardware.toolchain.objdump)
    arena, weights = program.size(cortex_m.ARENA), program.size(cortex_m.WEIGHTS)
    assert runs.arena_touched_bytes == arena > 0
    if "activations_in" in changes:
        assert size.statics_bytes <= inside.statics_bytes - arena + 7
        assert size.outside["sdram"] == (arena, 1 << 24)
    else:
        assert size.statics_bytes == inside.statics_bytes and "sdram" not in size.outside
    if "weights_in" in changes:
        assert weights > sum(graph.tensors[name].size for name in graph.constants)
        assert size.outside["quadspi"] == (weights, 1 << 26)
        assert size.flash_bytes < inside.flash_bytes - graph.weight_bytes
    else:
        assert "quadspi" not in size.outside


@needs_arm
@pytest.mark.ci
def test_they_are_within_reach_only_where_they_are_used(tmp_path: Path) -> None:
    machine = machines.machine(discovery())
    rom, ram = machine.outside_start, machine.outside_ram_start
    both = discovery(**WEIGHTS, **ACTIVATIONS)
    last = machines.OUTSIDE_BYTES - 1
    run(tmp_path / "all", both, look(rom) + look(rom + last) + touch(ram + last))
    for name, hardware, code, at in (
        ("written", both, touch(rom + 16), r"0x90000010, of quadspi"),
        ("no weights", discovery(**ACTIVATIONS), look(rom), "0x90000000, of quadspi"),
        ("no activations", discovery(**WEIGHTS), look(ram + 4), "0xc0000004, of sdram"),
    ):
        with pytest.raises(ThimbleError, match=f"read or wrote at {at}, what .* in nn_invoke"):
            run(tmp_path / name, hardware, code)


@needs_arm
@pytest.mark.ci
def test_a_core_with_another_map_reads_weights_there_and_only_there(tmp_path: Path) -> None:
    board = board_named("nucleo_u575zi")
    assert board.cpu == "cortex-m33"
    region = MemoryRegion("quadspi", 0x90000000, machines.OUTSIDE_BYTES, "rom", external=True)
    hardware = replace(board, regions=(*board.regions, region), weights_in="external_flash")
    on_board(tmp_path, network(), hardware)
    code = touch(machines.machine(hardware).outside_start + 16)
    with pytest.raises(ThimbleError, match=r"0x90000010, of quadspi.* in nn_invoke"):
        run(tmp_path / "written", hardware, code)


def test_every_memory_is_checked() -> None:
    graph = network()

    def judged(hardware: Hardware) -> tuple[str, str, str]:
        report = verdict.check(Ordinary().plan(graph, hardware), graph, hardware)
        return report["status"], report["resource"], report.get("advice", "")

    small = discovery(flash_bytes=128)
    assert judged(small)[:2] == ("infeasible", "flash")
    assert "hardware.weights_in=external_flash" in judged(small)[2]
    assert judged(replace(small, weights_in="external_flash"))[0] == "ok"
    tight = discovery(sram_bytes=2100)
    assert judged(tight)[:2] == ("infeasible", "SRAM")
    assert "hardware.activations_in=sdram" in judged(tight)[2]
    assert judged(replace(tight, activations_in="sdram"))[0] == "ok"
    outside = tuple(replace(r, bytes=64) if r.external else r for r in small.regions)
    tiny = replace(small, weights_in="external_flash", activations_in="sdram", regions=outside)
    assert judged(tiny)[:2] == ("infeasible", "quadspi")


def test_a_board_without_such_memory_says_so() -> None:
    graph = network()
    for change in (WEIGHTS, ACTIVATIONS):
        with pytest.raises(ThimbleError, match=r"nucleo_f767zi has no such memory .* set hardw"):
            Ordinary().plan(graph, board_named("nucleo_f767zi", **change))


@needs_arm
def test_more_than_the_simulated_machine_has_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cortex_m, "OUTSIDE_BYTES", 128)
    with pytest.raises(ThimbleError, match="in quadspi, the simulated machine has 128 B for it"):
        built(tmp_path, network(), discovery(**WEIGHTS))


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize("streams_input", [False, True])
def test_mobilenet_v2_224_in_the_chips_own_sram(streams_input: bool, tmp_path: Path) -> None:
    """All of its activations, exact sums, nothing computed twice; as much as was announced."""
    graph = named("mobilenet_v2_224")
    hardware = board_named("stm32f746g_disco", **WEIGHTS, streams_input=streams_input)
    plan = Joint().plan(graph, hardware)
    costs = cost(plan, graph, hardware, verify(plan, graph))
    assert costs.macs_executed == graph.macs
    size, runs = on_board(tmp_path, graph, hardware, plan, frames(graph, 3)[2:])
    assert set(size.outside) == {"quadspi"}
    assert runs.arena_touched_bytes == size.ram_objects["nn_arena"] == costs.arena_bytes
    assert 0 <= size.stack_bound_bytes - (runs.stack_bytes or 0) <= 8
    assert size.sram_bytes <= hardware.sram_bytes
