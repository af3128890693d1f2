"""Labels that a float network gives images, to compare the integer network's with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

LARGEST_MACS = 400_000_000_000
"""Work in all, half a minute at most; of a larger network fewer images are computed."""
FEWEST_IMAGES = 8
BATCH_IMAGES = 256
BATCH_ELEMENTS = 1 << 22
"""Elements of images that are computed together."""

Labels = npt.NDArray[np.int64]
Network = Callable[[torch.Tensor], torch.Tensor]


@torch.no_grad()
def labels(
    network: Network, images: npt.NDArray[np.uint8], macs: int, threads: int, in_turn: bool = False
) -> Labels:
    """Return the place of the greatest output for each of the first images, as many as LARGEST_MACS
    allows; none where the outputs are no vector, and so no label.

    Args:
        network: from raw values (n, h, w, c) in 0…255 to outputs (n, …).
        images: (n, h, w, c).
        macs: of an inference.
        threads: that PyTorch shares an operator among.
        in_turn: each image follows the one before, so that they go together.
    """
    chosen = images[: max(FEWEST_IMAGES, LARGEST_MACS // max(1, macs))]
    batch = max(1, min(BATCH_IMAGES, BATCH_ELEMENTS // max(1, prod(images.shape[1:]))))
    batch = len(images) or 1 if in_turn else batch
    with threaded(threads):
        found = _batched(network, chosen, batch)
        if found is None:
            found = _batched(network, chosen, 1)
        assert found is not None
        return found


@contextmanager
def threaded(number: int) -> Iterator[None]:
    """Let PyTorch share operators among so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _batched(network: Network, images: npt.NDArray[np.uint8], batch: int) -> Labels | None:
    """None when the network takes no more than one image at once."""
    found: list[npt.NDArray[Any]] = []
    for start in range(0, len(images), batch):
        part = torch.from_numpy(images[start : start + batch]).float()
        try:
            outputs = network(part)
        except RuntimeError:  # say, a reshape to (1, -1)
            if len(part) > 1:
                return None
            raise
        if not isinstance(outputs, torch.Tensor):  # of several outputs none is the label's
            return np.zeros(0, np.int64)
        if len(outputs) != len(part) and len(part) > 1:
            return None
        if outputs[0].numel() != max(outputs.shape[1:], default=1):
            return np.zeros(0, np.int64)
        found.append(outputs.flatten(1).argmax(1).numpy())
    return np.concatenate([np.zeros(0, np.int64), *found])
