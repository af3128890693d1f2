"""Networks that arrive in a file with their weights, already quantized or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph

if TYPE_CHECKING:  # it needs PyTorch, whose import takes seconds
    from pipeline.importers.float_graph import FloatGraph

LARGEST_BYTES = 1 << 30
"""No microcontroller's network is larger; a wrong file may be."""


@dataclass(frozen=True)
class Imported(ABC):
    """A network from the user's file: neither trained nor pruned here.

    Attributes:
        path: the file, relative to the folder in which the command is typed.
        enters: the first stage that has the network.
        outputs: the names of the tensors at which the network ends, its outputs or any others;
            empty: at its outputs.
        step: a call is one step of a sequence: what recurrent operators keep stays for the next.
    """

    path: str
    enters: str = "quantize"
    outputs: tuple[str, ...] = ()
    step: bool = False

    @abstractmethod
    def graph(self) -> Graph:
        """Return the integer graph; raises ThimbleError when the file holds anything else."""

    def float_graph(self) -> FloatGraph | None:
        """Return the network on real numbers, where the file holds one that is still to be
        quantized; None where ``graph`` has it."""
        return None

    def ranged(self, graph: Graph, limits: tuple[float, ...]) -> Graph:
        """``graph``, whose data's raw values 0 and 255 mean the real ``limits`` (low, high).

        Raises:
            ThimbleError: these are no range.
        """
        raw = increasing(limits)
        sources = {name: replace(graph.tensors[name], raw=raw) for name in graph.inputs}
        return replace(graph, tensors={**graph.tensors, **sources})

    def content(self) -> bytes:
        """Return the file's bytes."""
        file = Path(self.path)
        try:
            if not file.is_file():
                raise ThimbleError(f"model.path={self.path}: there is no such file")
            if (size := file.stat().st_size) > LARGEST_BYTES:
                raise ThimbleError(
                    f"model.path={self.path} has {size:,} bytes, more than {LARGEST_BYTES:,}: "
                    "is it a network?"
                )
            return file.read_bytes()
        except OSError as error:
            raise ThimbleError(f"model.path={self.path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ThimbleError(f"model.path={self.path!r} is no path: {error}") from None


def chosen(asked: Sequence[str], outputs: Sequence[str], every: Collection[str]) -> list[str]:
    """Choose where a network ends: each tensor once.

    Args:
        asked: ``model.outputs``.
        outputs: the names of the file's outputs; ``every``: of all tensors.
    """
    for name in asked:
        if name not in every:
            near = get_close_matches(name, every, 3, 0.3) or outputs[:3]
            raise ThimbleError(
                f"model.outputs=[{name}]: there is no such tensor; there are {', '.join(near)}"
            )
    if not (asked or outputs):
        raise ThimbleError("the model has no outputs")
    return list(dict.fromkeys(asked or outputs))


def increasing(limits: tuple[float, ...]) -> tuple[float, float]:
    """``model.input_range``, if it is a range."""
    if len(limits) != 2 or not -inf < limits[0] < limits[1] < inf:
        raise ThimbleError(f"model.input_range={list(limits)}: give [low,high]")
    return limits[0], limits[1]
