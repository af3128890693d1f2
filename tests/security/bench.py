"""``python -m tests.security.bench``: what a tag, and encryption, cost on simulated cores.

A line through two sizes: cycles of each byte, and of each tile besides. Cycles are modelled with
the board's flash; instructions are those that a simulated run is timed by.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.targets import qemu
from tests.targets.cortex_m import board_named, built_stand_in

FIRMWARE = ROOT / "firmware" / "security"
BOARDS = ("nucleo_l4r5zi", "stm32f746g_sd")
SMALL, LARGE = 1024, 9216
CALLS = {
    "none, read": "crc32_bytes(0, message, {size}) == sum",
    "none, written": "(sum = crc32_bytes(0, message, {size}), 1)",
    "encrypted, read": "aead_open(&with, message, message, {size}, tag)",
    "encrypted, written": "(aead_seal(&with, message, message, {size}, tag), 1)",
    "integrity, read": "aead_open(&with, message, message, 0, tag)",
    "integrity, written": "(aead_seal(&with, message, message, 0, tag), 1)",
}
GLOBALS = (
    "static uint8_t message[{size}], tag[16], key[32], nonce[12]; static volatile uint32_t sum;"
)
INCLUDES = ('#include "chacha20_poly1305.h"', '#include "crc32.h"')


@dataclass(frozen=True)
class Taken:
    cycles: float
    instructions: float


def measured(folder: Path, hardware: Hardware, name: str, size: int) -> Taken:
    """Measure one call for ``size`` bytes."""
    about = 0 if name.startswith("encrypted") else size
    message = size - about if not name.startswith("none") else size
    files = ("chacha20_poly1305.h", "chacha20_poly1305.c", "crc32.h")
    source = "".join((FIRMWARE / file).read_text() for file in files)
    for include in INCLUDES:
        source = source.replace(include, "")
    with_ = f"const aead_t with = {{key, nonce, message, {about}}}; (void)with;"
    source += GLOBALS.format(size=size)
    feed = f"{with_} aead_seal(&with, message, message, {message}, tag);"
    feed += f"sum = crc32_bytes(0, message, {size});"
    invoke = f"{with_} nn_arena[0] = (uint8_t)({CALLS[name].format(size=message)});"
    size_of = built_stand_in(folder, hardware, globals=source, feed=feed, invoke=invoke)
    runs = qemu.run(folder / "build", vars(size_of), hardware, np.zeros((2, 16), np.uint8))
    if "read" in name:
        assert (runs.outputs[:, 0] & 0xFF).tolist() == [1, 1], "a tag that was just made is wrong"
    assert runs.modelled_cycles is not None
    return Taken(runs.modelled_cycles["median"], runs.modelled_cycles["instructions"])


def main() -> None:
    print(f"{'core':12} {'':20} cycles/B cycles/tile  instructions/B /tile")
    for board in BOARDS:
        hardware = board_named(board)
        for name in CALLS:
            with tempfile.TemporaryDirectory(prefix="thimble.") as made:
                small, large = (
                    measured(Path(made) / f"{size}", hardware, name, size)
                    for size in (SMALL, LARGE)
                )
            figures = []
            for kind in ("cycles", "instructions"):
                first, last = getattr(small, kind), getattr(large, kind)
                byte = (last - first) / (LARGE - SMALL)
                figures.append(f"{byte:8.2f} {first - byte * SMALL:11,.0f}")
            print(f"{hardware.cpu:12} {name:20} {'  '.join(figures)}", flush=True)


if __name__ == "__main__":
    main()
