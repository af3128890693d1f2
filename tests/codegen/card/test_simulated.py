"""Plans that swap on a simulated Cortex-M7, whose card takes the time that its YAML says, and on a
simulated Uno with a modelled SD card on its SPI: as the graph, in the memory that they say."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.card.image import NAME
from pipeline.codegen.checks import arena_bytes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import cost
from pipeline.plan.fit import fit
from pipeline.plan.verify import verify
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets import card, device, elf, host, qemu, simavr, toolchain
from pipeline.targets.cortex_m import STATICS
from pipeline.targets.cortex_m_board import MORE_BYTES, driver_flags
from pipeline.targets.toolchain import Size
from pipeline.timing.counted import latency
from pipeline.timing.simulate import simulate
from tests.codegen.card.support import RESERVE, board, elements, large, rows, twice
from tests.codegen.card.test_swapped import wrong
from tests.codegen.support import frames, on_board
from tests.comparing import equal
from tests.schedules.test_swapped import row_by_row
from tests.strategies.swap.nets import Chain, random_chain
from tests.strategies.swap.test_best import inception, residual, squeezed
from tests.targets.conftest import needs_avr
from tests.targets.cortex_m import board_named, built, needs_arm
from tests.tiers import quick

pytestmark = [needs_arm, needs_avr]


def uno(security: Security = "none") -> Hardware:
    found = board_named("arduino_sd")
    return replace(found, card=replace(found.card, security=security))


def with_large_weights() -> Graph:
    """Build a network with 17 KB of weights, and an input larger than the arena."""
    chain = Chain("net", (20, 20, 4)).conv(8, 3, 2, 1).conv(8, 3, 2, 1).dense(80)
    return chain.graph(np.random.default_rng(0))


CASES: list[tuple[Graph, Hardware | None]] = [
    (random_chain(9), None),
    (random_chain(3), uno()),
    (squeezed(0), None),
    (large(), board("unchecked", 3008 - RESERVE)),
    (random_chain(9), uno("unchecked")),
    (random_chain(9), uno()),
    (with_large_weights(), uno()),
    # each night; the first results fit, and frames are the same again after others
    *((random_chain(seed), board("unchecked", 4096 - RESERVE)) for seed in (9, 4)),
    *((random_chain(seed), None) for seed in (0, 4, 12)),
    *((residual(0), None), (inception(0), None), (large((6, 6, 4), 40), uno())),
    *((random_chain(seed), uno("unchecked")) for seed in (3, 0, 4, 12)),
]
"""A network and its board; if there is none, an M7 with a third of what its tensors take."""


@pytest.mark.parametrize("number", quick(2, range(len(CASES)), ci=5))
def test_computes_what_the_graph_does_in_the_memory_that_it_says(
    number: int, tmp_path: Path
) -> None:
    graph, found = CASES[number]
    hardware = found or board("unchecked", elements(graph) // 3)
    plan = Swap().plan(graph, hardware)
    verify(plan, graph)
    size, runs = on_board(tmp_path, graph, hardware, plan, twice(graph))
    assert size.ram_objects["nn_arena"] == arena_bytes(plan)
    assert (runs.arena_touched_bytes or 0) <= arena_bytes(plan)
    if hardware.core == "avr":
        needed = fit(plan, cost(plan, graph, hardware), hardware).needed_bytes
        assert size.sram_bytes <= needed <= hardware.sram_bytes
    used = size.statics_bytes + (runs.stack_bytes or 0)
    assert used <= size.sram_bytes <= hardware.sram_bytes


def rectified() -> Graph:
    """Inputs that are at least their zero point, as behind a ReLU: padded windows of a grey image,
    of several channels, and dense layers, with weights at both ends."""
    chain = Chain("net", (12, 12, 1)).conv(4, 5, 1, 2).maximum(2, 2).conv(6, 3).dense(12).dense(5)
    graph = chain.graph(np.random.default_rng(1))
    weights = graph.constants[graph.operator("dense3").parameters[0]]
    weights[0], weights[1] = 127, -128
    tensors = {
        name: tensor if name in graph.constants else replace(tensor, zero_point=-128)
        for name, tensor in graph.tensors.items()
    }
    return replace(graph, tensors=tensors)


@pytest.mark.parametrize("number", quick(1, [0, 1, 2], ci=3))
def test_frames_in_flight_are_told_apart(tmp_path: Path, number: int) -> None:
    """Two together, of three images, the third fed while they are computed or after that: what a
    run says is of each, and near its plan, which is in the memory that there is."""
    graph, keys = random_chain(9), ({"ahead_bytes": 1024}, {}, {"flush_bytes": 1024})[number]
    hardware = uno() if number == 1 else board("unchecked", 6000 + sum(keys.values()))
    hardware = replace(hardware, clock_hz=hardware.clock_hz // (1, 1, 216)[number])  # idle: flushed
    plan = Swap(frames=2, **keys).plan(graph, hardware)
    names = [op.name for op in graph.operators]
    size, given = built(tmp_path, graph, hardware, plan), frames(graph, 3).astype(np.int8)
    assert fit(plan, cost(plan, graph, hardware), hardware).fits and size.status == "ok"
    toolchain.build_host(tmp_path / "generated", tmp_path / "build" / "host")
    target, build, images = {"name": "simulate", "images": 3}, tmp_path / "build", given.view("u1")
    report, arrays = device.measure(target, build, vars(size), hardware, images, names)
    for where in ("device", "host"):
        found = arrays[f"{where}_outputs"].view(np.int8)
        equal(found, graph.evaluate(given.astype(np.int64)).reshape(3, -1))
    assert report["images"] == 3
    if "beside_card" in report:
        us = latency(plan, graph, hardware, report)["latency_us"]
        assert simulate(plan, graph, hardware).makespan_us / 2 == pytest.approx(us, rel=0.2)
    whole = report.get("modelled_cycles") or {"compute_cycles": report["compute_cycles"]["median"]}
    layers = sum(cycles for _, cycles in report["layer_cycles"])
    assert layers == pytest.approx(whole["compute_cycles"], abs=len(names))


@pytest.mark.ci
def test_products_in_assembly(tmp_path: Path) -> None:
    """The graph's answers, for extreme inputs, too, and what of the cycles is the card's."""
    graph = rectified()
    size = built(tmp_path, graph, uno(), Swap().plan(graph, uno()))
    toolchain.build_host(tmp_path / "generated", tmp_path / "build" / "host")
    assert "nn_dot(" in (tmp_path / "generated" / "model.c").read_text()
    given = frames(graph, 4).astype(np.int8)
    given[2], given[3] = 127, -128
    names = [op.name for op in graph.operators]
    target = {"name": "simulate", "images": 4}
    report, arrays = device.measure(
        target, tmp_path / "build", vars(size), uno(), given.view(np.uint8), names
    )
    expected = graph.evaluate(given.astype(np.int64)).reshape(4, -1)
    for where in ("device", "host"):
        equal(arrays[f"{where}_outputs"].view(np.int8), expected)
    layers, whole = dict(report["layer_cycles"]), report["compute_cycles"]["median"]
    assert set(layers) == {*names, "rest"} and sum(layers.values()) == whole
    assert 0.5 * layers["rest"] < report["card_cycles"] < layers["rest"]
    for op in graph.operators:
        if macs := op.macs(graph.tensors):
            assert layers[op.name] < 120 * macs


def uncached() -> Hardware:
    """For plans by hand, which keep to no lines of a cache."""
    hardware = board_named("stm32f746g_sd")
    return replace(hardware, card=replace(hardware.card, line_bytes=1))


@pytest.mark.ci
def test_the_card_goes_on_while_a_step_computes(tmp_path: Path) -> None:
    """In its interrupt: asked only when a step is done, it begins no second transfer meanwhile,
    which shows where the card takes longer than the core."""
    chain = Chain("net", (16, 16, 16))
    for channels in (32, 32, 16):
        chain.conv(channels, 3, 1, 1)
    graph = chain.graph(np.random.default_rng(0))
    m7 = replace(board_named("stm32f746g_sd"), sram_bytes=16_384, stack_reserve_bytes=RESERVE)
    polled = replace(m7.toolchain, flags=(*m7.toolchain.flags, "-DSTORAGE_POLLED"))
    taken = []
    for tool in (m7.toolchain, polled):
        hardware, plan = replace(m7, toolchain=tool), Swap().plan(graph, m7)
        folder = tmp_path / f"{len(taken)}"
        size, runs = on_board(folder, graph, hardware, plan, frames(graph, 2))
        assert ("port_card_interrupt" in size.stack_path) == (tool is not polled)
        assert runs.instructions is not None
        taken.append(int(runs.instructions[0]))
    assert taken[0] < 0.99 * taken[1]


@pytest.mark.parametrize(
    ("command_us", "block_us"), quick(0, [(0.1, 0.0), (3.0, 0.7), (11.0, 5.0), (90.0, 1.0)], ci=1)
)
def test_whenever_a_transfer_ends(tmp_path: Path, command_us: float, block_us: float) -> None:
    """Interrupts come at other places of the program with each card."""
    graph, hardware = random_chain(12), board_named("stm32f746g_sd")
    times = {"read_command_us": command_us, "write_command_us": 2 * command_us,
             "read_block_us": block_us, "write_block_us": block_us / 2}  # fmt: skip
    hardware = replace(hardware, card=replace(hardware.card, read_bytes_per_s=4e8, **times))
    plan = Swap().plan(graph, replace(hardware, sram_bytes=8192, stack_reserve_bytes=RESERVE))
    on_board(tmp_path, graph, hardware, plan)


OTHER, NONE = "holds another network, plan or version, or not all", "there is no card"


@pytest.mark.ci
@pytest.mark.parametrize("hardware", [uncached(), uno()], ids=lambda hardware: hardware.name)
def test_says_what_is_wrong_with_a_card(tmp_path: Path, hardware: Hardware) -> None:
    """In one line, also of the host program; and computes again as soon as the card is right."""
    graph = rows() if hardware.core != "avr" else random_chain(3)
    plan = row_by_row(graph) if hardware.core != "avr" else Swap().plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    build = tmp_path / "build"
    toolchain.build_host(tmp_path / "generated", build / "host")
    whole, images = (build / NAME).read_bytes(), frames(graph, 2).astype(np.int8).view(np.uint8)

    def outputs(target: str) -> np.ndarray:
        if target == "host":
            return host.infer(build / "host", images)
        run = simavr.run if hardware.core == "avr" else qemu.run
        return run(build, vars(size), hardware, images).outputs

    for number, content in enumerate(wrong(whole)):
        (build / NAME).unlink() if content is None else (build / NAME).write_bytes(content)
        for target in ("host", "device") if number < 3 else ("host",):
            with pytest.raises(ThimbleError, match=OTHER if content else NONE) as told:
                outputs(target)
            assert "\n" not in str(told.value)
    (build / NAME).write_bytes(whole)
    for target in ("host", "device"):
        equal(
            outputs(target).view(np.int8).reshape(-1), graph.evaluate(frames(graph, 2)).reshape(-1)
        )


def test_a_card_takes_the_time_that_the_board_says() -> None:
    hardware = board_named("stm32f746g_sd")
    flags = [flag for flag in card.flags(hardware, 40) if flag.startswith("-D")]
    told = dict(flag.removeprefix("-D").rstrip("u").split("=") for flag in flags)
    # 200 us a command at 216 MHz, an instruction a cycle; 512 B at 12 MB/s and 9 us besides
    assert told["CARD_READ_COMMAND_TICKS"] == str(round(200 * 216 / 40))
    assert told["CARD_READ_BLOCK_TICKS"] == str(round((512 / 12 + 9) * 216 / 40))
    assert int(told["CARD_WRITE_COMMAND_TICKS"]) > int(told["CARD_READ_COMMAND_TICKS"])
    assert card.flags(board_named("nucleo_f767zi"), 40) == ()
    assert card.cycles(uno()) == (300 * 16, 30 * 16, 700 * 16, 30 * 16)


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
