"""Ways in which a frame comes to harm on a line."""

from __future__ import annotations

import numpy as np

from pipeline.targets import protocol


def damaged(frame: bytes, rng: np.random.Generator) -> bytes:
    """``frame`` with one to three kinds of damage; its flags may be gone, or in its midst."""
    for _ in range(rng.integers(1, 4)):
        frame = DAMAGE[rng.integers(len(DAMAGE))](frame, rng)
    return frame


def _place(frame: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(len(frame) + 1))


def _bits(frame: bytes, rng: np.random.Generator) -> bytes:
    at = rng.integers(max(len(frame), 1), size=rng.integers(1, 4))
    changed = bytearray(frame or b"\0")
    for place in at:
        changed[place] ^= 1 << rng.integers(8)
    return bytes(changed)


def _cut(frame: bytes, rng: np.random.Generator) -> bytes:
    return frame[: _place(frame, rng)]


def _late(frame: bytes, rng: np.random.Generator) -> bytes:
    return frame[_place(frame, rng) :]


def _lost(frame: bytes, rng: np.random.Generator) -> bytes:
    at = _place(frame, rng)
    return frame[:at] + frame[at + int(rng.integers(1, 9)) :]


def _noise(frame: bytes, rng: np.random.Generator) -> bytes:
    at = _place(frame, rng)
    return frame[:at] + rng.bytes(int(rng.integers(1, 30))) + frame[at:]


def _special(frame: bytes, rng: np.random.Generator) -> bytes:
    """Flags and escapes where none belong; an escape may come last."""
    at = _place(frame, rng)
    more = bytes(rng.choice([protocol.FLAG, protocol.ESCAPE], rng.integers(1, 4)).tolist())
    return frame[:at] + more + frame[at:]


def _again(frame: bytes, rng: np.random.Generator) -> bytes:
    at, to = sorted((_place(frame, rng), _place(frame, rng)))
    return frame[:to] + frame[at:]


def _command(frame: bytes, rng: np.random.Generator) -> bytes:
    return frame[:1] + rng.bytes(1) + frame[2:]


def _torn(frame: bytes, rng: np.random.Generator) -> bytes:
    """Pieces in another order."""
    at, to = sorted((_place(frame, rng), _place(frame, rng)))
    return frame[to:] + frame[at:to] + frame[:at]


def _foreign(frame: bytes, rng: np.random.Generator) -> bytes:
    """A frame that nobody understands comes before it, whole."""
    return protocol.frame(rng.bytes(int(rng.integers(1, 6)))) + frame


DAMAGE = (_bits, _cut, _late, _lost, _noise, _special, _again, _command, _torn, _foreign)
