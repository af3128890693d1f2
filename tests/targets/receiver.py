"""What a firmware answers to a stream of bytes, whatever they are: frame.h in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipeline.targets import protocol
from pipeline.targets.protocol import Command, Reply, Status


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
