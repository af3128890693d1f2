"""A training's whole state in one file, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pipeline.artifacts import write_bytes

State = dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """``fingerprint`` says which training it belongs to: another one's state is not taken."""

    folder: Path | None
    fingerprint: str

    @property
    def path(self) -> Path:
        assert self.folder is not None
        return self.folder / f"training-{self.fingerprint}.ckpt"

    def save(self, state: State) -> None:
        if self.folder is None:
            return
        buffer = io.BytesIO()
        torch.save(state, buffer)
        content = buffer.getvalue()
        write_bytes(self.path, hashlib.sha256(content).digest() + content)

    def load(self) -> State | None:
        """The newest state, or ``None``; a damaged file counts as none and is written over."""
        if self.folder is None or not self.path.is_file():
            return None
        content = self.path.read_bytes()
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        try:
            state: State = torch.load(io.BytesIO(content[32:]), weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError):
            return None
        return state


def fingerprint(*parts: object) -> str:
    """Hash configuration objects (by ``repr``) and arrays (by content)."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.tobytes() if hasattr(part, "tobytes") else repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]
