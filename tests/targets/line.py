"""A serial line: a pseudo-terminal with a firmware behind it, what comes to harm between them, and
what a firmware answers to any bytes, frame.h in Python."""

import os
import select
import subprocess
import threading
import tty
from collections.abc import Callable, Iterator
from typing import Self

import numpy as np

from pipeline.targets import protocol
from pipeline.targets.protocol import Command, Reply, Status

CHUNK = 1024


class Noise:
    """Drops, doubles and changes bytes, each with probability ``rate``; counts what it did."""

    def __init__(self, rate: float, seed: int = 0) -> None:
        self.rate, self.rng = rate, np.random.default_rng(seed)
        self.harmed = {"dropped": 0, "doubled": 0, "changed": 0}

    def __call__(self, data: bytes) -> bytes:
        found = bytearray()
        for byte in data:
            kind = int(self.rng.random() / self.rate) if self.rate else 3
            if kind < 3:
                self.harmed[list(self.harmed)[kind]] += 1
            changed = byte ^ 1 << int(self.rng.integers(8))
            found += (b"", bytes([byte, byte]), bytes([changed]), bytes([byte]))[min(kind, 3)]
        return bytes(found)


class Terminal:
    """A pseudo-terminal, ``port`` by name; a context manager.

    Args:
        answer: gets what was written there, after the noise; gives what comes back at once.
        source: a file that more comes from, when it comes.
    """

    def __init__(
        self, answer: Callable[[bytes], bytes], noise: Noise, source: int | None = None
    ) -> None:
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._answer, self._noise, self._source = answer, noise, source
        self._stop, self._stopped = os.pipe()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._stopped)
        self._thread.join()
        for file in (self._stop, self._master, self._slave):
            os.close(file)

    def _run(self) -> None:
        watched = [self._master, self._stop]
        watched += [] if self._source is None else [self._source]
        while True:
            ready, _, _ = select.select(watched, [], [])
            if self._stop in ready:
                return
            sent = b""
            if self._master in ready:
                sent += self._answer(self._noise(os.read(self._master, CHUNK)))
            if self._source is not None and self._source in ready:
                more = os.read(self._source, CHUNK)
                if not more:
                    return
                sent += more
            os.write(self._master, self._noise(sent))


class Machine:
    """A program whose serial line is its standard input and output."""

    def __init__(self, *command: object) -> None:
        self.process = subprocess.Popen(
            [*map(str, command)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        self._requests = self.process.stdin
        self.source = self.process.stdout.fileno()

    def answer(self, data: bytes) -> bytes:
        self._requests.write(data)
        self._requests.flush()
        return b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


class Receiver:
    """Takes a line's bytes, in pieces of any size.

    Args:
        input_bytes: of an inference.
        compute: the payload of its answer.
        parameters: those that have to be loaded first, if any.
    """

    def __init__(
        self, input_bytes: int, compute: Callable[[bytes], bytes], parameters: bytes = b""
    ) -> None:
        self.expected = {Command.IDENTIFY: 0, Command.REPORT: 0, Command.INFER: input_bytes}
        if parameters:
            self.expected[Command.LOAD] = len(parameters)
        self.compute, self.parameters, self.ready = compute, parameters, not parameters
        self.pending = b""

    def feed(self, stream: bytes) -> list[Reply]:
        """The replies; those to identify and report without their payload."""
        *ended, self.pending = (self.pending + stream).split(bytes([protocol.FLAG]))
        return [reply for inside in ended for reply in self._frame(inside)]

    def _frame(self, inside: bytes) -> Iterator[Reply]:
        plain, escaped = bytearray(), False
        for byte in inside:
            if byte == protocol.ESCAPE and not escaped:
                escaped = True
            else:
                plain.append(byte ^ protocol.ESCAPE_XOR if escaped else byte)
                escaped = False
        if not plain:
            return
        command, content = plain[0], bytes(plain[1:-2])
        if command == Command.LOAD and len(plain) > 1:
            self.ready = not self.parameters
        whole = self.expected.get(command, 0) + 3  # type: ignore[call-overload]
        if len(plain) != whole:
            status = Status.TRUNCATED if len(plain) < whole else Status.OVERSIZED
        elif escaped or protocol.crc16(bytes(plain)) != 0xF0B8:
            status = Status.BAD_CRC
        else:
            status = self._carry_out(command, content)
        accepted = command == Command.INFER and status is Status.OK
        yield Reply(command, status, self.compute(content) if accepted else b"")

    def _carry_out(self, command: int, content: bytes) -> Status:
        if command not in self.expected:
            return Status.UNKNOWN
        if command == Command.LOAD:
            self.ready = content == self.parameters
        needs = command in (Command.LOAD, Command.INFER)
        return Status.OK if self.ready or not needs else Status.NO_PARAMETERS


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
