"""The CRC of ``security=none``: as its polynomial says, in Python and in C."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.crc32 import crc32
from tests.codegen.support import SANITIZERS, WARNINGS
from tests.security.program import FIRMWARE

POLYNOMIAL = 1 << 32 | 1 << 9 | 1 << 3 | 1 << 2 | 1
PRIMES = (3, 5, 17, 257, 65537)
"""Of 2^32 - 1."""
PROGRAM = r"""
#include <stdio.h>
#include "crc32.h"

int main(void) {
    static uint8_t content[8192];
    uint32_t said[3]; /* a sum, bytes, and where in a word they begin */
    while (fread(said, sizeof said, 1, stdin) == 1 &&
           fread(content + said[2], 1, said[1], stdin) == said[1]) {
        const uint32_t sum = crc32_bytes(said[0], content + said[2], said[1]);
        fwrite(&sum, sizeof sum, 1, stdout);
    }
    return 0;
}
"""


def modulo(value: int) -> int:
    """Of the polynomial, bit by bit."""
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


def test_the_polynomial_is_primitive() -> None:
    """x is of order 2^32 - 1, so that no two bits of a tile cancel."""

    def product(a: int, b: int) -> int:
        found = 0
        for bit in range(32):
            found ^= a << bit if b >> bit & 1 else 0
        return modulo(found)

    def power(exponent: int) -> int:
        found, base = 1, 2
        while exponent:
            found = product(found, base) if exponent & 1 else found
            base, exponent = product(base, base), exponent >> 1
        return found

    assert power(2**32 - 1) == 1
    assert all(power((2**32 - 1) // prime) != 1 for prime in PRIMES)


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


CHANGES: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    "one bit": lambda c, rng: flipped(c, rng, 1),
    "two bits": lambda c, rng: flipped(c, rng, 2),
    "a word": lambda c, rng: c[:400] + bytes(b ^ 0xFF for b in c[400:404]) + c[404:],
    "words exchanged": lambda c, rng: c[4:8] + c[:4] + c[8:],
    "zeros in front": lambda c, rng: bytes(4) + c,
}


def flipped(content: bytes, rng: np.random.Generator, count: int) -> bytes:
    found = bytearray(content)
    for bit in rng.choice(len(content) * 8, count, replace=False):
        found[bit // 8] ^= 1 << bit % 8
    return bytes(found)


@pytest.mark.parametrize("name", CHANGES)
def test_finds_what_was_changed(name: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        content = rng.bytes(1024)
        assert crc32(CHANGES[name](content, rng), 9) != crc32(content, 9)
