"""Run one inference under the plugin that carries labels, and read what it found."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.hardware import Hardware
from pipeline.targets import parameters, protocol, qemu, tools
from pipeline.targets.protocol import Command
from pipeline.targets.qemu_cycles import SIMULATORS

LABELS = {1: "the input", 2: "stale memory", 4: "the caller's registers", 8: "overwritten bytes",
          16: "undeclared bytes"}  # fmt: skip
SEED = 64


@dataclass(frozen=True)
class Finding:
    """An instruction, at ``at``, that depends on what ``labels`` say, or deviates from the plan:
    ``count`` times, first in ``step`` at ``address``."""

    what: str
    at: int
    count: int
    labels: tuple[str, ...] = ()
    step: int = 0
    address: int = 0


@dataclass
class Found:
    """``executed``: instructions of nn_invoke; ``outputs``: what it answered."""

    outputs: bytes
    executed: int = 0
    dependences: list[Finding] = field(default_factory=list)
    deviations: list[Finding] = field(default_factory=list)


def compile_plugin(folder: Path) -> Path:
    """Compile the plugin into ``folder``; return the library's path."""
    tools.require("cc", "gcc", "compiles what follows labels")
    source = str(SIMULATORS / "qemu_labels.c")
    command = ["cc", "-O2", "-std=gnu99", "-fPIC", "-shared", source, "-o", "labels.so"]
    tools.run(command, folder, "compiling what follows labels")
    return folder / "labels.so"


def traced(build: Path, size: Mapping[str, Any], hardware: Hardware, job: bytes) -> Found:
    """Trace one inference of a random input.

    Raises:
        ThimbleError: QEMU is missing, or the firmware gives no answer.
    """
    core = qemu.Core(build, hardware, size)
    replies, _ = core.exchange(protocol.encode(Command.IDENTIFY))
    who = protocol.identity(protocol.accept(replies[0], Command.IDENTIFY))
    loaded = parameters.wanted(build, who.parameter_bytes)
    image = np.random.default_rng(SEED).integers(0, 256, who.input_bytes, np.uint8).tobytes()
    stream = protocol.encode(Command.LOAD, loaded) if loaded else b""
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        folder = Path(name)
        (folder / "job").write_bytes(job)
        plugin = f"{compile_plugin(folder)},job={folder / 'job'},out={folder / 'found'}"
        request = stream + protocol.encode(Command.INFER, image)
        replies, _ = core.exchange(request, ["-plugin", plugin])
        outputs = protocol.accept(replies[-1], Command.INFER)
        return _read((folder / "found").read_text(), outputs)


def _read(text: str, outputs: bytes) -> Found:
    found = Found(outputs)
    for line in text.splitlines():
        word, *rest = line.split()
        if word == "executed":
            found.executed = int(rest[0])
            continue
        at, count, step, address, labels = map(int, rest[1:])
        names = tuple(name for bit, name in LABELS.items() if labels & bit)
        kind = found.dependences if word == "depends" else found.deviations
        kind.append(Finding(rest[0], at, count, names, step, address))
    return found
