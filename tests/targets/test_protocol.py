"""Frames: the published check value, round trips, and damage that must be noticed."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.targets import protocol
from pipeline.targets.protocol import Command, FrameError, Status


def reply_frame(command: int, status: int, payload: bytes = b"") -> bytes:
    return protocol.frame(bytes([command, status]) + payload)


def test_the_check_is_crc16_x25() -> None:
    """0x906E is the catalogue's check value of CRC-16/X-25 over "123456789"."""
    assert protocol.crc16(b"123456789") ^ 0xFFFF == 0x906E


@given(st.binary(max_size=300))
def test_a_check_run_over_a_whole_frame_leaves_the_good_value(inside: bytes) -> None:
    fcs = struct.pack("<H", protocol.crc16(inside) ^ 0xFFFF)
    assert protocol.crc16(inside + fcs) == 0xF0B8  # RFC 1662 appendix C.2
    plain = protocol.frame(inside)[1:-1].replace(b"\x7d\x5e", b"\x7e").replace(b"\x7d\x5d", b"\x7d")
    assert plain == inside + fcs


@given(st.integers(0, 255), st.sampled_from(Status), st.binary(max_size=300))
def test_what_is_framed_is_decoded(command: int, status: Status, payload: bytes) -> None:
    (reply,) = protocol.replies(reply_frame(command, status, payload))
    assert (reply.command, reply.status, reply.payload) == (command, status, payload)


@pytest.mark.ci
@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_request_in_pieces(payload: bytes, data: st.DataObject) -> None:
    """The first have so many bytes of the payload, flags and escapes among them, and no more."""
    ends = sorted(data.draw(st.sets(st.integers(0, len(payload)))))
    found = protocol.pieces(Command.INFER, payload, ends)
    assert b"".join(found) == protocol.encode(Command.INFER, payload)
    for count, end in enumerate(ends, 1):
        plain = b"".join(found[:count])[1:]
        plain = plain.replace(b"\x7d\x5e", b"\x7e").replace(b"\x7d\x5d", b"\x7d")
        assert plain == bytes([Command.INFER]) + payload[:end]


@given(st.binary(max_size=40), st.data())
def test_damage_of_up_to_16_bits_in_a_row_is_noticed(payload: bytes, data: st.DataObject) -> None:
    """Any burst not longer than the check is detected for certain, so no luck is involved."""
    inside = bytes([Command.INFER, Status.OK]) + payload
    plain = inside + struct.pack("<H", protocol.crc16(inside) ^ 0xFFFF)
    start = data.draw(st.integers(0, 8 * len(plain) - 16))
    burst = data.draw(st.integers(1, 0xFFFF))
    damaged = (int.from_bytes(plain, "little") ^ burst << start).to_bytes(len(plain), "little")
    escaped = damaged.replace(b"\x7d", b"\x7d\x5d").replace(b"\x7e", b"\x7d\x5e")
    with pytest.raises(FrameError, match="damaged"):
        protocol.decode(escaped)


@pytest.mark.parametrize("inside", [b"", b"F", b"F\x00\x00", b"F\x00\x11\x22\x7d"])
def test_short_replies_are_noticed(inside: bytes) -> None:
    with pytest.raises(FrameError, match="cut short"):
        protocol.decode(inside)


def test_replies_of_another_version_are_noticed() -> None:
    with pytest.raises(FrameError, match="another version"):
        protocol.replies(reply_frame(Command.INFER, 99))
    with pytest.raises(FrameError, match="protocol 1, this is 2"):
        protocol.identity(struct.pack("<HIHB", 1, 784, 10, 2))
    with pytest.raises(FrameError, match="13 expected"):
        protocol.identity(b"\x02\x00")


def test_a_refusal_says_what_was_refused_and_why() -> None:
    (reply,) = protocol.replies(reply_frame(Command.INFER, Status.BAD_CRC))
    with pytest.raises(FrameError, match="refused infer: bad_crc"):
        protocol.accept(reply, Command.INFER)
    (reply,) = protocol.replies(reply_frame(Command.INFER, Status.CORRUPT))
    with pytest.raises(FrameError, match="overwritten"):
        protocol.accept(reply, Command.INFER)
    (reply,) = protocol.replies(reply_frame(Command.INFER, Status.NO_PARAMETERS))
    with pytest.raises(FrameError, match=r"infer: no_parameters .load this network's parameters"):
        protocol.accept(reply, Command.INFER)
    (reply,) = protocol.replies(reply_frame(Command.REPORT, Status.OK))
    with pytest.raises(FrameError, match="refused infer"):
        protocol.accept(reply, Command.INFER)


@pytest.mark.parametrize("bytes_each", [1, 2, 4])
def test_outputs_have_the_firmwares_own_type(bytes_each: int) -> None:
    who = protocol.identity(struct.pack("<HIHBI", 2, 784, 3, bytes_each, 0))
    values = np.array([-1, 0, 100], who.dtype)
    got = protocol.outputs(values.tobytes(), who)
    assert got.dtype.itemsize == bytes_each
    np.testing.assert_array_equal(got, values)
    with pytest.raises(FrameError, match="of outputs"):
        protocol.outputs(values.tobytes()[:-1], who)


def test_the_report_is_read_in_order() -> None:
    got = protocol.report(struct.pack("<IHH", 960_000, 40, 60))
    assert (got.invoke_cycles, got.stack_bytes, got.untouched_bytes) == (960_000, 40, 60)
