"""Images and labels that are not for the network are one line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.frames import check, stored
from pipeline.graph.tensor import DType, Tensor
from tests.codegen.int8.configurations import network

INT8 = DType.parse("int8")
GRAPH = network()  # 8x8x3 to 3 outputs


def data(shape: tuple[int, ...], *labels: int) -> dict[str, np.ndarray]:
    images = np.zeros((len(labels), *shape), np.uint8)
    return {"test_images": images, "test_labels": np.array(labels, np.uint8)}


def test_what_fits_is_taken_and_no_other() -> None:
    check(GRAPH, data((8, 8, 3), 0, 2, 1))
    check(GRAPH, data((1, 1, 1)))
    with pytest.raises(ThimbleError, match=r"label 3, \w+ gives 3 outputs, for labels below 3"):
        check(GRAPH, data((8, 8, 3), 0, 3, 1))
    with pytest.raises(ThimbleError, match=r"images of 8x9x3 are not what .* takes \(8x8x3\)"):
        check(GRAPH, data((8, 9, 3), 0))


def test_known_units_go_through_the_scale() -> None:
    """0…255 mean -1…1; what the input cannot hold is the nearest it can."""
    tensor = Tensor("x", (1, 1, 5), INT8, (0.01,), 7, (-1.0, 1.0))
    raw = np.array([0, 64, 128, 191, 255], np.uint8).reshape(1, 1, 1, 5)
    assert stored(raw, tensor).tolist() == [[[[-93, -43, 7, 57, 107]]]]
    assert stored(raw, replace(tensor, scale=(0.005,))).ravel().tolist() == [-128, -93, 8, 107, 127]
    assert stored(raw, replace(tensor, raw=None)).ravel().tolist() == [-128, -64, 0, 63, 127]
    unsigned = replace(tensor, raw=None, dtype=DType.parse("uint8"))
    assert stored(raw, unsigned).ravel().tolist() == raw.ravel().tolist()
    assert repr(tensor) == repr(replace(tensor, raw=None))  # hashes are of what code depends on


def test_other_axes_are_refused_unless_they_are_of_one() -> None:
    for shape, said in (((3, 8, 8), "channels come first"), ((4, 16, 3), "choose another data")):
        with pytest.raises(ThimbleError, match=said):
            check(GRAPH, data(shape, 0))
        with pytest.raises(ThimbleError, match=said):
            stored(data(shape, 0)["test_images"], GRAPH.tensors[GRAPH.input])
    signal = Tensor("x", (1, 40, 1), INT8, (1.0,), 0)
    for shape in ((40, 1, 1), (1, 1, 40), (8, 5, 1)):
        takes = replace(signal, shape=(40,)) if shape[1] == 5 else signal
        assert stored(np.zeros((2, *shape), np.uint8), takes).shape == (2, *takes.shape)
    with pytest.raises(ThimbleError, match="images of 8x5x1"):
        stored(np.zeros((2, 8, 5, 1), np.uint8), replace(signal, shape=(5, 8, 1)))
    with pytest.raises(ThimbleError, match="save them flat"):
        stored(np.zeros((2, 4, 5, 2), np.uint8), replace(signal, shape=(40,)))
