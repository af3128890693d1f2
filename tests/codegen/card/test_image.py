"""What a card holds: documented bytes, the same for the same plan."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from pipeline.codegen.card.image import Image
from pipeline.codegen.card.program import number
from pipeline.errors import ThimbleError
from pipeline.plan.serialize import plan_hash
from tests.codegen.card.support import elements, planned, swapped
from tests.codegen.support import SANITIZERS, WARNINGS
from tests.strategies.swap.nets import random_chain

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
