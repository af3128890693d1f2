"""The native program through its pipe: exact outputs, noise, damage; built with ASan and UBSan."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import ThimbleError
from pipeline.targets import host, protocol
from pipeline.targets.protocol import Command, Status
from tests.targets.conftest import MODEL

SEVERAL = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
images16 = st.binary(min_size=16, max_size=16)


def weights() -> np.ndarray:
    text = (MODEL / "model.c").read_text()
    braces = re.search(r"nn_weights\[[^]]*\] = \{([^}]*)\}", text)
    assert braces
    return np.array([int(v) for v in braces[1].split(",")]).reshape(3, 16)


def expected(images: np.ndarray) -> np.ndarray:
    return (images.reshape(-1, 16).astype(np.int64) @ weights().T).astype(np.int16)


def ask(program: Path, stream: bytes) -> list[protocol.Reply]:
    return protocol.replies(host.talk(program, stream))


def infer(image: bytes) -> bytes:
    return protocol.encode(Command.INFER, image)


def outputs(reply: protocol.Reply) -> list[int]:
    who = protocol.Identity(16, 3, 2, 0)
    return list(protocol.outputs(protocol.accept(reply, Command.INFER), who))


def test_it_says_what_it_is(host_program: Path) -> None:
    assert host.identify(host_program) == protocol.Identity(16, 3, 2, 0)


def test_a_whole_set_on_all_cores_is_exact_and_in_order(host_program: Path) -> None:
    images = np.random.default_rng(5).integers(0, 256, (601, 4, 4, 1)).astype(np.uint8)
    got = host.infer(host_program, images)
    assert got.dtype == np.int16
    np.testing.assert_array_equal(got, expected(images))
    assert host.infer(host_program, images[:0]).shape == (0, 3)


def test_images_full_of_flags_and_escapes_arrive(host_program: Path) -> None:
    images = np.random.default_rng(6).choice([0x7D, 0x7E, 0x5D, 0x5E], (64, 16)).astype(np.uint8)
    np.testing.assert_array_equal(host.infer(host_program, images), expected(images))


@SEVERAL
@given(st.lists(st.tuples(st.binary(max_size=40), images16), min_size=1, max_size=8))
def test_noise_between_frames_does_no_harm(host_program: Path, sent: list[tuple[bytes, bytes]]):
    stream = b"".join(noise + infer(image) for noise, image in sent)
    accepted = [r for r in ask(host_program, stream) if r.status is Status.OK]
    images = np.frombuffer(b"".join(image for _, image in sent), np.uint8)
    assert [outputs(r) for r in accepted] == expected(images).tolist()


@SEVERAL
@given(images16, st.data())
def test_a_frame_cut_short_is_refused_and_the_next_one_works(
    host_program: Path, image: bytes, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(2, len(infer(image)) - 2))
    replies = ask(host_program, infer(image)[:cut] + infer(image))
    assert [r.status for r in replies] in (
        [Status.TRUNCATED, Status.OK],
        [Status.BAD_CRC, Status.OK],  # cut inside an escape of the last byte: an aborted frame
    )
    assert outputs(replies[1]) == expected(np.frombuffer(image, np.uint8)).tolist()[0]


@SEVERAL
@given(images16, st.binary(min_size=1, max_size=2000))
def test_an_oversized_frame_is_refused_and_the_next_one_works(
    host_program: Path, image: bytes, more: bytes
) -> None:
    replies = ask(host_program, infer(image + more) + infer(image))
    assert [r.status for r in replies] == [Status.OVERSIZED, Status.OK]
    assert outputs(replies[1]) == expected(np.frombuffer(image, np.uint8)).tolist()[0]


@SEVERAL
@given(images16, st.integers(0, 17 * 8 - 1))
def test_a_flipped_bit_is_refused(host_program: Path, image: bytes, bit: int) -> None:
    good = protocol.crc16(bytes([Command.INFER]) + image) ^ 0xFFFF
    inside = bytearray(image + good.to_bytes(2, "little"))
    inside[bit // 8] ^= 1 << bit % 8
    escaped = bytes(inside).replace(b"\x7d", b"\x7d\x5d").replace(b"\x7e", b"\x7d\x5e")
    replies = ask(host_program, b"\x7eF" + escaped + b"\x7e" + infer(image))
    assert [r.status for r in replies] == [Status.BAD_CRC, Status.OK]


def test_other_refusals(host_program: Path) -> None:
    stream = (
        protocol.encode(ord("?"))
        + protocol.encode(Command.IDENTIFY, b"x")
        + b"\x7eI\x7d\x7e"  # an aborted frame
        + b"\x7e\x7e\x7e"
        + protocol.encode(Command.REPORT)
    )
    statuses = [r.status for r in ask(host_program, stream)]
    assert statuses == [Status.UNKNOWN, Status.OVERSIZED, Status.TRUNCATED, Status.OK]


def test_images_of_another_size_are_one_line(host_program: Path) -> None:
    with pytest.raises(ThimbleError, match="takes 16 B an image, the test set has 784 values"):
        host.infer(host_program, np.zeros((2, 28, 28, 1), np.uint8))
    with pytest.raises(ThimbleError, match="float64"):
        host.infer(host_program, np.zeros((2, 16)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'SUMMARY: error: overflow' >&2; exit 3", "ended with 3: SUMMARY: error: overflow"),
        ("exit 0", "gave 0 answers"),
        ("printf '~abcd~'", "damaged"),
    ],
)
def test_a_program_that_misbehaves_is_one_line(tmp_path: Path, script: str, said: str) -> None:
    program = tmp_path / "host"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(ThimbleError, match=said):
        host.infer(program, np.zeros((2, 16), np.uint8))
    program.unlink()
    with pytest.raises(ThimbleError, match="does not start"):
        host.identify(program)
