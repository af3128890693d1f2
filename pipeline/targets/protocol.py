"""The host's end of ``firmware/protocol/frame.h``: RFC 1662 frames with its 16-bit check."""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError

VERSION = 2
KEEPS_STATE = 0x80
"""Beside the bytes of an output."""
FLAG = 0x7E
ESCAPE = 0x7D
ESCAPE_XOR = 0x20
READY = 0x11


class Command(IntEnum):
    IDENTIFY = ord("I")
    INFER = ord("F")
    LOAD = ord("L")
    REPORT = ord("R")
    STEP = ord("S")


class Status(IntEnum):
    OK = 0
    TRUNCATED = 1
    OVERSIZED = 2
    BAD_CRC = 3
    UNKNOWN = 4
    INCOMPLETE = 5
    CORRUPT = 6
    NO_PARAMETERS = 7
    NO_CARD = 8
    OTHER_CARD = 9
    CARD_FAILED = 10
    NO_KEY = 11
    OTHER_KEY = 12
    CARD_DAMAGED = 13
    INPUT_LOST = 14


EXPLAINED = {
    Status.CORRUPT: " (its memory was overwritten)",
    Status.NO_PARAMETERS: " (load this network's parameters first)",
    Status.NO_CARD: " (there is no card)",
    Status.OTHER_CARD: " (the card is too small, or holds another network, plan or version, or not "
    "all of the image: write card.img to it)",
    Status.CARD_FAILED: " (the card failed, or cannot be written)",
    Status.NO_KEY: " (the chip has no key of 32 bytes, or cannot count its starts)",
    Status.OTHER_KEY: " (the card's image was sealed for another chip, or its first or last "
    "block is damaged: seal it with this chip's key and write it again)",
    Status.CARD_DAMAGED: " (weights on the card are not what was written: write the image again)",
    Status.INPUT_LOST: " (the card does not give back the input that was fed: feed it again)",
}


class FrameError(ThimbleError):
    """Error for bytes from the line that are not a whole reply."""


@dataclass(frozen=True)
class Reply:
    command: int
    status: Status
    payload: bytes


@dataclass(frozen=True)
class Identity:
    """Identity of a firmware: bytes an input, outputs, bytes an output, how many bytes of
    parameters it has to be sent before the first input, and whether each input follows the one
    before."""

    input_bytes: int
    outputs: int
    output_bytes: int
    parameter_bytes: int
    in_turn: bool = False

    @property
    def dtype(self) -> np.dtype[np.signedinteger]:
        return np.dtype(f"<i{self.output_bytes}")


@dataclass(frozen=True)
class Report:
    """Measurements that the chip took of itself.

    Attributes:
        invoke_cycles: of the last ``nn_invoke``, to 64 cycles, by a timer.
        stack_bytes: stack ever used, by painted memory: a byte that happened to be written with
            the paint's own value at the far end is missed.
        untouched_bytes: between the statics and the deepest stack.
    """

    invoke_cycles: int
    stack_bytes: int
    untouched_bytes: int


_REVERSED_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc16(data: bytes) -> int:
    """RFC 1662 appendix C.2: x^16 + x^12 + x^5 + 1 reflected, not yet complemented; by the standard
    library's CRC-CCITT, which takes the bits the other way round."""
    crc = binascii.crc_hqx(data.translate(_REVERSED_BITS), 0xFFFF)
    return _REVERSED_BITS[crc & 0xFF] << 8 | _REVERSED_BITS[crc >> 8]


def frame(inside: bytes) -> bytes:
    """``inside`` with its check, escaped, between flags."""
    checked = inside + struct.pack("<H", crc16(inside) ^ 0xFFFF)
    return bytes([FLAG]) + _escaped(checked) + bytes([FLAG])


def _escaped(plain: bytes) -> bytes:
    return plain.replace(b"\x7d", b"\x7d\x5d").replace(b"\x7e", b"\x7d\x5e")


def encode(command: int, payload: bytes = b"") -> bytes:
    """Return a request as it goes over the line."""
    return frame(bytes([command]) + payload)


def pieces(command: int, payload: bytes, ends: Iterable[int]) -> list[bytes]:
    """Return a request in pieces: up to where each of ``ends`` bytes of its payload have come, and
    the rest."""
    whole = encode(command, payload)
    cuts = [1 + len(_escaped(bytes([command]) + payload[:end])) for end in ends]
    return [whole[begin:end] for begin, end in pairwise([0, *cuts, len(whole)])]


def waits(payload_bytes: int, wait_bytes: int) -> range:
    """After how many bytes of an input the host waits for ``READY``: every ``wait_bytes`` but the
    last; 0: never."""
    return range(wait_bytes, payload_bytes, wait_bytes) if wait_bytes else range(0)


def decode(inside: bytes) -> Reply:
    """Return a reply from the bytes between two flags. Raises FrameError when it is not whole."""
    plain = bytearray()
    escaped = False
    for byte in inside:
        if byte == ESCAPE and not escaped:
            escaped = True
        else:
            plain.append(byte ^ ESCAPE_XOR if escaped else byte)
            escaped = False
    if escaped or len(plain) < 4:
        raise FrameError(f"a reply of {len(plain)} B was cut short: check the line and try again")
    if struct.unpack("<H", plain[-2:])[0] != crc16(bytes(plain[:-2])) ^ 0xFFFF:
        raise FrameError("a reply arrived damaged (CRC): check the line and try again")
    try:
        return Reply(plain[0], Status(plain[1]), bytes(plain[2:-2]))
    except ValueError:
        raise FrameError(
            f"a reply has status {plain[1]}: the firmware is of another version"
        ) from None


def split(stream: bytes) -> Iterator[bytes]:
    """Return the insides of the frames in ``stream``; ``READY`` between them, and what follows the
    last flag, is left out."""
    return (part for part in stream.split(bytes([FLAG]))[:-1] if part.strip(bytes([READY])))


def replies(stream: bytes) -> list[Reply]:
    return [decode(part) for part in split(stream)]


def accept(reply: Reply, command: Command) -> bytes:
    """Return the payload of an accepted reply to ``command``; raises FrameError for a refusal."""
    if reply.command != command or reply.status is not Status.OK:
        raise FrameError(
            f"the firmware refused {command.name.lower()}: {reply.status.name.lower()}"
            + EXPLAINED.get(reply.status, "")
        )
    return reply.payload


def identity(payload: bytes) -> Identity:
    version = int.from_bytes(payload[:2], "little")
    if version != VERSION:
        raise FrameError(
            f"the firmware speaks protocol {version}, this is {VERSION}: flash it again"
        )
    _, input_bytes, count, output_bytes, parameter_bytes = _unpack("<HIHBI", payload)
    width, in_turn = output_bytes & ~KEEPS_STATE, bool(output_bytes & KEEPS_STATE)
    return Identity(input_bytes, count, width, parameter_bytes, in_turn)


def report(payload: bytes) -> Report:
    return Report(*_unpack("<IHH", payload))


def outputs(payload: bytes, who: Identity) -> npt.NDArray[np.signedinteger]:
    """Return the outputs of one inference: (outputs,) of the firmware's own type."""
    if len(payload) != who.outputs * who.output_bytes:
        raise FrameError(f"{len(payload)} B of outputs, {who.outputs * who.output_bytes} expected")
    return np.frombuffer(payload, who.dtype)


def _unpack(layout: str, payload: bytes) -> tuple[int, ...]:
    if len(payload) != struct.calcsize(layout):
        raise FrameError(f"{len(payload)} B of payload, {struct.calcsize(layout)} expected")
    return struct.unpack(layout, payload)
