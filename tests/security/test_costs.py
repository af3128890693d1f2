"""Sealing and opening execute as many instructions whatever the key, the message and the tag are (a
wrong tag is not found the sooner where it is wrong), and as many as plans charge for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.sealing import COSTS
from pipeline.targets import qemu
from tests.security.bench import LARGE, SMALL, measured
from tests.security.test_sealing import FIRMWARE
from tests.targets.cortex_m import board_named, built_stand_in, needs_arm
from tests.tiers import quick

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
    globals_ = (
        f"static uint8_t message[{BYTES}], nonce[12], fed[16], zeros[16]; static uint32_t at;"
    )
    hardware = board_named("stm32f746g_sd")
    size = built_stand_in(
        folder,
        hardware,
        globals="#include <string.h>\n" + source + globals_,
        feed="(void)nonce; (void)zeros; (void)message; fed[at++ % 16] = *bytes;",
        invoke=code,
    )
    secrets = np.zeros((6, 16), np.uint8)
    secrets[1, 0] = secrets[2, 15] = secrets[3, 7] = 1
    secrets[4], secrets[5] = 255, np.random.default_rng(0).integers(0, 256, 16)
    runs = qemu.run(folder / "build", vars(size), hardware, secrets)
    return np.column_stack([runs.outputs[:, :2] & 0xFF, runs.instructions])


@needs_arm
@pytest.mark.ci
def test_no_secret_changes_how_many_instructions_there_are(tmp_path: Path) -> None:
    found = firmware(tmp_path, INVOKE + REPEATED % "aead_equal(fed, zeros, 16)")
    assert found[:, 1].tolist() == [1, 0, 0, 0, 0, 0]
    assert len(set(found[:, 2].tolist())) == 1


@needs_arm
@pytest.mark.ci
def test_one_that_stops_early_would_be_seen(tmp_path: Path) -> None:
    found = firmware(tmp_path, REPEATED % "memcmp(fed, zeros, 16) == 0")
    assert found[:, 1].tolist() == [1, 0, 0, 0, 0, 0]
    assert len(set(found[:, 2].tolist())) > 1


BOARDS = {"cortex-m4": "nucleo_l4r5zi", "cortex-m7": "stm32f746g_sd"}


@needs_arm
@pytest.mark.parametrize(("cpu", "security"), quick([], COSTS, ci=1))
def test_costs_are_what_was_measured(tmp_path: Path, cpu: str, security: str) -> None:
    hardware, cost = board_named(BOARDS[cpu]), COSTS[cpu, security]  # type: ignore[index]
    for size in (SMALL, LARGE):
        taken = measured(tmp_path / f"{size}", hardware, f"{security}, read", size)
        assert cost.byte * size + cost.piece == pytest.approx(taken.cycles, rel=0.03)
