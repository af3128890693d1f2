"""Simulated Cortex-M cores: exact outputs, counts that repeat, measured memory; random networks as
whole tensors, row by row, and row by row while the input arrives; and a firmware that reaches
beyond the board's memory fails, and is told where."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import (
    cortex_m,
    device,
    flash,
    machines,
    protocol,
    qemu,
    qemu_faults,
    toolchain,
)
from pipeline.targets.protocol import Command
from tests.codegen.int8.support import frames, network
from tests.codegen.support import on_board
from tests.comparing import equal
from tests.graphs import random_graph
from tests.strategies import nets
from tests.targets.cortex_m import (
    ONE_A_CORE,
    board_named,
    built,
    built_stand_in,
    needs_arm,
    outputs,
    simulated,
)
from tests.tiers import quick

pytestmark = [needs_arm, pytest.mark.usefixtures("compiled_once", "no_host")]

GRAPH = network()


@pytest.fixture(scope="module", params=quick(1, ONE_A_CORE))
def on_core(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Board, folder and sizes of one network on one core."""
    hardware = board_named(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    return hardware, folder, built(folder, GRAPH, hardware)


def test_outputs_counts_and_memory(on_core) -> None:
    hardware, folder, size = on_core
    given = frames(GRAPH, 30)  # two processes, the second one's shorter
    runs = simulated(folder, GRAPH, hardware, size, given)
    equal(outputs(GRAPH, runs), GRAPH.evaluate(given))
    assert runs.instructions.shape == (30,) and runs.instructions.min() > GRAPH.macs
    again = simulated(folder, GRAPH, hardware, size, given)
    equal(again.instructions, runs.instructions)
    assert runs.modelled_cycles is not None and again.modelled_cycles == runs.modelled_cycles
    # the deepest path is taken by each inference: the bound is the depth, or nearly
    assert size.stack_bound_bytes * 0.7 <= (runs.stack_bytes or 0) <= size.stack_bound_bytes
    assert runs.arena_touched_bytes == size.ram_objects["nn_arena"] <= size.statics_bytes
    assert size.sram_bytes == size.statics_bytes + size.stack_bound_bytes
    assert "nn_invoke" in size.stack_path


def test_the_firmware_says_the_same_of_its_stack(on_core) -> None:
    hardware, folder, size = on_core
    core = qemu.Core(folder / "build", hardware, vars(size))
    image = frames(GRAPH, 2)[0].astype(np.int8).tobytes()
    stream = protocol.encode(Command.INFER, image) + protocol.encode(Command.REPORT)
    replies, memory = core.exchange(stream)
    report = protocol.report(protocol.accept(replies[1], Command.REPORT))
    assert report.stack_bytes == qemu._stack(memory, vars(size))
    assert len(memory) == hardware.sram_bytes


@pytest.mark.ci
def test_the_report_of_stage_simulate(tmp_path: Path) -> None:
    hardware = board_named("nucleo_f446re")
    size = built(tmp_path, GRAPH, hardware)
    toolchain.build_host(tmp_path / "generated", tmp_path / "build" / "host")
    images = frames(GRAPH, 4).astype(np.int8).view(np.uint8)
    target = {"name": "simulate", "images": 3}
    report, arrays = device.measure(target, tmp_path / "build", vars(size), hardware, images)
    counts = report["modelled_cycles"]
    assert counts["instructions"] < counts["compute_instructions"] and report["images"] == 3
    assert "instructions" not in report, "of nn_invoke alone"
    assert report["sram_bytes"] == size.statics_bytes + report["stack_bytes"]
    equal(arrays["device_outputs"], arrays["host_outputs"][:3])
    none, _ = device.measure(
        target | {"images": 0}, tmp_path / "build", vars(size), hardware, images
    )
    assert none["images"] == 0 and "modelled_cycles" not in none


def test_images_of_another_size_are_one_line(on_core) -> None:
    hardware, folder, size = on_core
    with pytest.raises(ThimbleError, match=r"takes 192 B an image, the test set has 5 values"):
        qemu.run(folder / "build", vars(size), hardware, np.zeros((1, 5), np.uint8))


def check(seed: int, folder: Path) -> None:
    """Rows, of every other network while the input arrives, and of every fourth whole tensors."""
    name, graph = ONE_A_CORE[seed // 2 % 4], random_graph(seed)
    board = board_named(name)
    strategies = [(Joint(), seed % 2 == 1)] + [(Ordinary(), False)] * (seed % 4 == 0)
    for strategy, streams in strategies:
        hardware = replace(board, streams_input=streams)
        plan, place = strategy.plan(graph, hardware), folder / f"{seed} {strategy.name}"
        on_board(place, graph, hardware, plan, frames(graph, 3, seed))


@pytest.mark.parametrize(
    ("first", "count"), quick(1, [(0, 1), (1, 3), *((n, 50) for n in range(0, 150, 50))], ci=1)
)
def test_random_networks(first: int, count: int, tmp_path: Path) -> None:
    for seed in range(first, first + count):
        check(seed, tmp_path)


@pytest.mark.parametrize("name", quick(0, ("nucleo_f446re", "nucleo_g0b1re"), ci=1))
def test_rows_are_made_while_others_arrive(name: str, tmp_path: Path) -> None:
    """Little is left to do after the last byte, and the memory is as announced."""
    graph, left = nets.ds_cnn((16,) * 3), {}
    for streams in (False, True):
        hardware = board_named(name, streams_input=streams)
        plan, folder = Joint().plan(graph, hardware), tmp_path / str(streams)
        size, runs = on_board(folder, graph, hardware, plan)
        assert runs.arena_touched_bytes == size.ram_objects["nn_arena"]
        left[streams] = int(runs.instructions.max())
    assert left[True] < 0.4 * left[False]


IMAGES = np.zeros((1, 16), np.uint8)


def run(folder: Path, hardware: Hardware, invoke: str, **more: str) -> None:
    size = built_stand_in(folder, hardware, invoke=invoke, **more)
    qemu.run(folder / "build", vars(size), hardware, IMAGES)


def place(address: int) -> str:
    """One that the compiler knows nothing of."""
    return f"volatile uintptr_t at_{address:x} = {address:#x}u; *(volatile uint8_t *)at_{address:x}"


def touch(address: int) -> str:
    return f"{place(address)} = 1;"


def look(address: int) -> str:
    return f"{place(address)};"


def on_arm(assembly: str) -> str:
    """Instructions that the native build of the same sources leaves out."""
    return f'\n#ifdef __ARM_ARCH_PROFILE\n__asm__ volatile("{assembly}" ::: "r0");\n#endif\n'


@pytest.mark.parametrize("name", quick(1, ONE_A_CORE))
def test_the_ram_ends_where_the_boards_does(name: str, tmp_path: Path) -> None:
    hardware = board_named(name)
    machine = machines.machine(hardware)
    end = machine.ram_start + hardware.sram_bytes
    run(tmp_path / "last", hardware, look(end - 1) + look(machine.ram_start))
    beyond = 0x20000000 + hardware.sram_bytes  # in the board's own addresses
    said = (
        rf"read or wrote at {beyond + 3:#x}, 3 B past the end of the {hardware.sram_bytes} B of "
        rf"RAM of .*, in nn_invoke at 0x"
    )
    with pytest.raises(ThimbleError, match=said):
        run(tmp_path / "write", hardware, touch(end + 3))
    with pytest.raises(ThimbleError, match="past the end"):
        run(tmp_path / "read", hardware, look(end))


@pytest.mark.parametrize("name", quick(1, ["nucleo_f446re", "nucleo_u575zi"]))  # PMSAv7 and PMSAv8
def test_nothing_else_is_within_reach(name: str, tmp_path: Path) -> None:
    hardware = board_named(name)
    machine = machines.machine(hardware)
    no_memory = "where .* has no memory that it may use so, in nn_invoke"
    places = {
        "flash": touch(machine.flash_start + 64),
        "desk": touch(machine.desk_start),
        "timer": look(machine.timer),
        "flash end": look(machine.flash_start + hardware.flash_bytes),
    }
    for name, code in places.items():
        with pytest.raises(ThimbleError, match=no_memory):
            run(tmp_path / name, hardware, code)
    run(tmp_path / "last", hardware, look(machine.flash_start + hardware.flash_bytes - 1))


@pytest.mark.parametrize("name", quick(1, ONE_A_CORE, ci=1))
def test_too_little_ram_does_not_fit_and_traps(name: str, tmp_path: Path) -> None:
    graph, hardware = network(), board_named(name, sram_bytes=384, stack_reserve_bytes=0)
    size = built(tmp_path, graph, hardware)
    assert size.status == "infeasible" and size.resource == "SRAM"
    assert size.needed_bytes == size.statics_bytes + size.stack_bound_bytes > 384
    with pytest.raises(ThimbleError, match=r"needed a stack of .* B below the 384 B of RAM"):
        simulated(tmp_path, graph, hardware, size, frames(graph, 2))


def test_too_little_flash_does_not_fit(tmp_path: Path) -> None:
    hardware = board_named("nucleo_f446re", flash_bytes=4096)
    size = built_stand_in(
        tmp_path, hardware, globals="static const uint8_t nn_table[5000] = {1};",
        invoke="nn_arena[1] = ((const volatile uint8_t *)nn_table)[nn_arena[0]];",
    )  # fmt: skip
    assert size.status == "infeasible" and size.resource == "flash"
    assert size.where == "nn_table" and size.needed_bytes > 5000
    assert "hardware.kernels=small" in size.advice


@pytest.mark.parametrize("sram_bytes", quick(1, [2048, 100_000]))
def test_any_size_is_kept_to(sram_bytes: int, tmp_path: Path) -> None:
    """The memory protection unit has regions of powers of two, and eighths of them."""
    hardware = board_named("nucleo_f446re", sram_bytes=sram_bytes)
    start, granted = 0x20000000, cortex_m.ram_bytes(hardware)
    assert sram_bytes - 32 < granted <= sram_bytes
    run(tmp_path / "last", hardware, look(start + granted - 1))
    with pytest.raises(ThimbleError, match="read or wrote at"):
        run(tmp_path / "beyond", hardware, touch(start + granted))


@pytest.mark.parametrize(
    ("flash_bytes", "board"),  # PMSAv8, PMSAv7
    quick(0, [(49_024, "nucleo_u575zi"), (49_000, "nucleo_f446re"), (100_000, "nucleo_u575zi")], 2),
)
def test_flash_may_have_any_size(flash_bytes: int, board: str, tmp_path: Path) -> None:
    """All of it is granted; what lies an eighth of a power of two beyond is not."""
    hardware = board_named(board, flash_bytes=flash_bytes)
    start = machines.machine(hardware).flash_start
    run(tmp_path / "last", hardware, look(start + flash_bytes - 1))
    with pytest.raises(ThimbleError, match="has no memory that it may use so"):
        run(tmp_path / "beyond", hardware, look(start + flash_bytes + 16_384))


def test_a_cortex_m0_plus_takes_aligned_words_only(tmp_path: Path) -> None:
    code = on_arm("ldr r0, =nn_arena + 1\\nldr r0, [r0]")
    run(tmp_path / "m4", board_named("nucleo_f446re"), code)
    with pytest.raises(ThimbleError, match="not a multiple of the size, in nn_invoke"):
        run(tmp_path / "m0", board_named("nucleo_g0b1re"), code)


@pytest.mark.ci
def test_other_bad_ends_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hardware = board_named("nucleo_f446re")
    with pytest.raises(ThimbleError, match="ran an undefined instruction, in nn_invoke"):
        run(tmp_path / "undefined", hardware, on_arm("udf #1"))
    with pytest.raises(ThimbleError, match="no bound: nn_invoke jumps to a computed address"):
        run(tmp_path / "jump", hardware, on_arm("ldr r0, =0x20000001\\nbx r0"))
    monkeypatch.setattr(qemu, "PATIENCE_S", 0.5)
    with pytest.raises(ThimbleError, match=r"gave no answer within 0\.5 s"):
        run(tmp_path / "loop", hardware, 'for (;;) __asm__ volatile("");')


def test_what_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hardware = board_named("nucleo_f446re")
    size = built_stand_in(tmp_path, hardware)
    (tmp_path / "build" / "firmware.hex").unlink()
    with pytest.raises(ThimbleError, match=r"firmware\.hex is missing: run stage build again"):
        flash.checked(tmp_path / "build", hardware, "/dev/ttyACM0")
    monkeypatch.setenv("PATH", str(tmp_path))
    install = r"is not installed \(.*NUCLEO-F446RE.*\): sudo apt-get install "
    with pytest.raises(ThimbleError, match=f"qemu-system-arm {install}qemu-system-arm"):
        qemu.run(tmp_path / "build", vars(size), hardware, IMAGES)
    with pytest.raises(ThimbleError, match=f"arm-none-eabi-gcc {install}gcc-arm-none-eabi libn"):
        built_stand_in(tmp_path, hardware)


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (3, "", "could not open its files"),
        (1, "qemu: fatal: Lockup", "ended with 1: qemu: fatal: Lockup"),
        (2, "no fault line", "ended with 2: no fault line"),
        (2, "fault status=00000001 address=00000000 pc=00000000", "jumped to where no code may"),
        (2, "fault status=00080000 address=00000000 pc=00000400", "coprocessor .*, at 0x400"),
        (2, "fault status=00000082 address=e0001000 pc=00000400", "at 0xe0001000, where .* no"),
        (
            2,
            "fault status=00000010 address=1ffffff8 pc=00000000",
            "stack of 72 B .* 8 B below .* kn",
        ),
    ],
)
def test_bad_ends_in_words(code: int, said: str, expected: str, tmp_path: Path) -> None:
    found = qemu_faults.explained(code, said, tmp_path / "none", board_named("nucleo_f446re"), 64)
    assert re.search(expected, found), found


@pytest.mark.parametrize("key", ["clock_hz", "sram_bytes", "flash_bytes", "baud"])
def test_a_board_without_is_one_line(key: str) -> None:
    with pytest.raises(ThimbleError, match=rf"hardware\.{key}=0: it is at least 1"):
        board_named("nucleo_l4r5zi", **{key: 0})


def test_cores_and_memories_without_a_machine_are_refused() -> None:
    with pytest.raises(ThimbleError, match=r"over its line, hardware\.weights_in=stream: set"):
        Ordinary().plan(network(), board_named("nucleo_l4r5zi", weights_in="stream"))
    with pytest.raises(ThimbleError, match="no simulated machine for cpu 'cortex-m55'; have"):
        machines.machine(board_named("nucleo_f446re", cpu="cortex-m55"))
    with pytest.raises(ThimbleError, match="the simulated machine has 3145728 B"):
        machines.machine(board_named("nucleo_f446re", sram_bytes=1 << 23))
