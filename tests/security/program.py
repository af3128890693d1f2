"""``fixture/main.c`` with firmware/security, built natively or for a simulated core, and asked."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from struct import Struct

import numpy as np

from pipeline.home import ROOT
from tests.codegen.support import SANITIZERS, WARNINGS

FIRMWARE = ROOT / "firmware" / "security"
FIXTURE = Path(__file__).parent / "fixture"
BOARD = ROOT / "tests" / "storage" / "fixture" / "lm3s6965"
HEAD = Struct("<I32s12s16sII")
KEY_BYTES, TAG_BYTES, LEFT_BYTES = 32, 16, 1024


class What(IntEnum):
    SEAL = 0
    OPEN = 1
    DERIVE = 2
    POLY1305 = 3


@dataclass(frozen=True)
class Asked:
    what: What
    key: bytes
    nonce: bytes = bytes(12)
    tag: bytes = bytes(TAG_BYTES)
    about: bytes = b""
    content: bytes = b""

    @property
    def packed(self) -> bytes:
        sizes = len(self.about), len(self.content)
        return (
            HEAD.pack(self.what, self.key, self.nonce, self.tag, *sizes) + self.about + self.content
        )


@dataclass(frozen=True)
class Told:
    """``left``: what was on the stack below the call when it was over."""

    right: bool
    tag: bytes
    left: bytes
    content: bytes


def native(folder: Path, options: Sequence[str] = SANITIZERS) -> list[str]:
    """The command that runs it."""
    source = str(FIXTURE / "main.c")
    command = ["cc", *WARNINGS, *options, f"-I{FIRMWARE}", source, "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    return [str(folder / "program")]


def simulated(folder: Path, cpu: str) -> list[str]:
    """On a core ``cpu`` of QEMU's."""
    port = ROOT / "firmware" / "ports" / "cortex_m"
    command = ["arm-none-eabi-gcc", f"-mcpu={cpu}", "-mthumb", *WARNINGS, "-O2", "-nostartfiles",
               "-specs=nosys.specs", f"-I{FIRMWARE}", f"-I{port}", f"-T{BOARD / 'link.ld'}",
               str(FIXTURE / "main.c"), "-o", "program.elf"]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True)
    return ["qemu-system-arm", "-M", "lm3s6965evb", "-cpu", cpu, "-kernel", "program.elf",
            "-semihosting-config", "enable=on,target=native", "-display", "none",
            "-monitor", "none", "-serial", "none"]  # fmt: skip


def told(folder: Path, command: Sequence[str], asked: Sequence[Asked]) -> list[Told]:
    (folder / "asked").write_bytes(b"".join(each.packed for each in asked))
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=500)
    answers, found = (folder / "told").read_bytes(), []
    for each in asked:
        ends = np.cumsum([4, TAG_BYTES, LEFT_BYTES, len(each.content)])
        right, tag, left, content, answers = (
            answers[low:high] for low, high in pairwise([0, *ends, None])
        )
        assert len(content) == len(each.content)
        found.append(Told(right[0] == 1, tag, left, content))
    assert not answers
    return found
