"""Builds and calls ``paper_kernel.c``: training steps of a small chain at the speed of the core."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.network import PixelPool

F32 = npt.NDArray[np.float32]
U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
FLOAT, QUANTIZED, FROZEN = range(3)
"""Modes: real numbers; on the grids, thresholds trained; on the grids, thresholds as they are."""
SOURCE = Path(__file__).with_suffix(".c")
COMPILER = ("gcc", "-std=gnu11", "-O3", "-march=native", "-shared", "-fPIC")


@dataclass(frozen=True)
class Chain:
    """The shapes the loops are made for: ``channels`` of the pooled image, whose sides are
    ``side``, and of the convolutions with a square ``kernel``; their outputs have even sides."""

    channels: tuple[int, ...]
    kernel: int
    side: int
    classes: int

    @classmethod
    def of(cls, network: nn.Sequential, side: int) -> Chain:
        """Of a network for images of ``side`` pixels.

        Raises:
            ThimbleError: other layers than pool, convolutions with ReLU, maximum, dense; or shapes
                that the loops are not made for.
        """
        pool, *layers = network
        convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
        kinds = [nn.Conv2d, nn.ReLU] * len(convolutions) + [nn.MaxPool2d, nn.Flatten, nn.Linear]
        dense = layers[-1]
        ordered = [type(layer) for layer in layers] == kinds
        if not (isinstance(pool, PixelPool) and isinstance(dense, nn.Linear) and ordered):
            raise ThimbleError(
                "train=paper takes a pool, convolutions with ReLU, a 2x2 maximum and a dense "
                "layer, as in mnist_2kb: use train=quick"
            )
        side //= pool.size
        kernel = convolutions[0].kernel_size[0]
        sides = [side - number * (kernel - 1) for number in range(1, len(convolutions) + 1)]
        plain = all(
            (each.kernel_size, each.stride, each.padding, each.dilation, each.groups)
            == ((kernel, kernel), (1, 1), (0, 0), (1, 1), 1)
            for each in convolutions
        )
        if not plain or layers[-3].kernel_size not in (2, (2, 2)):
            raise ThimbleError(
                "train=paper takes convolutions with one square kernel, no stride and no padding, "
                "and a 2x2 maximum: use train=quick"
            )
        if any(each % 2 or each < 2 for each in sides):
            raise ThimbleError(f"train=paper needs layers of even sides, not {sides}: use quick")
        channels = [convolutions[0].in_channels, *(each.out_channels for each in convolutions)]
        if max(channels) > 16:
            raise ThimbleError(f"train=paper takes 16 channels at most, not {max(channels)}")
        return cls(tuple(channels), kernel, side, dense.out_features)


@dataclass(frozen=True)
class Batches:
    """Images (n, side, side, c) of 0…15, labels (n,), the teacher's shares (n, classes) of 0…255,
    and what of the loss is the label's; the rest is the teacher's, at its ``temperature``."""

    images: U8
    labels: U8
    shares: U8
    hard: float
    temperature: float


@dataclass(frozen=True)
class Kernel:
    """A model's compiled network. Every call lets go of the interpreter: threads really run."""

    library: ctypes.CDLL
    classes: int

    @property
    def parameters(self) -> int:
        return int(self.library.parameter_count())

    def gradient(self, row: F32, mode: int, batches: Batches, order: U32, grad: F32) -> float:
        """Mean loss over the images that ``order`` lists; its gradient goes to ``grad``."""
        return self._finite(
            self.library.gradient(
                _at(row), _at(grad), mode, *self._images(batches), _at(order), len(order),
                *self._loss(batches),
            )
        )  # fmt: skip

    def train(
        self, row: F32, moments: F32, done: int, mode: int, batches: Batches, order: U32, rates: F32
    ) -> float:
        """Steps of Adam, one for each of ``rates``; changes ``row`` and ``moments`` (2, n).

        Args:
            done: steps that went before in this phase.
            order: (steps, batch), indices of images.

        Returns:
            The mean loss.
        """
        steps, size = order.shape
        return self._finite(
            self.library.train(
                _at(row), _at(moments[0]), _at(moments[1]), done, mode, *self._images(batches),
                _at(order), steps, size, _at(rates), *self._loss(batches),
            )
        )  # fmt: skip

    def logits(self, row: F32, mode: int, images: U8) -> F32:
        """(n, side, side, c) -> (n, classes)"""
        out = np.empty((len(images), self.classes), np.float32)
        self._finite(self.library.predict(_at(row), mode, _at(images), len(images), _at(out)))
        return out

    @staticmethod
    def _images(batches: Batches) -> tuple[ctypes.c_void_p, ...]:
        return _at(batches.images), _at(batches.labels), _at(batches.shares)

    @staticmethod
    def _loss(batches: Batches) -> tuple[ctypes.c_float, ctypes.c_float]:
        return ctypes.c_float(batches.hard), ctypes.c_float(batches.temperature)

    @staticmethod
    def _finite(loss: float) -> float:
        if not np.isfinite(loss):
            raise ThimbleError("train: the loss is not finite: lower train.float_rate")
        return loss


def _at(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


@cache
def build(chain: Chain) -> Kernel:
    """Compile for these shapes and this machine's vectors; takes a few seconds.

    Raises:
        ThimbleError: there is no gcc.
    """
    channels = chain.channels
    cases = "".join(
        f"CONV({i},{given},{made})" for i, (given, made) in enumerate(pairwise(channels))
    )
    shapes = {
        "LAYERS": len(channels) - 1,
        "K": chain.kernel,
        "CHANNELS": ",".join(map(str, channels)),
        "SIZE": chain.side,
        "CLASSES": chain.classes,
        "CASES": cases,
    }
    defines = [f"-D{name}={value}" for name, value in shapes.items()]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "kernel.so"
        command = [*COMPILER, *defines, "-o", str(target), str(SOURCE), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise ThimbleError("train=paper compiles its loops with gcc: install it") from None
        except subprocess.CalledProcessError as error:
            reason = error.stderr.strip().partition("\n")[0]
            raise ThimbleError(f"train=paper: gcc cannot compile {SOURCE.name}: {reason}") from None
        library = ctypes.CDLL(str(target))
    for name in ("gradient", "train", "predict"):
        getattr(library, name).restype = ctypes.c_float
    return Kernel(library, chain.classes)
