"""Plans that swap on a simulated Cortex-M7, whose card takes the time that its YAML says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.card.image import NAME
from pipeline.codegen.checks import arena_bytes
from pipeline.errors import PlanError, ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.swap import Swap
from pipeline.targets import builds, card, host, toolchain
from pipeline.targets.protocol import FrameError
from tests.codegen.card.test_swapped import elements, in_parts, without_waits
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.schedules.test_swapped import row_by_row
from tests.strategies.swap.nets import Chain, random_chain
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated
from tests.tiers import quick

pytestmark = needs_arm
RESERVE = 4096


@pytest.mark.parametrize("seed", quick(1, (9, 0, 4, 12), ci=0))
def test_computes_what_the_graph_does_in_the_ram_that_it_says(tmp_path: Path, seed: int) -> None:
    graph = random_chain(seed)
    hardware = board_named("stm32f746g_sd")
    sram_bytes = (elements(graph) // 3 + 2 * RESERVE) // 32 * 32
    hardware = replace(hardware, sram_bytes=sram_bytes, stack_reserve_bytes=RESERVE)
    plan = Swap().plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    assert size.status == "ok" and size.ram_objects["nn_arena"] == arena_bytes(plan)
    given = frames(graph, 3)
    runs = simulated(tmp_path, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))
    assert size.statics_bytes + (runs.stack_bytes or 0) <= size.sram_bytes <= sram_bytes
    assert (runs.arena_touched_bytes or 0) <= arena_bytes(plan)


def uncached() -> Hardware:
    """For plans by hand, which keep to no lines of a cache."""
    hardware = board_named("stm32f746g_sd")
    return replace(hardware, card=replace(hardware.card, line_bytes=1))


def rows() -> Graph:
    """Whose rows are of whole blocks."""
    chain = Chain("net", (9, 16, 32))
    chain.conv(32, 3, 1, 1)
    return chain.graph(np.random.default_rng(0))


@pytest.mark.parametrize(("track", "wait"), quick(0, [(0, 0), (1, 0), (1, 1)], ci=1))
def test_without_waiting_there_is_another_answer(tmp_path: Path, track: int, wait: int) -> None:
    """Of the core for a transfer, and of the card for the core."""
    graph = rows()
    plan = row_by_row(graph)
    tracks = [*plan.tracks]
    tracks[track] = replace(tracks[track], steps=without_waits(tracks[track].steps, wait))
    broken = replace(plan, tracks=tuple(tracks))
    with pytest.raises(PlanError):
        verify(broken, graph)
    hardware, given = uncached(), frames(graph, 2)

    def right(name: str, plan: Plan) -> bool:
        size = built(tmp_path / name, graph, hardware, plan)
        try:
            runs = simulated(tmp_path / name, graph, hardware, size, given)
        except FrameError as error:  # what was being written changed under way
            return "the card failed" not in str(error)
        return np.array_equal(outputs(graph, runs), graph.outputs(given))

    assert right("whole", plan) and not right("broken", broken)


@pytest.mark.ci
def test_the_card_goes_on_while_a_step_computes(tmp_path: Path) -> None:
    """In its interrupt: asked only when a step is done, it begins no second transfer meanwhile,
    which shows where the card takes longer than the core."""
    chain = Chain("net", (16, 16, 16))
    for channels in (32, 32, 16):
        chain.conv(channels, 3, 1, 1)
    graph = chain.graph(np.random.default_rng(0))
    board = replace(board_named("stm32f746g_sd"), sram_bytes=16_384, stack_reserve_bytes=RESERVE)
    polled = replace(board.toolchain, flags=(*board.toolchain.flags, "-DSTORAGE_POLLED"))
    plan, given, taken = Swap().plan(graph, board), frames(graph, 2), dict[str, int]()
    for name, tool in (("interrupts", board.toolchain), ("polled", polled)):
        hardware = replace(board, toolchain=tool)
        size = built(tmp_path / name, graph, hardware, plan)
        runs = simulated(tmp_path / name, graph, hardware, size, given)
        equal(outputs(graph, runs), graph.outputs(given))
        assert (runs.stack_bytes or 0) <= size.stack_bound_bytes
        assert ("port_card_interrupt" in size.stack_path) == (name == "interrupts")
        assert runs.instructions is not None
        taken[name] = int(runs.instructions[0])
    assert taken["interrupts"] < 0.99 * taken["polled"]


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
    size = built(tmp_path, graph, hardware, plan)
    given = frames(graph, 3)
    runs = simulated(tmp_path, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


@pytest.mark.slow
def test_sums_that_are_kept_between_tiles(tmp_path: Path) -> None:
    graph, plan = in_parts()
    hardware, given = uncached(), frames(graph, 2)
    size = built(tmp_path, graph, hardware, plan)
    runs = simulated(tmp_path, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))


OTHER, NONE = "too small, or holds another network, plan or version, or not all", "there is no card"


def wrong(whole: bytes) -> dict[str, tuple[bytes | None, str]]:
    """What a card may be instead of ``whole``, and what is said then."""
    return {
        "no header": (bytes(512) + whole[512:], OTHER),
        "too small": (whole[:-512], OTHER),
        "not there": (None, NONE),
        "empty": (b"", NONE),
        "cut short in a block": (whole[:-1], OTHER),
        "not written to its end": (whole[:-512] + bytes(512), OTHER),
        "of another version": (whole[:8] + b"\2" + whole[9:], OTHER),
        "of another network": (whole[:16] + bytes(8) + whole[24:], OTHER),
        "of another plan": (whole[:24] + bytes(8) + whole[32:], OTHER),
        "the end of another plan": (whole[:-488] + bytes(8) + whole[-480:], OTHER),
    }


@pytest.mark.ci
def test_says_what_is_wrong_with_a_card(tmp_path: Path) -> None:
    """In one line; and computes again as soon as the card is right."""
    graph = rows()
    hardware, given = uncached(), frames(graph, 2)
    size = built(tmp_path, graph, hardware, row_by_row(graph))
    toolchain.build_host(tmp_path / "generated", tmp_path / "build" / "host")
    image = tmp_path / "build" / NAME
    whole = image.read_bytes()
    images = np.ascontiguousarray(given.astype(np.int8)).view(np.uint8)
    for number, (content, said) in enumerate(wrong(whole).values()):
        image.unlink(missing_ok=True) if content is None else image.write_bytes(content)
        with pytest.raises(ThimbleError, match=said) as told:
            host.infer(tmp_path / "build" / "host", images)
        assert "\n" not in str(told.value)
        if number < 3:
            with pytest.raises(ThimbleError, match=said):
                simulated(tmp_path, graph, hardware, size, given)
    image.write_bytes(whole)
    found = host.infer(tmp_path / "build" / "host", images)
    equal(found.reshape(-1), graph.outputs(given).reshape(-1))


@pytest.mark.slow
def test_says_that_a_card_cannot_be_written(tmp_path: Path) -> None:
    graph, hardware = rows(), uncached()
    built(tmp_path, graph, hardware, row_by_row(graph))
    device = tmp_path / "generated" / "cortex_m_device.c"
    text = device.read_text()
    assert text.count("SEMIHOSTING_TO_UPDATE") == 1
    device.write_text(text.replace("SEMIHOSTING_TO_UPDATE", "SEMIHOSTING_TO_READ"))
    size = builds.build(tmp_path / "generated", tmp_path / "build", hardware)
    with pytest.raises(ThimbleError, match=r"\(the card failed, or cannot be written\)$"):
        simulated(tmp_path, graph, hardware, size, frames(graph, 2))


def test_a_card_takes_the_time_that_the_board_says() -> None:
    hardware = board_named("stm32f746g_sd")
    flags = [flag for flag in card.flags(hardware, 40) if flag.startswith("-D")]
    told = dict(flag.removeprefix("-D").rstrip("u").split("=") for flag in flags)
    # 200 us a command at 216 MHz, an instruction a cycle; 512 B at 12 MB/s and 9 us besides
    assert told["CARD_READ_COMMAND_TICKS"] == str(round(200 * 216 / 40))
    assert told["CARD_READ_BLOCK_TICKS"] == str(round((512 / 12 + 9) * 216 / 40))
    assert int(told["CARD_WRITE_COMMAND_TICKS"]) > int(told["CARD_READ_COMMAND_TICKS"])
    assert card.flags(board_named("nucleo_f767zi"), 40) == ()
