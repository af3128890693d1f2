"""What a run ran in, besides the versions in its stages' keys; a replay compares it."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

VECTORS = ("avx512f", "avx2", "fma", "asimd", "sve")


def surroundings() -> dict[str, str]:
    """Python, NumPy, the exact build of PyTorch, the processor and its vector instructions: what
    training rounds by."""
    processor = dict(_processor())
    flags = processor.get("flags", processor.get("Features", "")).split()
    return {
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "torch_build": metadata.version("torch"),
        "machine": platform.machine(),
        "processor": processor.get("model name", platform.processor()),
        "vectors": " ".join(name for name in VECTORS if name in flags),
    }


def _processor() -> Iterator[tuple[str, str]]:
    """The first processor in /proc/cpuinfo; nothing where there is no such file."""
    with suppress(OSError), Path("/proc/cpuinfo").open() as stream:
        for line in itertools.takewhile(str.strip, stream):
            key, _, value = line.partition(":")
            yield key.strip(), value.strip()
