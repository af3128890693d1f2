"""Results of a target for a number of images, and how work is shared between cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError

Images = npt.NDArray[np.uint8]
T = TypeVar("T")


def _none(*shape: int) -> Any:
    """Return a field that is empty where nothing counts it."""
    return field(default_factory=lambda: np.zeros(shape or 0, np.int64))


@dataclass(frozen=True)
class Runs:
    """Inferences on one target.

    Attributes:
        outputs: (images, outputs), of the firmware's own integer type.
        latency_cycles: (images,) last input byte read until the first answer byte is written,
            without waiting for the line; empty where nothing counts cycles.
        compute_cycles: (images,) in feeding and invoking; empty likewise.
        layers: what ``layer_cycles`` is of, in the order it is computed; empty where nothing
            looks at single layers.
        layer_cycles: (images, layers), adding up to ``compute_cycles``.
        functions: what ``function_cycles`` is of, where nothing looks at layers.
        function_cycles: (images, functions) of each, what it calls and is none of them included.
        stack_bytes: deepest stack, start-up included, from the lowest stack pointer.
        painted_stack_bytes: the same as the chip found it in its own painted memory.
        instructions: (images,) in invoking, by a timer, all ones where they are more than a word
            says; empty where nothing counts them.
        invoke_cycles: (images,) in invoking, by the chip's own timer; empty where a simulator says
            more.
        modelled_cycles: of the median inference, see pipeline/targets/qemu_cycles.py.
        arena_touched_bytes: of the arena up to its last byte ever written, by painted memory.
        unskipped_cycles: ``latency_cycles`` of an image in which no activation is 0, where others
            take less (``targets/zeros.py``).
    """

    outputs: npt.NDArray[Any]
    latency_cycles: npt.NDArray[np.int64] = _none()
    compute_cycles: npt.NDArray[np.int64] = _none()
    layers: tuple[str, ...] = ()
    layer_cycles: npt.NDArray[np.int64] = _none(0, 0)
    stack_bytes: int | None = None
    painted_stack_bytes: int | None = None
    instructions: npt.NDArray[np.int64] = _none()
    modelled_cycles: dict[str, Any] | None = None
    arena_touched_bytes: int | None = None
    invoke_cycles: npt.NDArray[np.int64] = _none()
    functions: tuple[str, ...] = ()
    function_cycles: npt.NDArray[np.int64] = _none(0, 0)
    unskipped_cycles: int | None = None

    def each(self, frames: int, count: int) -> Runs:
        """Return the same of the first ``count`` images, of which ``frames`` are computed together:
        counts are a frame's share."""
        kinds = ("latency", "compute", "invoke", "function", "layer", "modelled")
        counted = ("instructions", *(f"{kind}_cycles" for kind in kinds))
        shares = {name: _share(getattr(self, name), frames) for name in counted}
        return replace(self, outputs=apart(self.outputs, frames)[:count], **shares)


def _share(counted: Any, frames: int) -> Any:
    """Return a frame's share of all counts in it."""
    match counted:
        case int() | np.ndarray():
            return counted // frames
        case dict():
            return {name: _share(each, frames) for name, each in counted.items()}
        case list() | tuple():
            return [_share(each, frames) for each in counted]
    return counted


def together(images: Images, frames: int) -> Images:
    """(n, …) -> (batches, frames, …), where one is not enough filled up with the first ones."""
    if frames == 1:
        return images
    return np.resize(images, (-(-len(images) // frames), frames, *images.shape[1:]))


def apart(outputs: npt.NDArray[Any], frames: int) -> npt.NDArray[Any]:
    """(batches, frames * outputs) -> (n, outputs)."""
    return outputs.reshape(len(outputs) * frames, -1) if frames > 1 else outputs


def check_images(images: Images, input_bytes: int) -> None:
    """Raises ThimbleError when the images are not what the firmware takes."""
    each = int(np.prod(images.shape[1:]))
    if images.dtype != np.uint8 or each != input_bytes:
        raise ThimbleError(
            f"the firmware takes {input_bytes} B an image, the test set has {each} values of "
            f"{images.dtype}: run stage generate again"
        )


def cores() -> int:
    return len(os.sched_getaffinity(0))


def shares(count: int, size: int, in_turn: bool = False) -> Iterator[slice]:
    """``count`` items in consecutive slices of ``size``, the last one shorter; all together where
    each follows the one before, ``in_turn``."""
    size = max(1, count) if in_turn else size
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def in_parallel(work: Callable[[slice], T], parts: list[slice]) -> list[T]:
    """``work`` on each part, as many at a time as there are cores; results in order.

    Each call should wait for a program of its own: these are threads. The first error ends the
    parts not yet begun and is raised.
    """
    with ThreadPoolExecutor(max_workers=cores()) as pool:
        futures = [pool.submit(work, part) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
