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


LANES = 14
"""Output channels that are computed together: two pixels' sums of them stay in registers."""


@dataclass(frozen=True)
class Layer:
    """A valid convolution with ReLU: its square kernel, and whether a 2x2 maximum follows."""

    channels: int
    kernel: int
    stride: int
    pooled: bool

    def side(self, given: int) -> int:
        """Return the side of its output, before any maximum."""
        return (given - self.kernel) // self.stride + 1


@dataclass(frozen=True)
class Chain:
    """The shapes the loops are made for; ``side`` and ``depth`` are the pooled image's."""

    depth: int
    side: int
    layers: tuple[Layer, ...]
    classes: int

    @property
    def sides(self) -> list[int]:
        """List the sides of the image and of what each layer leaves."""
        found = [self.side]
        for layer in self.layers:
            found.append(layer.side(found[-1]) // (2 if layer.pooled else 1))
        return found

    @classmethod
    def of(cls, network: nn.Sequential, side: int) -> Chain:
        """Derive the chain from a network for images of ``side`` pixels.

        Raises:
            ThimbleError: other layers than pool, convolutions with ReLU, maximum, dense; or shapes
                that the loops are not made for.
        """
        pool, *layers = network
        dense = layers[-1]
        convolutions = [each for each in layers if isinstance(each, nn.Conv2d)]
        found, kinds = [], list[type]()
        for each in convolutions:
            after = layers[min(layers.index(each) + 2, len(layers) - 1)]
            pooled = isinstance(after, nn.MaxPool2d) and after.kernel_size in (2, (2, 2))
            kinds += [nn.Conv2d, nn.ReLU, *([nn.MaxPool2d] if pooled else [])]
            found.append(_layer(each, pooled))
        kinds += [nn.Flatten, nn.Linear]
        ordered = [type(layer) for layer in layers] == kinds
        if not (isinstance(pool, PixelPool) and isinstance(dense, nn.Linear) and ordered):
            raise ThimbleError(
                "train=paper takes a pool, convolutions with ReLU, 2x2 maximums and a dense "
                "layer, as in mnist_2kb: use train=quick"
            )
        chain = cls(
            convolutions[0].in_channels, side // pool.size, tuple(found), dense.out_features
        )
        least = [layer.side(given) for layer, given in zip(chain.layers, chain.sides, strict=False)]
        if min(least) < 2:
            raise ThimbleError(f"train=paper needs layers of 2x2 and more, not {least}: use quick")
        return chain


def _layer(convolution: nn.Conv2d, pooled: bool) -> Layer:
    (kernel, width), (stride, across) = convolution.kernel_size, convolution.stride
    others = convolution.padding, convolution.dilation, convolution.groups
    if (width, across, *others) != (kernel, stride, (0, 0), (1, 1), 1):
        raise ThimbleError(
            "train=paper takes convolutions with a square kernel, one stride and no padding: "
            "use train=quick"
        )
    return Layer(convolution.out_channels, kernel, stride, pooled)


@dataclass(frozen=True)
class Batches:
    """Images (n, side, side, c) of 0…15, labels (n,), the teacher's shares (n, classes) of 0…255,
    and what of the loss is the label's; the rest is the teacher's, at its ``temperature``."""

    images: U8
    labels: U8
    shares: U8
    hard: float
    temperature: float

    def of(self, chosen: U32 | slice) -> Batches:
        """Return the ``chosen`` images alone."""
        parts = self.images[chosen], self.labels[chosen], self.shares[chosen]
        return Batches(*parts, self.hard, self.temperature)


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
    channels = [chain.depth, *(layer.channels for layer in chain.layers)]
    cases = (
        f"case {i}: {_parts(i, given, made)} break;"
        for i, (given, made) in enumerate(pairwise(channels))
    )
    lists = {
        "CHANNELS": channels,
        "SIDES": chain.sides,
        "KERNELS": [layer.kernel for layer in chain.layers],
        "STRIDES": [layer.stride for layer in chain.layers],
        "POOLED": [int(layer.pooled) for layer in chain.layers],
    }
    shapes: dict[str, object] = {name: ",".join(map(str, each)) for name, each in lists.items()}
    shapes |= {"LAYERS": len(chain.layers), "CLASSES": chain.classes, "CASES": " ".join(cases)}
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


def _parts(layer: int, given: int, made: int) -> str:
    """Calls for the output channels of a layer, as many in each as registers hold."""
    count = -(-made // LANES)
    edges = [made * part // count for part in range(count + 1)]
    return " ".join(
        f"CONV({layer},{given},{made},{begin},{end - begin})" for begin, end in pairwise(edges)
    )
