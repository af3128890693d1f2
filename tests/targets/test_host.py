"""The native program through its pipe, built with ASan and UBSan. Damaged frames are in
``tests/codegen/int4/test_robust.py``."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.targets import host, protocol
from pipeline.targets.protocol import Command, Status
from tests.targets.conftest import MODEL


def weights() -> np.ndarray:
    text = (MODEL / "model.c").read_text()
    braces = re.search(r"nn_weights\[[^]]*\] = \{([^}]*)\}", text)
    assert braces
    return np.array([int(v) for v in braces[1].split(",")]).reshape(3, 16)


def expected(images: np.ndarray) -> np.ndarray:
    return (images.reshape(-1, 16).astype(np.int64) @ weights().T).astype(np.int16)


def test_it_says_what_it_is(host_program: Path) -> None:
    assert host.identify(host_program) == protocol.Identity(16, 3, 2, 0)


def test_a_whole_set_on_all_cores_is_exact_and_in_order(host_program: Path) -> None:
    """Images full of flags and escapes among them."""
    images = np.random.default_rng(5).integers(0, 256, (601, 4, 4, 1)).astype(np.uint8)
    images[:64] = np.random.default_rng(6).choice([0x7D, 0x7E, 0x5D, 0x5E], (64, 4, 4, 1))
    got = host.infer(host_program, images)
    assert got.dtype == np.int16
    np.testing.assert_array_equal(got, expected(images))
    assert host.infer(host_program, images[:0]).shape == (0, 3)


def test_other_refusals(host_program: Path) -> None:
    stream = (
        protocol.encode(ord("?"))
        + protocol.encode(Command.IDENTIFY, b"x")
        + b"\x7eI\x7d\x7e"  # an aborted frame
        + b"\x7e\x7e\x7e"
        + protocol.encode(Command.REPORT)
    )
    statuses = [r.status for r in protocol.replies(host.talk(host_program, stream))]
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
