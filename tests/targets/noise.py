"""A pseudo-terminal with a firmware behind it, and a line between them that does harm."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Self

import numpy as np

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


class Qemu:
    """A firmware on a machine of QEMU, whose serial line is QEMU's standard input and output."""

    def __init__(self, elf: Path, machine: str, serial: tuple[str, ...]) -> None:
        command = [
            "qemu-system-arm", "-M", machine, "-kernel", str(elf), "-display", "none",
            "-monitor", "none", "-parallel", "none", *serial,
        ]  # fmt: skip
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
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
