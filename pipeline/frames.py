"""Images as a network's input tensor stores them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError
from pipeline.graph.tensor import Tensor

RAW_ZERO = 128
"""What is taken off raw values 0…255 for a signed input, as TFLite converters and ``quantize=int8``
do: the same byte but for its highest bit."""


def stored(images: npt.NDArray[np.uint8], tensor: Tensor) -> npt.NDArray[Any]:
    """(n, h, w, c) u8 -> (n, *tensor.shape) of the tensor's own integer type.

    Raises:
        ThimbleError: when an image has another number of values, or the type has no 8 bits.
    """
    if tensor.dtype.bits != 8:
        raise ThimbleError(f"{tensor.name} is {tensor.dtype}: images are for inputs of 8 bits")
    if int(np.prod(images.shape[1:])) != tensor.size:
        raise ThimbleError(
            f"images of {'x'.join(map(str, images.shape[1:]))} are not what the network takes "
            f"({'x'.join(map(str, tensor.shape))}): choose another data or model"
        )
    shaped = images.reshape(len(images), *tensor.shape)
    if not tensor.dtype.signed:
        return shaped
    return (shaped.astype(np.int16) - RAW_ZERO).astype(np.int8)
