"""What a card holds: documented bytes, the same for the same plan; and transfers that go past a
data cache: what is cleaned and forgotten."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.card.image import Image
from pipeline.codegen.card.program import number
from pipeline.codegen.checks import arena_bytes
from pipeline.errors import PlanError, ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.fit import of_board
from pipeline.plan.serialize import plan_hash
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.swap import Swap
from tests.codegen.card.support import elements, large, planned, swapped
from tests.codegen.support import SANITIZERS, WARNINGS, Native, frames
from tests.strategies.swap import nets
from tests.strategies.swap.nets import random_chain
from tests.tiers import quick

BLOCK = 512
NO_CARD, OTHER_CARD = 3, 4
"""Of ``nn_status_t``."""


@pytest.fixture
def image() -> Image:
    graph = random_chain(9)
    return Image(graph, planned(graph, elements(graph) // 4))


def test_a_header_says_what_it_holds(image: Image, tmp_path: Path) -> None:
    image.write(tmp_path / "a.img")
    content = (tmp_path / "a.img").read_bytes()
    magic, version, block, blocks = struct.unpack_from("<8sHHI", content)
    assert (magic, version, block) == (b"THIMBLE\0", 1, BLOCK)
    assert len(content) == blocks * BLOCK
    assert content[16:24].hex() == image.graph.hash
    assert content[24:32].hex() == plan_hash(image.plan)
    assert struct.unpack_from("<I", content, 32) == (2,)
    kind, first, count, check = struct.unpack_from("<IIII", content, 36)
    assert (kind, first) == (1, 1)
    assert check == crc32(content[BLOCK : (1 + count) * BLOCK])
    assert struct.unpack_from("<IIII", content, 52) == (2, 1 + count, blocks - count - 2, 0)
    for start in (0, len(content) - BLOCK):
        block_of = content[start : start + BLOCK]
        assert struct.unpack("<I", block_of[-4:]) == (crc32(block_of[:-4]),)
    assert content[-BLOCK:][8:32] == content[8:32] and content[-BLOCK:][:8] == b"THIMEND\0"


def test_weights_come_in_the_order_of_their_use_each_from_a_block_on(
    image: Image, tmp_path: Path
) -> None:
    image.write(tmp_path / "a.img")
    content, top = (tmp_path / "a.img").read_bytes(), BLOCK
    order = [op.parameters[0] for op in image.graph.operators if op.parameters]
    assert [buffer.tensor for buffer in image.weights] == order
    for name in order:
        values = image.graph.constants[name]
        found = np.frombuffer(content, np.int8, values.size, top)
        assert image.at[name] == top and (found == values.reshape(-1)).all()
        top += -(-values.size // BLOCK) * BLOCK
    maps = [image.at[buffer.name] for buffer in image.maps]
    assert min(maps) == top and all(at % BLOCK == 0 for at in maps)
    assert not any(content[top:-BLOCK])


def test_equal_plans_have_equal_images_and_blocks_have_room(image: Image, tmp_path: Path) -> None:
    image.write(tmp_path / "a.img")
    Image(image.graph, image.plan).write(tmp_path / "deeper" / "b.img")
    assert (tmp_path / "a.img").read_bytes() == (tmp_path / "deeper" / "b.img").read_bytes()
    small = (replace(m, granule_bytes=64) if m.kind == "block" else m for m in image.plan.memories)
    with pytest.raises(ThimbleError, match="blocks of 128 B or more"):
        plan = replace(image.plan, memories=tuple(small))
        Image(image.graph, plan).write(tmp_path / "c.img")
    assert {path.name for path in tmp_path.rglob("*.*")} == {"a.img", "b.img"}


def test_numbers_are_read_as_they_are_written() -> None:
    """As ``nn_card_number`` of card.c.j2 does."""
    for value in (0, 1, -1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31)):
        data = number(value)
        coded = sum((byte & 0x7F) << 7 * n for n, byte in enumerate(data))
        assert sum(byte >> 7 for byte in data) == len(data) - 1
        assert (-(coded >> 1) - 1 if coded & 1 else coded >> 1) == value


CHECKED = """
#include "model.h"
int main(void) { return nn_check_card(); }
"""


def test_c_finds_weights_that_are_not_what_was_written(tmp_path: Path) -> None:
    """Each byte of header and weights counts; what feature maps hold does not."""
    graph = random_chain(9)
    plan = planned(graph, elements(graph) // 4)
    program = swapped(tmp_path, graph, plan)
    whole, weights = program.card.read_bytes(), Image(graph, plan).extents[0]
    (tmp_path / "main.c").write_text(CHECKED)
    names = [file.name for file in tmp_path.glob("*.c")]
    subprocess.run(["cc", *WARNINGS, *SANITIZERS, *names, "-o", "check"], cwd=tmp_path, check=True)
    told = {"sound": 0, "maps": 0}
    places = {"sound": None, "table": 52, "first": BLOCK, "last": (1 + weights.blocks) * BLOCK - 1,
              "maps": (1 + weights.blocks) * BLOCK}  # fmt: skip
    for name, at in places.items():
        damaged = bytearray(whole)
        if at is not None:
            damaged[at] ^= 4
        program.card.write_bytes(damaged)
        status = subprocess.run([tmp_path / "check"], cwd=tmp_path, check=False).returncode
        assert status == told.get(name, OTHER_CARD), name
    program.card.unlink()
    assert subprocess.run([tmp_path / "check"], cwd=tmp_path, check=False).returncode == NO_CARD


LINE = 32
DEVICE = Path(__file__).parent / "fixture" / "write_back_device.c"
LATE = {"late_device.h": DEVICE.with_name("late_device.h").read_text()}


def board(sram_bytes: int, line_bytes: int = LINE) -> Hardware:
    plain = nets.board(sram_bytes)
    return replace(plain, card=replace(plain.card, line_bytes=line_bytes))


def right(folder: Path, graph: Graph, plan: Plan, old: str = "", new: str = "") -> bool:
    """Whether the C, with ``new`` instead of ``old``, gives the graph's outputs with a cache."""
    files = generate(graph, plan, board(arena_bytes(plan)), {}) | LATE
    assert not old or files["storage.c"].count(old) == 1
    files["storage.c"] = files["storage.c"].replace(old, new) if old else files["storage.c"]
    options = (f"-DSTORAGE_LINE_BYTES={LINE}", *(("-Wno-error",) if old else ()))
    program = Native(
        folder, graph, plan, files=files, device=DEVICE, options=options, sanitize=not old
    )
    status, found = program.run(frames(graph, 3))
    return status == 0 and np.array_equal(found, graph.outputs(frames(graph, 3)))


def planned_for_lines(graph: Graph, **keys: object) -> Plan:
    plan = Swap(**keys).plan(graph, board(elements(graph) // 4))  # type: ignore[arg-type]
    wide = [replace(m, bytes=1 << 24) if m.name == "sram" else m for m in plan.memories]
    return replace(plan, memories=tuple(wide))


@pytest.mark.parametrize("seed", quick(0, (9, 0, 3, 4, 11, 12, 15), ci=1))
@pytest.mark.parametrize("keys", quick(1, [{}, {"scheduler": "swapnn", "buffer_bytes": 640}]))
def test_computes_what_the_graph_does(tmp_path: Path, seed: int, keys: dict[str, object]) -> None:
    graph = random_chain(seed)
    plan = planned_for_lines(graph, **keys)
    assert plan.memory["sram"].granule_bytes == LINE and arena_bytes(plan) % LINE == 0
    verify(plan, graph)
    assert right(tmp_path, graph, plan)


CLEAN, DISCARD = "data_cache_clean(memory,", "data_cache_discard(memory,"
WITHOUT = {
    "cleaning before a write": (CLEAN, f"if (storage.direction == STORAGE_READ) {CLEAN}"),
    "cleaning before a read": (CLEAN, f"if (storage.direction == STORAGE_WRITE) {CLEAN}"),
    "forgetting": (DISCARD, "(void)(memory,"),
    "the whole blocks": ("if (state == MOVING) {", "if (0) {"),
    "the first block": ("in_step(storage.first, ", "in_step(storage.first, 0 * "),
    "the last block": ("in_step(storage.last, ", "in_step(storage.last, 0 * "),
}


@pytest.mark.parametrize("what", quick(1, WITHOUT, ci=0))
def test_without_it_there_is_another_answer(tmp_path: Path, what: str) -> None:
    """On rows that are whole blocks, or on some that are not."""
    networks = (large((12, 16, 32), 32, 32), random_chain(9))
    answers = (right(tmp_path / g.name, g, planned_for_lines(g), *WITHOUT[what]) for g in networks)
    assert not all(answers)


def test_a_plan_for_another_line_is_refused() -> None:
    graph = random_chain(9)
    plan = planned_for_lines(graph)
    text = generate(graph, plan, board(arena_bytes(plan)), {})["model.c"]
    assert f"STORAGE_LINE_BYTES != {LINE}" in text
    with pytest.raises(PlanError, match=r"in granules of 32 B, .* has ram in granules of 1 B"):
        of_board(plan, nets.board(1 << 16))
    with pytest.raises(ThimbleError, match=r"buffer_bytes=200: .* needs a multiple of 32"):
        planned_for_lines(graph, scheduler="swapnn", buffer_bytes=200)
