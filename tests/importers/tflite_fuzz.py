"""Imports damaged files under limits of time and memory: ``python -m tests.importers.tflite_fuzz
FIRST COUNT``.

A program of its own, so that a crash or an allocation that fails is seen by who started it. Prints
how many files were read and how many refused; ends with 1 at the first that does otherwise.
"""

from __future__ import annotations

import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.importers.tflite import TFLite
from tests.importers.tflite_cases import CASES
from tests.importers.tflite_networks import network
from tests.importers.tflite_random import Random
from tests.importers.tflite_writer import Writer

SECONDS = 2.0
EXTRA_BYTES = 400_000_000
"""Address space beyond what the interpreter and its libraries take at the start."""

HOSTILE = (0, 1, 4, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)


def whole(rng: Random) -> bytes:
    """A file that is all right."""
    kinds = [network, network, *CASES.values()]
    return kinds[int(rng.integers(len(kinds)))](rng)


def truncated(content: bytearray, rng: Random) -> bytearray:
    return content[: int(rng.integers(len(content)))]


def flipped(content: bytearray, rng: Random) -> bytearray:
    for _ in range(int(rng.integers(1, 9))):
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    return content


def overwritten(content: bytearray, rng: Random) -> bytearray:
    """Aligned words, where sizes and offsets are, by hostile ones or by offsets to elsewhere."""
    for _ in range(int(rng.integers(1, 5))):
        where = 4 * int(rng.integers(len(content) // 4))
        word = int(rng.integers(len(content))) if rng.random() < 0.3 else int(rng.choice(HOSTILE))
        content[where : where + 4] = word.to_bytes(4, "little")
    return content


def spliced(content: bytearray, rng: Random) -> bytearray:
    """A piece moved to another place, over what was there or between it."""
    start, where = (4 * int(rng.integers(len(content) // 4)) for _ in range(2))
    piece = content[start : start + 4 * int(rng.integers(1, 32))]
    end = where + (len(piece) if rng.random() < 0.9 else 0)
    return content[:where] + piece + content[end:]


def absurd(net: Writer, rng: Random) -> None:
    """One thing in the network that makes no sense, in a file that is sound."""
    tensor = net.tensors[int(rng.integers(len(net.tensors)))]
    op = net.operators[int(rng.integers(len(net.operators)))]
    number = int(rng.choice([-1, 0, 1, 2, 3, 7, 100, 1 << 20, (1 << 31) - 1, -(1 << 31)]))
    match int(rng.integers(9)):
        case 0:
            tensor["dims"] = [*tensor["dims"], number]
        case 1:
            dims = [*tensor["dims"], 1]
            dims[int(rng.integers(len(dims)))] = number
            tensor["dims"] = dims
        case 2:
            tensor["dims"] = tensor["dims"][1:]
        case 3:
            tensor["dtype"] = int(rng.integers(-2, 20))
        case 4:
            wild = np.float32(rng.choice([0, -1, 1e-45, 1e-30, 3e38, np.inf, np.nan, 1, 1e-3]))
            tensor["scales"] = np.full(int(rng.choice([0, 1, 1, 1, 2, 9])), wild)
        case 5:
            tensor["zeros"] = np.full(int(rng.choice([0, 1, 1, 2])), number * 3)
        case 6:
            side = "in" if rng.random() < 0.7 else "out"
            links = [*op[side], number]
            links[int(rng.integers(len(links)))] = int(rng.integers(-2, len(net.tensors) + 2))
            op[side] = links if rng.random() < 0.5 else links[:-1]
        case 7:
            kinds = ["SHAPE", "WHILE", "CUSTOM", "LSTM", *CASES]
            op["kind"] = kinds[int(rng.integers(len(kinds)))]
        case 8:
            flags = ("KeepDims", "KeepNumDims", "HalfPixelCenters", "AlignCorners")
            most = {**dict.fromkeys(flags, 2), "Padding": 128, "FusedActivationFunction": 128}
            for name in [name for name in op["values"] if rng.random() < 0.5]:
                op["values"][name] = abs(number) % most[name] if name in most else number


def damaged(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    write, nonsense = Writer.content, rng.random() < 0.5

    def content(net: Writer, *ends: Any) -> bytes:
        if nonsense:
            absurd(net, rng)
        return write(net, *ends)

    with patch.object(Writer, "content", content):
        found = bytearray(whole(rng))
    if nonsense and rng.random() < 0.8:
        return bytes(found)
    damages = [flipped, overwritten, spliced, truncated]
    damage = damages[int(rng.choice(4, p=[0.45, 0.35, 0.15, 0.05]))]
    return bytes(damage(found, rng) or b"\0")


def outcomes(first: int, count: int, folder: Path) -> Iterator[str]:
    path = folder / "damaged.tflite"
    for seed in range(first, first + count):
        path.write_bytes(damaged(seed))
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            TFLite(path=str(path)).graph()
            yield "read"
        except ThimbleError as error:
            assert "\n" not in str(error), error
            yield "refused"
        except BaseException:
            print(f"seed {seed}:", file=sys.stderr)
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def late(*_: object) -> None:
    raise TimeoutError(f"an import took more than {SECONDS} s")


def main() -> None:
    signal.signal(signal.SIGALRM, late)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + EXTRA_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with tempfile.TemporaryDirectory() as folder:
        found = Counter(outcomes(int(sys.argv[1]), int(sys.argv[2]), Path(folder)))
    print(found["read"], found["refused"])


if __name__ == "__main__":
    main()
