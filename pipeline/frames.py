"""Images as a network's input tensor stores them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Tensor

RAW_ZERO = 128
"""What is taken off raw values 0…255 for a signed input, as TFLite converters and ``quantize=int8``
do: the same byte but for its highest bit."""


def check(graph: Graph, data: Arrays) -> None:
    """Raises ThimbleError when the test images or labels of ``data`` are not for ``graph``."""
    images, labels = data["test_images"], data["test_labels"]
    takes, gives = graph.tensors[graph.input], graph.tensors[graph.output].size
    if len(images) and images[0].size != takes.size:
        raise other_images(images, takes)
    if len(labels) and (highest := int(labels.max())) >= gives:
        raise ThimbleError(
            f"the data set has label {highest}, {graph.name} gives {gives} "
            f"output{'s' * (gives > 1)}, for labels below {gives}: choose data with such labels, "
            "or a network with more outputs"
        )


def other_images(images: npt.NDArray[np.uint8], takes: Tensor) -> ThimbleError:
    return ThimbleError(
        f"images of {'x'.join(map(str, images.shape[1:]))} are not what the network takes "
        f"({'x'.join(map(str, takes.shape))}): choose another data or model"
    )


def stored(images: npt.NDArray[np.uint8], tensor: Tensor) -> npt.NDArray[Any]:
    """(n, h, w, c) u8 -> (n, *tensor.shape) of the tensor's own integer type.

    Raises:
        ThimbleError: when an image has another number of values, or the type has no 8 bits.
    """
    if tensor.dtype.bits != 8:
        raise ThimbleError(f"{tensor.name} is {tensor.dtype}: images are for inputs of 8 bits")
    if int(np.prod(images.shape[1:])) != tensor.size:
        raise other_images(images, tensor)
    shaped = images.reshape(len(images), *tensor.shape)
    if not tensor.dtype.signed:
        return shaped
    return (shaped.astype(np.int16) - RAW_ZERO).astype(np.int8)
