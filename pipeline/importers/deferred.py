"""PyTorch, imported when something of it is used: its import takes seconds, and reading a network
needs no more than the names of its types."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
    from torch.nn import functional as F
else:

    class Deferred:
        """Stands for the module ``name``."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self._name), attribute)

    torch, F = Deferred("torch"), Deferred("torch.nn.functional")

__all__ = ("F", "torch")
