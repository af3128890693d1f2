"""Images as a network's input tensor stores them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays
from pipeline.axes import advice, fits, times
from pipeline.errors import ThimbleError
from pipeline.graph.ends import apart, joined
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Tensor

RAW_ZERO = 128
"""Value taken off raw values 0…255 for a signed input, as TFLite converters and ``quantize=int8``
do: the same byte but for its highest bit. Where the input has ``raw``, its scale decides."""

FEWEST_VALUES = 32
"""Fewest values that the data's 256 may become: with fewer, ``model.input_range`` is a mistake."""


def check(graph: Graph, data: Arrays) -> None:
    """Raises ThimbleError when the test images or labels of ``data`` are not for ``graph``."""
    images, labels = data["test_images"], data["test_labels"]
    if len(graph.inputs) > 1:
        _check_several(graph, data)
        return
    takes = graph.tensors[graph.input]
    if len(images) and not fits(images.shape[1:], takes.shape):
        raise other_images(images, takes)
    if len(images) and takes.raw and (values := len(set(integers(takes)))) < FEWEST_VALUES:
        low, high = takes.real(np.array([takes.dtype.minimum, takes.dtype.maximum]))
        raise ThimbleError(
            f"model.input_range={list(takes.raw)} makes {values} different values of 0…255: the "
            f"input's scale and zero point mean {low:.3g}…{high:.3g}; set model.input_range to "
            "what the network takes for 0 and 255 of the data"
        )
    if len(graph.outputs) > 1:
        return
    gives = graph.tensors[graph.output].size
    if len(labels) and (highest := int(labels.max())) >= gives:
        raise ThimbleError(
            f"the data set has label {highest}, {graph.name} gives {gives} "
            f"output{'s' * (gives > 1)}, for labels below {gives}: choose data with such labels, "
            "or a network with more outputs"
        )


def _check_several(graph: Graph, data: Arrays) -> None:
    named, images = tuple(map(str, data.get("inputs", ()))), data["test_images"]
    elements = sum(graph.tensors[name].size for name in graph.inputs)
    if len(images) and (named, images[0].size) != (graph.inputs, elements):
        shapes = (f"{name} {times(graph.tensors[name].shape)}" for name in graph.inputs)
        raise ThimbleError(
            f"{graph.name} takes {', '.join(shapes)}, the data is of {', '.join(named) or 'images'}"
            f" with {images[0].size} values a frame: set data=npz data.inputs="
            f"[{','.join(graph.inputs)}], or data=none"
        )


def answers(graph: Graph, replies: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(n, values) as a program has sent them -> (n, elements) as its outputs store them; those of
    several outputs come as bytes, and are one after the other."""
    tensors = [graph.tensors[name] for name in graph.outputs]
    kinds = [np.dtype(str(each.dtype)) for each in tensors]
    if len(kinds) == 1:
        return replies.view(kinds[0])
    ends = np.cumsum([of.size * kind.itemsize for of, kind in zip(tensors, kinds, strict=True)])
    parts = zip(np.split(replies, ends[:-1], axis=1), kinds, strict=True)
    return joined([np.ascontiguousarray(part).view(k).astype(np.int64) for part, k in parts])


def fed(graph: Graph, frames: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(n, …) integers -> as ``nn_feed`` takes them: of the input's type, of several inputs (n,
    bytes), one after the other."""
    parts = apart(frames, [graph.tensors[name] for name in graph.inputs])
    stored = [v.astype(graph.tensors[name].dtype.stored) for name, v in parts.items()]
    if len(stored) == 1:
        return stored[0]
    return joined([np.ascontiguousarray(v).view(np.uint8) for v in stored])


def integers(tensor: Tensor) -> npt.NDArray[np.int64]:
    """Return what ``tensor`` stores for each of the raw values 0…255."""
    values = np.arange(256)
    if tensor.raw is None:
        least, wider = tensor.dtype.minimum, 257 if tensor.dtype.bits > 8 else 1
        return wider * values + (least if tensor.dtype.signed else 0)
    low, high = tensor.raw
    real = low + values * (high - low) / 255
    return tensor.dtype.clip(np.rint(real / tensor.scale[0]).astype(np.int64) + tensor.zero_point)


def other_images(images: npt.NDArray[np.uint8], takes: Tensor) -> ThimbleError:
    mend = advice(images.shape[1:], takes.shape) or "choose another data or model"
    return ThimbleError(
        f"images of {times(images.shape[1:])} are not what the network takes "
        f"({times(takes.shape)}): {mend}"
    )


def stored(images: npt.NDArray[Any], tensor: Tensor) -> npt.NDArray[Any]:
    """(n, h, w, c) -> (n, *tensor.shape) of the tensor's own integer type: raw values u8, or what
    it stores, int16.

    Raises:
        ThimbleError: when an image has other axes, or the type has other bits.
    """
    if tensor.dtype.bits < 8:
        raise ThimbleError(
            f"{tensor.name} is {tensor.dtype}: images are for inputs of 8 or 16 bits"
        )
    if not fits(images.shape[1:], tensor.shape):
        raise other_images(images, tensor)
    images, kind = images.reshape(len(images), *tensor.shape), tensor.dtype.stored
    if images.dtype == np.uint8:
        images = integers(tensor)[images]
    elif images.size and (tensor.dtype.clip(images) != images).any():
        raise ThimbleError(
            f"data.stored=true: values beyond {tensor.dtype}, which {tensor.name} is"
        )
    return np.asarray(images, kind)


def raw_only(data: Arrays) -> None:
    """Raises ThimbleError when the images of ``data`` are integers of a quantized network."""
    if any(data[name].dtype == np.int16 for name in data if name.endswith("_images")):
        raise ThimbleError(
            "data.stored=true: images are what a quantized network's input stores, and this one is "
            "still to be quantized: leave it out, and give raw values, 0…255 or 0…1"
        )


def reshaped(images: npt.NDArray[np.uint8], tensor: Tensor) -> npt.NDArray[np.uint8]:
    """``images``, whose axes ``check`` has looked at, with those that a pass has given the input
    since; as they are where they have more or fewer values."""
    alike = images[:1].size == tensor.size * len(images[:1])
    return images.reshape(len(images), *tensor.shape) if alike else images
