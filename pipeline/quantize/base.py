"""Interface of every quantization method."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers.float_graph import FloatGraph
from pipeline.models.network import Model
from pipeline.quantize.errors import Row


class Quantizer(ABC):
    """From weights to the integer graph."""

    @abstractmethod
    def graph(self, name: str, model: Model, weights: Arrays, data: Arrays | None = None) -> Graph:
        """Return the integer graph of ``model`` with the parameters in ``weights``.

        Args:
            data: the content of ``dataset.npz``; calibration is on random pictures where it is
                None or has no images (``data=none``).

        Raises:
            ThimbleError: parameters of another model, or a network that this format cannot hold.
        """

    def from_float(self, network: FloatGraph, data: Arrays | None = None) -> Graph:
        """Return the integer graph of a float network that came from a file."""
        raise ThimbleError(
            f"{network.name}: this quantization takes the project's own networks; use quantize=int8"
        )

    def errors(
        self, network: Model | FloatGraph, weights: Arrays, graph: Graph, data: Arrays
    ) -> list[Row]:
        """Return the error of each tensor of ``graph``, made of ``network``, on training images of
        ``data``; none where this format has no float network before it."""
        return []

    def float_labels(
        self, network: Model | FloatGraph, weights: Arrays, images: npt.NDArray[np.uint8], macs: int
    ) -> npt.NDArray[np.int64]:
        """The float network's labels for the first of ``images`` (n, h, w, c), to compare with.

        None where this format has no float network before it.

        Args:
            weights: of a Model.
            macs: of an inference; large networks compute fewer images.
        """
        return np.zeros(0, np.int64)
