"""A board on a serial line: requests asked again until they are answered whole.

A line drops, doubles and damages bytes. A damaged frame fails its check at either end; a lost flag
leaves the firmware waiting, until the next one. So after anything but a whole answer this end
sends a flag and asks who is there, and takes nothing for an answer before that is answered: the
firmware answers in order, so nothing older can come after it.
"""

from __future__ import annotations

import os
import select
import termios
import time
import tty
from typing import Self

from pipeline.errors import ThimbleError
from pipeline.targets import protocol
from pipeline.targets.protocol import Command, FrameError, Reply, Status

ATTEMPTS = 30
SILENCES = 7
"""Attempts without any answer; damaged ones come at once, and cost less."""
PATIENCE_S = 5.0
"""Time to wait for an answer; after each silence twice as long."""

READ_BYTES = 4096
NOT_WHOLE = (Status.TRUNCATED, Status.OVERSIZED, Status.BAD_CRC, Status.UNKNOWN)
"""Statuses that a firmware gives for a request that a line has damaged."""


def termios_speed(baud: int) -> int:
    """Raises ThimbleError when this computer has no such rate."""
    found: int | None = getattr(termios, f"B{baud}", None)
    if found is None:
        raise ThimbleError(f"hardware.baud={baud}: this computer has no such rate: try 115200")
    return found


class Line:
    """The serial port ``port``, raw; a context manager.

    Raises:
        ThimbleError: when it is not there, is no serial port, or has no such rate.
    """

    def __init__(self, port: str, baud: int) -> None:
        speed = termios_speed(baud)
        try:
            self._file = os.open(port, os.O_RDWR | os.O_NOCTTY)
        except OSError as error:
            raise ThimbleError(f"target.port={port}: {error.strerror}") from None
        try:
            tty.setraw(self._file)
            settings = termios.tcgetattr(self._file)
            settings[4] = settings[5] = speed
            settings[2] |= termios.CLOCAL | termios.CREAD
            termios.tcsetattr(self._file, termios.TCSANOW, settings)
        except termios.error:
            os.close(self._file)
            raise ThimbleError(f"target.port={port} is no serial port") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]

    def read(self, timeout_s: float) -> bytes:
        """Return the bytes that have come, waiting for them at most so long; empty if none."""
        ready, _, _ = select.select([self._file], [], [], max(0.0, timeout_s))
        if not ready:
            return b""
        try:
            return os.read(self._file, READ_BYTES)
        except OSError:  # a pseudo-terminal whose other end is closed
            raise ThimbleError("the board has left the serial line") from None


class Board:
    """The firmware at the other end of ``line``."""

    def __init__(self, line: Line, patience_s: float = PATIENCE_S, wait_bytes: int = 0) -> None:
        self._line = line
        self._patience_s = patience_s
        self._wait_bytes = wait_bytes
        self._pending = b""
        self.repeated = 0
        """Requests asked again."""

    def connect(self) -> protocol.Identity:
        """Ask who is there; a board that has just been reset is waited for."""
        for attempt in range(SILENCES):
            if reply := self._identified(self._patience_s * 2**attempt / 4):
                return protocol.identity(reply.payload)
        raise FrameError(
            "nobody answers at the serial line: is it the port of this board, and was it flashed?"
        )

    def ask(self, command: Command, payload: bytes = b"") -> bytes:
        """Return the payload of the firmware's whole answer.

        Raises:
            FrameError: when it refuses what it got whole, or gives no whole answer.
        """
        silences = 0
        for _ in range(ATTEMPTS):
            patience_s = self._patience_s * 2**silences
            begin = time.monotonic()
            sent = self._sent(command, payload, patience_s)
            reply = self._reply(command, patience_s) if sent else None
            if reply is not None and reply.status not in NOT_WHOLE:
                return protocol.accept(reply, command)
            self.repeated += 1
            silences += time.monotonic() - begin >= patience_s
            if silences == SILENCES:
                break
            self._synchronize()
        raise FrameError(
            f"no whole answer to {command.name.lower()}, {silences} times none at all: check the "
            "line and hardware.baud"
        )

    def _sent(self, command: Command, payload: bytes, patience_s: float) -> bool:
        """Send a request; return whether all of it could go out: within an input the board may want
        to be waited for."""
        of_input = len(payload) if command is Command.INFER else 0
        ends = protocol.waits(of_input, self._wait_bytes)
        *begun, last = protocol.pieces(command, payload, ends)
        for piece in begun:
            self._line.write(piece)
            if not self._ready(time.monotonic() + patience_s):
                return False
        self._line.write(last)
        return True

    def _ready(self, deadline: float) -> bool:
        """Check whether the board's word comes by ``deadline``; forget what came before it."""
        word = bytes([protocol.READY])
        while word not in self._pending:
            if (left := deadline - time.monotonic()) <= 0:
                return False
            self._pending += self._line.read(left)
        self._pending = self._pending.split(word, 1)[1]
        return True

    def _synchronize(self) -> None:
        for attempt in range(SILENCES):
            if self._identified(self._patience_s * 2**attempt):
                return
        raise FrameError("the board has stopped answering: reset it, check the line")

    def _identified(self, patience_s: float) -> Reply | None:
        self._line.write(bytes([protocol.FLAG]) + protocol.encode(Command.IDENTIFY))
        deadline = time.monotonic() + patience_s
        while (left := deadline - time.monotonic()) > 0:
            reply = self._reply(Command.IDENTIFY, left, until_ok=True)
            if reply is None:
                return None
            if reply.status is Status.OK:
                return reply
        return None

    def _reply(self, command: Command, patience_s: float, until_ok: bool = False) -> Reply | None:
        """Return the next reply to ``command``, or the next that refuses anything; None when what
        comes is damaged, or nothing comes. ``until_ok``: refusals and damage are passed over."""
        deadline = time.monotonic() + patience_s
        while True:
            part = self._frame(deadline)
            if part is None:
                return None
            try:
                reply = protocol.decode(part)
            except FrameError:
                if until_ok:
                    continue
                return None
            if reply.status is Status.OK and reply.command == command:
                return reply
            if reply.status is not Status.OK and not until_ok:
                return reply

    def _frame(self, deadline: float) -> bytes | None:
        """Return the inside of the next frame; None when it has not come by ``deadline``."""
        flag = bytes([protocol.FLAG])
        while True:
            while flag in self._pending:
                part, self._pending = self._pending.split(flag, 1)
                if part:
                    return part
            if (left := deadline - time.monotonic()) <= 0:
                return None
            self._pending += self._line.read(left)
