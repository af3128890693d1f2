"""What every quantization method answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers.float_graph import FloatGraph
from pipeline.models.network import Model


class Quantizer(ABC):
    """From weights to the integer graph."""

    needs_data: ClassVar[bool] = False
    """Whether ``data`` is looked at."""

    @abstractmethod
    def graph(self, name: str, model: Model, weights: Arrays, data: Arrays | None = None) -> Graph:
        """The integer graph of ``model`` with the parameters in ``weights``.

        Args:
            data: the content of ``dataset.npz``; calibration is on random pictures where it is
                None or has no images (``data=none``).

        Raises:
            ThimbleError: parameters of another model, or a network that this format cannot hold.
        """

    def from_float(self, network: FloatGraph, data: Arrays | None = None) -> Graph:
        """The integer graph of a float network that came from a file."""
        raise ThimbleError(
            f"{network.name}: this quantization takes the project's own networks; use quantize=int8"
        )
