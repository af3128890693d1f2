"""The driver of SD cards on a simulated ATmega328P, whose SPI takes the time that SPCR sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.generate import STORAGE as FILES
from pipeline.hardware import Hardware
from pipeline.targets import card, toolchain
from pipeline.targets.harness import harness_sources
from pipeline.targets.protocol import Command
from pipeline.targets.simavr import Chip, Exchange
from tests.storage.line import BLOCK, STORAGE
from tests.targets.conftest import MODEL, load_hardware, model, needs_avr, on_avr
from tests.targets.conftest import shim as shim  # a fixture

pytestmark = needs_avr

CONTENT = np.random.default_rng(1).bytes(64 * BLOCK)
PASS = "SPCR = _BV(SPE) | _BV(MSTR){}; SPSR = {}; SPDR = 0x55; while (!(SPSR & _BV(SPIF))) {{ }}"

TIMED = """
#include "storage.h"
static uint8_t nn_memory[1024];
#ifdef __AVR__
/* In 64 cycles; 0 where it failed. */
static uint16_t timed(storage_direction_t direction, uint16_t bytes) {
    TCNT1 = 0;
    storage_status_t status = storage_start(direction, 1024, nn_memory, bytes);
    while (status == STORAGE_BUSY) {
        status = storage_poll();
    }
    return status == STORAGE_OK ? TCNT1 : 0;
}
#endif
"""
INVOKE = (
    on_avr(
        "uint16_t *out = (uint16_t *)(void *)nn_arena;"
        "if (storage_open() != STORAGE_OK) return NN_CORRUPT;"
        "out[0] = timed(STORAGE_READ, 512); out[1] = timed(STORAGE_READ, 1024);"
        "out[2] = timed(STORAGE_WRITE, 512);"
    )
    + "nn_memory[0] = 0;"
)


@pytest.fixture(scope="module")
def uno() -> Hardware:
    return load_hardware("arduino_sd", baud=115200)


def run(folder: Path, shim: Path, hardware: Hardware, source: str) -> tuple[bytes, Exchange]:
    """What nn_invoke of ``source`` leaves in the first bytes of the arena."""
    generated = folder / "generated"
    files = {**harness_sources(hardware, swaps=True), "model.c": source}
    files |= {name: (STORAGE / name).read_text() for name in FILES}
    files |= {"model.h": (MODEL / "model.h").read_text()}
    generated.mkdir(parents=True)
    for name, text in files.items():
        (generated / name).write_text(text)
    size = toolchain.build(generated, folder, hardware)
    (folder / card.NAME).write_bytes(CONTENT)
    inserted = card.beside(folder)
    with Chip(shim, folder / "firmware.elf", hardware, size.sections, inserted=inserted) as chip:
        reply, done = chip.ask(Command.INFER, bytes(16))
    return reply.payload, done


@pytest.mark.ci
def test_a_byte_takes_what_spcr_says(tmp_path: Path, uno: Hardware, shim: Path) -> None:
    """Eight clocks: of a half, and of a 128th of the core's; the loop looks every 4 or 5 cycles."""
    taken = []
    for name, (rate, double) in {"slow": (" | 3", 0), "fast": ("", 1)}.items():
        source = model(invoke=on_avr(PASS.format(rate, double)))
        taken.append(run(tmp_path / name, shim, uno, source)[1].invoke_cycles)
    slow, fast = taken
    assert abs(slow - fast - 8 * (128 - 2)) <= 5


def test_blocks_take_what_the_board_says(tmp_path: Path, uno: Hardware, shim: Path) -> None:
    """Within 3 % of a block; a command has some bytes of its own besides the card's time."""
    payload, _ = run(tmp_path, shim, uno, model(globals=TIMED, invoke=INVOKE))
    read, two, written = (64 * n for n in np.frombuffer(payload, "<u2").tolist())
    assert min(read, two, written) > 0
    block = two - read
    says = 512 / uno.card.read_bytes_per_s * uno.clock_hz + card.cycles(uno)[1]
    assert abs(block - says) < 0.03 * says
    reading, writing = read - block, written - block
    assert card.cycles(uno)[0] < reading < 1.3 * card.cycles(uno)[0]
    assert card.cycles(uno)[2] < writing < 1.3 * card.cycles(uno)[2]
