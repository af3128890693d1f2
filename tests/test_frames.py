"""Images and labels that are not for the network are one line."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.frames import check
from tests.codegen.affine.configurations import network

GRAPH = network()  # 8x8x3 to 3 outputs


def data(shape: tuple[int, ...], *labels: int) -> dict[str, np.ndarray]:
    images = np.zeros((len(labels), *shape), np.uint8)
    return {"test_images": images, "test_labels": np.array(labels, np.uint8)}


def test_what_fits_is_taken() -> None:
    check(GRAPH, data((8, 8, 3), 0, 2, 1))
    check(GRAPH, data((1, 1, 1)))


def test_labels_beyond_the_outputs_are_one_line() -> None:
    with pytest.raises(ThimbleError, match=r"label 3, \w+ gives 3 outputs, for labels below 3"):
        check(GRAPH, data((8, 8, 3), 0, 3, 1))


def test_images_of_another_size_are_one_line() -> None:
    with pytest.raises(ThimbleError, match=r"images of 8x9x3 are not what .* takes \(8x8x3\)"):
        check(GRAPH, data((8, 9, 3), 0))
