"""Networks whose card is sealed: the same answers, and none from a card that is not right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.codegen.card.sealed import Sealed
from pipeline.errors import ThimbleError
from pipeline.hardware import Card
from pipeline.sealed_image import MANIFEST, checked, main
from pipeline.targets.card import NAME
from pipeline.targets.protocol import Status
from tests.codegen.card.support import BLOCK, KEY, Program, board, given, program
from tests.codegen.support import on_board
from tests.targets.cortex_m import needs_arm
from tests.tiers import quick

pytestmark = needs_arm


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return program(tmp_path_factory.mktemp("encrypted"), "encrypted")


@pytest.mark.parametrize(
    ("security", "seed"),
    quick(
        1,
        [("encrypted", 9), ("integrity", 1), ("none", 1), ("integrity", 0), ("encrypted", 12)],
        ci=2,
    ),
)
def test_computes_what_the_graph_does_in_the_ram_that_it_says(
    tmp_path: Path, security: str, seed: int
) -> None:
    made = program(tmp_path, security, seed)  # type: ignore[arg-type]
    frames = given(made.graph, 3)
    size, runs = on_board(tmp_path, made.graph, made.hardware, made.plan, frames)
    used = size.statics_bytes + (runs.stack_bytes or 0)
    assert used <= size.sram_bytes <= made.hardware.sram_bytes
    for reply, frame in zip(made.answers(made.sealed(), frames), frames, strict=True):
        assert made.right(reply, frame)


@pytest.mark.ci
def test_nothing_of_the_weights_is_on_the_card(encrypted: Program) -> None:
    plain, sealed = (encrypted.build / "card.img").read_bytes(), encrypted.sealed()
    runs = [
        plain[at + n : at + n + 12]
        for _, at, _, size in encrypted.pieces()
        for n in range(0, size - 12, 97)
    ]
    assert runs and any(run in plain for run in runs)
    assert not any(run in sealed for run in runs if len(set(run)) > 4)
    assert encrypted.sealed(salt=b"1" * 16)[BLOCK:] != sealed[BLOCK:]


def changed(image: bytes, at: int, bit: int = 0) -> bytes:
    return image[:at] + bytes([image[at] ^ 1 << bit]) + image[at + 1 :]


def copied(image: bytes, made: Program, source: int, target: int) -> bytes:
    """With one tile of weights in the other's place."""
    (_, _, first, size), (_, _, second, _) = made.pieces()[source], made.pieces()[target]
    blocks = -(-(size + 16) // BLOCK)
    tile = image[first * BLOCK : (first + blocks) * BLOCK]
    return image[: second * BLOCK] + tile + image[(second + blocks) * BLOCK :]


def older(image: bytes, made: Program) -> bytes:
    """With a tile of the same network's image as it was sealed another time."""
    _, _, block, size = made.pieces()[0]
    before, end = made.sealed(salt=b"an older image's"), block * BLOCK + 16 + size
    return image[: block * BLOCK] + before[block * BLOCK : end] + image[end:]


WRONG: dict[str, tuple[Callable[[bytes, Program], bytes], Status]] = {
    "a bit of a tag": (lambda i, p: changed(i, p.pieces()[0][2] * BLOCK + 3), Status.CARD_DAMAGED),
    "a bit inside": (lambda i, p: changed(i, p.pieces()[1][2] * BLOCK + 9), Status.CARD_DAMAGED),
    "another tile": (lambda i, p: copied(i, p, 0, len(p.pieces()) - 1), Status.CARD_DAMAGED),
    "an older tile": (older, Status.CARD_DAMAGED),
    "another key": (lambda _, p: p.sealed(b"k" * 32), Status.OTHER_KEY),
    "another salt": (lambda i, _: changed(i, 40), Status.OTHER_KEY),
    "the end of another": (
        lambda i, p: i[:-BLOCK] + p.sealed(salt=b"another's, later")[-BLOCK:],
        Status.OTHER_KEY,
    ),
    "no tags": (lambda i, p: (p.build / "card.img").read_bytes().ljust(len(i)), Status.OTHER_CARD),
    "only integrity": (lambda i, _: changed(i, 32, 0), Status.OTHER_CARD),
    "too small": (lambda i, _: i[:-BLOCK], Status.OTHER_CARD),
    "another version": (lambda i, _: changed(i, 8, 4), Status.OTHER_CARD),
    "another network": (lambda i, _: changed(i, 16), Status.OTHER_CARD),
    "another plan": (lambda i, _: changed(i, 24), Status.OTHER_CARD),
    "not written to its end": (lambda i, _: i[:-BLOCK] + bytes(BLOCK), Status.OTHER_CARD),
}  # fmt: skip


@pytest.mark.parametrize("name", [*WRONG, "no card"])
def test_a_card_that_is_wrong_gives_no_answer(encrypted: Program, name: str) -> None:
    change, status = WRONG.get(name, (lambda *_: None, Status.NO_CARD))
    found = encrypted.answers(change(encrypted.sealed(), encrypted), given(encrypted.graph, 2))
    assert [(reply.status, reply.payload) for reply in found] == [(status, b"")] * 2


@pytest.fixture(scope="module")
def crcs(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return program(tmp_path_factory.mktemp("crcs"), "none", 9)


@pytest.mark.ci
def test_crcs_take_no_key_and_catch_accidents(crcs: Program) -> None:
    """The image that is generated is what the card holds; who changes a tile and its CRC is not
    caught, and is not said to be."""
    frames, image = given(crcs.graph, 2), crcs.sealed()
    assert not (crcs.build / MANIFEST).exists()
    for reply, frame in zip(crcs.answers(image, frames, None), frames, strict=True):
        assert crcs.right(reply, frame)
    sealed = Sealed.of(crcs.graph, crcs.plan, crcs.hardware)
    assert sealed is not None
    number, piece = next((n, p) for n, p in enumerate(sealed.pieces[: sealed.weights]) if p.block)
    at = piece.block * BLOCK
    content = image[at + 16 : at + 16 + piece.bytes]
    assert image[at : at + 16 + piece.bytes] == checked(number, content)
    for bit in (3, 4 * 8, 15 * 8, 16 * 8, (15 + piece.bytes) * 8 + 7):
        (reply,) = crcs.answers(changed(image, at + bit // 8, bit % 8), frames[:1], None)
        assert reply.status == Status.CARD_DAMAGED
    (reply,) = crcs.answers(changed(image, 40), frames[:1], None)
    assert reply.status == Status.OTHER_CARD
    forged = checked(number, bytes([content[0] ^ 0x80]) + content[1:])
    reply, _ = crcs.answers(image[:at] + forged + image[at + len(forged) :], frames, None)
    assert reply.status == Status.OK


@pytest.mark.parametrize("key", [None, KEY[:31], KEY + b"\0", b""])
def test_a_chip_without_a_key_gives_no_answer(encrypted: Program, key: bytes | None) -> None:
    (reply,) = encrypted.answers(encrypted.sealed(), given(encrypted.graph, 1), key)
    assert reply.status == Status.NO_KEY


def test_each_start_has_a_number_and_none_twice(encrypted: Program) -> None:
    """Written down before its first use; a chip that cannot does not begin."""
    frames, starts = given(encrypted.graph, 1), encrypted.folder / "chip" / "chip.starts"
    for number in (1, 2, 3):
        (reply,) = encrypted.answers(encrypted.sealed(), frames, again=number > 1)
        assert encrypted.right(reply, frames[0])
        assert int.from_bytes(starts.read_bytes(), "little") == number
    for content in (b"\xff" * 4, b"\1"):
        starts.write_bytes(content)
        (reply,) = encrypted.answers(encrypted.sealed(), frames, again=True)
        assert reply.status == Status.NO_KEY


def test_seals_with_a_key_from_a_file_or_leaves_nothing_half_written(
    encrypted: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, bytes | None] = {"key": KEY}
    (tmp_path / "source").mkdir()
    plain, manifest = ((encrypted.build / name).read_bytes() for name in (NAME, MANIFEST))
    names |= {f"source/{NAME}": plain, f"source/{MANIFEST}": manifest}
    for name, content, image, said in (
        ("key", None, "image", "No such file"),
        ("key", KEY[:9], "image", "9 bytes, it has 32"),
        (f"source/{NAME}", plain[: len(plain) // 2], "image", "ends early"),
        (f"source/{NAME}", None, "image", "No such file"),
        (f"source/{MANIFEST}", None, "image", "no image to seal"),
        (f"source/{MANIFEST}", manifest[:-30], "image", "is damaged"),
        (f"source/{MANIFEST}", b"[]", "image", "is damaged"),
        ("key", KEY, "none/image", "No such file"),
        ("key", KEY, "source", "directory"),
        ("key", KEY, "image", ""),
    ):
        for each, whole in (names | {name: content}).items():
            (tmp_path / each).unlink(missing_ok=True)
            if whole is not None:
                (tmp_path / each).write_bytes(whole)
        before = sorted(tmp_path.rglob("*"))
        status = main([str(tmp_path / each) for each in ("source", "key", image)])
        told = capsys.readouterr().err
        assert status == bool(said) and said in told and told.count("\n") == status
        assert sorted(tmp_path.rglob("*")) == before or not said
    frames = given(encrypted.graph, 1)
    sealed = (tmp_path / "image").read_bytes()
    assert encrypted.right(encrypted.answers(sealed, frames)[0], frames[0])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cpu": "cortex-m33"}, "seals on cortex-m4, cortex-m7, not on"),
        ({"cpu": "", "core": "avr"}, "not on stm32f746g_sd's avr: security=none"),
        ({"card": {"security": "integrity"}}, "has no card"),
    ],
)
def test_says_what_is_not_sealed(changes: dict[str, object], said: str) -> None:
    hardware = board("encrypted", 10_000)
    if isinstance(card := changes.get("card"), dict):
        changes = {"card": Card(**card)}
    with pytest.raises(ThimbleError, match=said):
        replace(hardware, **changes)  # type: ignore[arg-type]
