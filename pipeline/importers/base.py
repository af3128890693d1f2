"""Networks that arrive in a file with their weights, already quantized or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
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
    """

    path: str
    enters: str = "quantize"

    @abstractmethod
    def graph(self) -> Graph:
        """The integer graph; raises ThimbleError when the file holds anything else."""

    def float_graph(self) -> FloatGraph | None:
        """The network on real numbers, where the file holds one that is still to be quantized;
        None where ``graph`` has it."""
        return None

    def ranged(self, graph: Graph, limits: tuple[float, ...]) -> Graph:
        """``graph``, whose data's raw values 0 and 255 mean the real ``limits`` (low, high).

        Raises:
            ThimbleError: these are no range.
        """
        source = replace(graph.tensors[graph.input], raw=increasing(limits))
        return replace(graph, tensors={**graph.tensors, graph.input: source})

    def content(self) -> bytes:
        """The file's bytes."""
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


def increasing(limits: tuple[float, ...]) -> tuple[float, float]:
    """``model.input_range``, if it is a range."""
    if len(limits) != 2 or not -inf < limits[0] < limits[1] < inf:
        raise ThimbleError(f"model.input_range={list(limits)}: give [low,high]")
    return limits[0], limits[1]
