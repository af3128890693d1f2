"""Ways in which a frame comes to harm on a line."""

from __future__ import annotations

import numpy as np

from pipeline.targets import protocol

SPECIAL = (protocol.FLAG, protocol.ESCAPE)


def damaged(frame: bytes, rng: np.random.Generator) -> bytes:
    """``frame`` with one to three kinds of damage; its flags may be gone, or in its midst."""
    for _ in range(rng.integers(1, 4)):
        at, to = sorted(int(rng.integers(len(frame) + 1)) for _ in range(2))
        special = bytes(rng.choice(SPECIAL, rng.integers(1, 4)).tolist())
        frame = (
            flipped(frame, rng),
            frame[:at],
            frame[at:],
            frame[:at] + frame[at + int(rng.integers(1, 9)) :],
            frame[:at] + rng.bytes(int(rng.integers(1, 30))) + frame[at:],
            frame[:at] + special + frame[at:],  # where none belong; an escape may come last
            frame[:to] + frame[at:],  # a piece again
            frame[:1] + rng.bytes(1) + frame[2:],  # another command
            frame[to:] + frame[at:to] + frame[:at],  # pieces in another order
            protocol.frame(rng.bytes(int(rng.integers(1, 6)))) + frame,  # a foreign one before it
        )[rng.integers(10)]
    return frame


def flipped(frame: bytes, rng: np.random.Generator) -> bytes:
    """One to three bits."""
    changed = bytearray(frame or b"\0")
    for place in rng.integers(max(len(frame), 1), size=rng.integers(1, 4)):
        changed[place] ^= 1 << rng.integers(8)
    return bytes(changed)
