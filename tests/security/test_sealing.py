"""RFC 8439's vectors, and the C beside ``cryptography``, natively and on simulated cores; the CRC
of ``security=none``: as its polynomial says, in Python and in C. Sealing and opening execute as
many instructions whatever the key, the message and the tag are (a wrong tag is not found the sooner
where it is wrong), and as many as plans charge for them."""

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from struct import Struct

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.poly1305 import Poly1305
from hypothesis import given
from hypothesis import strategies as st

from pipeline.codegen import generate
from pipeline.crc32 import crc32
from pipeline.errors import ThimbleError
from pipeline.plan.rates import Rates
from pipeline.sealing import COSTS, Security
from pipeline.strategies.swap import Swap
from pipeline.targets import qemu
from tests.codegen.support import SANITIZERS, WARNINGS
from tests.security.bench import FIRMWARE, LARGE, SMALL, measured
from tests.storage.test_sd_simulated import program, simulation
from tests.strategies.swap.nets import random_chain
from tests.targets.cortex_m import board_named, built_stand_in, needs_arm
from tests.tiers import quick

FIXTURE = Path(__file__).parent / "fixture"
HEAD = Struct("<I32s12s16sII")
KEY_BYTES, TAG_BYTES, LEFT_BYTES = 32, 16, 1024


class What(IntEnum):
    SEAL = 0
    OPEN = 1
    DERIVE = 2
    POLY1305 = 3


@dataclass(frozen=True)
class Asked:
    what: What
    key: bytes
    nonce: bytes = bytes(12)
    tag: bytes = bytes(TAG_BYTES)
    about: bytes = b""
    content: bytes = b""

    @property
    def packed(self) -> bytes:
        sizes = len(self.about), len(self.content)
        return (
            HEAD.pack(self.what, self.key, self.nonce, self.tag, *sizes) + self.about + self.content
        )


@dataclass(frozen=True)
class Told:
    """``left``: what was on the stack below the call when it was over."""

    right: bool
    tag: bytes
    left: bytes
    content: bytes


def native(folder: Path, options: Sequence[str] = SANITIZERS) -> list[str]:
    """The command that runs it."""
    source = str(FIXTURE / "main.c")
    command = ["cc", *WARNINGS, *options, f"-I{FIRMWARE}", source, "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    return [str(folder / "program")]


def simulated(folder: Path, cpu: str) -> list[str]:
    """The command on a core ``cpu`` of QEMU's."""
    elf = program(folder, cpu, [FIXTURE / "main.c"], f"-I{FIRMWARE}")
    return simulation(elf, cpu)


def told(folder: Path, command: Sequence[str], asked: Sequence[Asked]) -> list[Told]:
    (folder / "asked").write_bytes(b"".join(each.packed for each in asked))
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=500)
    answers, found = (folder / "told").read_bytes(), []
    for each in asked:
        ends = np.cumsum([4, TAG_BYTES, LEFT_BYTES, len(each.content)])
        right, tag, left, content, answers = (
            answers[low:high] for low, high in pairwise([0, *ends, None])
        )
        assert len(content) == len(each.content)
        found.append(Told(right[0] == 1, tag, left, content))
    assert not answers
    return found


Built = tuple[Path, list[str]]
RFC_KEY = bytes(range(0x80, 0xA0))
RFC_NONCE = bytes.fromhex("070000004041424344454647")
RFC_ABOUT = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
RFC_TEXT = (
    b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    b"sunscreen would be it."
)
RFC_SEALED = bytes.fromhex(
    "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b"
    "1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
    "3ff4def08e4b7a9de576d26586cec64b6116"
)
RFC_TAG = bytes.fromhex("1ae10b594f09e26a7e902ecbd0600691")

FULL, NONE = b"\xff" * 16, bytes(16)
POLY1305 = (  # r, s, message, tag: RFC 8439, A.3, 7 to 11, where a word or the modulus is full
    (b"\x02", NONE, FULL, b"\x03"),
    (b"\x02", FULL, b"\x02".ljust(16, b"\0"), b"\x03"),
    (b"\x01", NONE, FULL + b"\xf0" + FULL[1:] + b"\x11".ljust(16, b"\0"), b"\x05"),
    (b"\x01", NONE, FULL + b"\xfb" + b"\xfe" * 15 + b"\x01" * 16, b"\x00"),
    (b"\x02", NONE, b"\xfd" + FULL[1:], b"\xfa" + FULL[1:]),
)


@pytest.fixture(
    scope="module",
    params=["native", *(pytest.param(c, marks=needs_arm) for c in ("cortex-m4", "cortex-m7"))],
)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp(request.param)
    kind = request.param
    return folder, native(folder) if kind == "native" else simulated(folder, kind)


def test_the_vector_of_the_standard(built: Built) -> None:
    """RFC 8439, 2.8.2: sealed, opened, and with each bit of the tag wrong not opened."""
    seal = Asked(What.SEAL, RFC_KEY, RFC_NONCE, about=RFC_ABOUT, content=RFC_TEXT)
    opens = replace(seal, what=What.OPEN, tag=RFC_TAG, content=RFC_SEALED)
    flipped = [(int.from_bytes(RFC_TAG, "big") ^ 1 << n).to_bytes(16, "big") for n in range(128)]
    sealed, opened, *refused = told(
        *built, [seal, opens, *(replace(opens, tag=t) for t in flipped)]
    )
    assert (sealed.content, sealed.tag) == (RFC_SEALED, RFC_TAG)
    assert opened.right and opened.content == RFC_TEXT
    assert not any(each.right or each.content != RFC_SEALED for each in refused)


def test_sums_at_the_edge_of_the_modulus(built: Built) -> None:
    """Those of the standard, and others with the largest r beside ``cryptography``."""
    cases = [(r.ljust(16, b"\0") + s, text, tag.ljust(16, b"\0")) for r, s, text, tag in POLY1305]
    rng = np.random.default_rng(0)
    for count in range(40):
        key = (FULL if count % 2 else rng.bytes(16)) + rng.bytes(16)
        text = b"".join(FULL if rng.integers(2) else rng.bytes(16) for _ in range(count % 7 + 1))
        cases.append((key, text, Poly1305.generate_tag(key, text)))
    found = told(*built, [Asked(What.POLY1305, key, content=text) for key, text, _ in cases])
    assert [each.tag for each in found] == [tag for *_, tag in cases]


def test_any_message_is_that_of_cryptography(built: Built) -> None:
    """Try every length up to some blocks, and some thousands of bytes, at any byte of a word."""
    rng = np.random.default_rng(1)
    lengths = [*range(200), *rng.integers(200, 8192, 40).tolist()]
    asked, wanted = [], []
    for length in lengths:
        key, nonce, content = rng.bytes(32), rng.bytes(12), rng.bytes(length)
        about = rng.bytes(int(rng.integers(0, 70)))
        whole = ChaCha20Poly1305(key).encrypt(nonce, content, about)
        asked.append(Asked(What.SEAL, key, nonce, about=about, content=content))
        wanted.append((whole[:length], whole[length:], content))
    for each, seal, (sealed, tag, content) in zip(
        told(*built, asked), asked[:], wanted, strict=True
    ):
        assert (each.content, each.tag) == (sealed, tag), len(content)
        opens = replace(seal, what=What.OPEN, content=sealed, tag=tag)
        asked.append(opens)
        part = "about" if rng.integers(2) and opens.about else "nonce"
        asked.append(replace(opens, **{part: _flipped(getattr(opens, part), rng)}))
    opened = told(*built, asked[len(lengths) :])
    for right, wrong, (sealed, _, content) in zip(opened[::2], opened[1::2], wanted, strict=True):
        assert right.right and right.content == content
        assert not wrong.right and wrong.content == sealed


def _flipped(content: bytes, rng: np.random.Generator) -> bytes:
    """With one bit changed."""
    found = bytearray(content)
    found[rng.integers(len(found))] ^= 1 << int(rng.integers(8))
    return bytes(found)


def test_a_derived_key_is_the_begin_of_a_block(built: Built) -> None:
    rng = np.random.default_rng(2)
    pairs = [(rng.bytes(32), rng.bytes(16)) for _ in range(5)]
    asked = [Asked(What.DERIVE, key, tag=salt, content=bytes(32)) for key, salt in pairs]
    wanted = [
        Cipher(algorithms.ChaCha20(*pair), None).encryptor().update(bytes(32)) for pair in pairs
    ]
    assert [each.content for each in told(*built, asked)] == wanted


@pytest.mark.parametrize("what", [What.SEAL, What.OPEN, What.DERIVE])
def test_no_secret_is_left_on_the_stack(built: Built, what: What, tmp_path: Path) -> None:
    """Not a word of the key, of the key stream or of the rounds' result, which gives it away."""
    if str(built[1][0]).endswith("program"):  # the sanitizers' frames are several times as large
        built = tmp_path, native(tmp_path, ["-O2"])
    rng = np.random.default_rng(3)
    key, nonce, tag, content = (rng.bytes(size) for size in (32, 12, 16, 100))
    if what == What.OPEN:
        whole = ChaCha20Poly1305(key).encrypt(nonce, content, None)
        content, tag = whole[:-16], whole[-16:]
    (found,) = told(*built, [Asked(what, key, nonce, tag, content=content)])
    salts = [n.to_bytes(4, "little") + nonce for n in range(3)] if what != What.DERIVE else [tag]
    secrets = words(key)
    for salt in salts:
        block = words(Cipher(algorithms.ChaCha20(key, salt), None).encryptor().update(bytes(64)))
        rounds = block - words(b"expand 32-byte k" + key + salt)
        secrets = np.concatenate([secrets, block, rounds, block[:4] & words(CLAMP)])
    left = {word for n in range(4) for word in words(found.left[n : n - 4]).tolist()}
    assert len(left) > 10 and not left & set(secrets.tolist())


CLAMP = bytes.fromhex("ffffff0ffcffff0ffcffff0ffcffff0f")


def words(content: bytes) -> np.ndarray:
    return np.frombuffer(content[: len(content) // 4 * 4], "<u4")


POLYNOMIAL = 1 << 32 | 1 << 9 | 1 << 3 | 1 << 2 | 1
PROGRAM = Path(__file__).with_name("sums.c").read_text()


def modulo(value: int) -> int:
    """Reduce modulo the polynomial, bit by bit."""
    for bit in range(value.bit_length() - 1, 31, -1):
        if value >> bit & 1:
            value ^= POLYNOMIAL << (bit - 32)
    return value


def by_definition(content: bytes, before: int = 0) -> int:
    padded = content.ljust(-(-len(content) // 4) * 4, b"\0")
    for (word,) in struct.iter_unpack("<I", padded):
        before = modulo(before << 32 ^ word)
    return before


@given(st.binary(max_size=600), st.integers(0, 2**32 - 1))
def test_is_the_remainder_by_its_polynomial(content: bytes, before: int) -> None:
    assert crc32(content, before) == by_definition(content, before)


@pytest.mark.parametrize("size", [255, 256, 257, 1020, 4080, 9001])
def test_runs_that_are_summed_side_by_side(size: int) -> None:
    content = np.random.default_rng(size).bytes(size)
    assert crc32(content, 77) == by_definition(content, 77)
    assert crc32(content[1020:], crc32(content[:1020], 77)) == crc32(content, 77)


def test_c_finds_the_same(tmp_path: Path) -> None:
    """From any byte of a word on, to the end of no word."""
    (tmp_path / "main.c").write_text(PROGRAM)
    command = ["cc", *WARNINGS, *SANITIZERS, f"-I{FIRMWARE}", "main.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    rng = np.random.default_rng(0)
    sizes = [*range(70), *rng.integers(70, 8000, 20).tolist()]
    asked = [(int(rng.integers(2**32)), rng.bytes(n), n % 4) for n in sizes]
    stream = b"".join(struct.pack("<III", s, len(c), at) + c for s, c, at in asked)
    answer = subprocess.run(["./program"], cwd=tmp_path, input=stream, capture_output=True)
    found = [sum_ for (sum_,) in struct.iter_unpack("<I", answer.stdout)]
    assert found == [crc32(content, before) for before, content, _ in asked]


BYTES = 1000
INVOKE = """
    uint8_t tag[16], key[32] = {0};
    memcpy(key, fed, 16);
    memset(message, fed[0], sizeof message);
    const aead_t with = {key, nonce, 0, 0};
    aead_seal(&with, message, message, sizeof message, tag);
    for (unsigned n = 0; n < 16; n++) {
        tag[n] ^= fed[n];
    }
    nn_arena[0] = (uint8_t)aead_equal(tag, fed, 16);
"""
REPEATED = """
    for (unsigned n = 0; n < 200; n++) { // the timer counts tens of instructions
        __asm__ volatile("" ::: "memory");
        nn_arena[2] = (uint8_t)(%s);
    }
"""


def firmware(folder: Path, code: str) -> np.ndarray:
    """Outputs and instructions of one call for each of some secrets of 16 bytes."""
    texts = [(FIRMWARE / f"chacha20_poly1305.{kind}").read_text() for kind in "hc"]
    source = "".join(texts).replace('#include "chacha20_poly1305.h"', "")
    names = f"message[{BYTES}], nonce[12], fed[16], zeros[16]"
    source = f"#include <string.h>\n{source}static uint8_t {names}; static uint32_t at;"
    feed = "(void)nonce; (void)zeros; (void)message; fed[at++ % 16] = *bytes;"
    hardware = board_named("stm32f746g_sd")
    size = built_stand_in(folder, hardware, globals=source, feed=feed, invoke=code)
    secrets = np.zeros((6, 16), np.uint8)
    secrets[1, 0] = secrets[2, 15] = secrets[3, 7] = 1
    secrets[4], secrets[5] = 255, np.random.default_rng(0).integers(0, 256, 16)
    runs = qemu.run(folder / "build", vars(size), hardware, secrets)
    return np.column_stack([runs.outputs[:, :2] & 0xFF, runs.instructions])


@needs_arm
@pytest.mark.ci
def test_no_secret_changes_how_many_instructions_there_are(tmp_path: Path) -> None:
    """One that stops early would be seen."""
    equal = INVOKE + REPEATED % "aead_equal(fed, zeros, 16)"
    for number, code in enumerate((equal, REPEATED % "memcmp(fed, zeros, 16) == 0")):
        found = firmware(tmp_path / f"{number}", code)
        assert found[:, 1].tolist() == [1, 0, 0, 0, 0, 0]
        assert (len(set(found[:, 2].tolist())) > 1) == number


BOARDS = {"cortex-m4": "nucleo_l4r5zi", "cortex-m7": "stm32f746g_sd"}


@needs_arm
@pytest.mark.parametrize(("cpu", "security"), quick([], COSTS, ci=1))
def test_costs_are_what_was_measured(tmp_path: Path, cpu: str, security: str) -> None:
    hardware, cost = board_named(BOARDS[cpu]), COSTS[cpu, security]  # type: ignore[index]
    for size in (SMALL, LARGE):
        taken = measured(tmp_path / f"{size}", hardware, f"{security}, read", size)
        assert cost.byte * size + cost.piece == pytest.approx(taken.cycles, rel=0.03)


@pytest.mark.parametrize("security", ["integrity", "encrypted"])
def test_engines_beside_the_core_take_less_and_run_nothing(security: Security) -> None:
    board = board_named("stm32f746g_sd")
    card = replace(board.card, security=security)
    core, engine = (
        replace(board, card=replace(card, engine=each)) for each in ("core", "stm32f756")
    )
    sizes = ((4096, 8), (512, 1))
    times = [
        [Rates.of(each).move_us(size, writes=True, commands=n) for size, n in sizes]
        for each in (core, engine)
    ]
    assert all(ours < theirs for theirs, ours in zip(*times, strict=True))
    graph = random_chain(0)
    with pytest.raises(ThimbleError, match=r"hardware\.card\.engine=stm32f756: plans .* no driver"):
        generate(graph, Swap().plan(graph, engine), engine, {})
