"""Kernels for cores with the DSP extension, and their prices: cycles without flash waits, and bytes
of code of those that make a row, fitted to what simulated layers take (tests/kernels/cycles.json)
and written by ``python -m tests.kernels.fit``."""

from functools import cache
from typing import ClassVar

from pipeline.kernels.fast import Fast
from pipeline.kernels.work import Counts

CORES = ("cortex-m4", "cortex-m7", "cortex-m33")
"""Cores of our boards with SMLAD and its kin: Armv7E-M, Armv8-M with DSP."""


@cache
def costs(cpu: str, kernel: str) -> Counts:
    """Return the costs of a kernel, by its name in the set."""
    return {word: each[CORES.index(cpu)] for word, each in COSTS[kernel].items()}


class Fitted(Fast):
    """
    Attributes:
        priced: as which kernel of the set it is priced, by its word; "": by its own.
    """

    core = "cortex_m"
    priced: ClassVar[str] = ""

    def __init__(self, cpu: str = "cortex-m4") -> None:
        self.cpu = cpu
        self.code_bytes = CODE_BYTES.get(self.word, 0)

    def prices(self) -> Counts:
        """Return those that were fitted for ``cpu``."""
        return costs(self.cpu, self.priced or self.word)


CODE_BYTES = {
    "elements": 262,
    "row_conv2d": 1299,
    "row_dense": 798,
    "row_depthwise": 674,
    "row_fused": 1109,
    "row_pool": 243,
}

COSTS = {
    "accumulate": {
        "word of a pixel and a pair": (9.07, 4.2, 6.79),
        "output": (6.09, 5.03, 5.95),
        "word of a window": (15.8, 12.1, 24.4),
        "element left over": (17.5, 9.3, 16.7),
        "narrow output": (12.1, 9.91, 12.9),
        "pair of products in registers": (2.61, 1.43, 2.28),
        "four sums of 8 bits": (11.5, 9.07, 11.6),
        "sum of 16 bits": (2.41, 2.5, 2.25),
        "element in registers": (7.42, 4.04, 7.29),
    },
    "conv2d": {
        "word of a pixel and a pair": (6.45, 3.87, 6.46),
        "output": (10.2, 5.51, 9.16),
        "word of a window": (9.45, 6.09, 8.91),
        "element left over": (21.9, 13.3, 19.8),
        "call": (235.0, 239.0, 422.0),
        "word of a pair of channels": (2.99, 0.0, 1.3),
        "the same, 3 or 4 pixels": (2.08, 0.0, 0.0),
        "round": (10.1, 5.76, 9.07),
        "tap over an edge": (21.3, 10.6, 21.7),
        "clip": (2.72, 2.36, 3.08),
        "shift": (1.05, 0.851, 0.894),
        "odd element of a row": (25.3, 16.0, 21.4),
    },
    "dense": {
        "word of a channel": (4.92, 2.34, 4.46),
        "group": (45.0, 45.5, 62.2),
        "word of the input": (9.82, 6.09, 9.16),
        "output": (6.28, 3.06, 3.34),
        "clip": (3.72, 2.64, 3.63),
        "shift": (1.94, 0.696, 1.43),
    },
    "depthwise": {
        "pair of taps": (2.48, 1.53, 2.3),
        "output": (9.85, 5.17, 9.57),
        "output of stride 2": (10.0, 4.42, 9.21),
        "row of a channel": (12.0, 7.54, 14.3),
        "row of weights for few outputs": (7.84, 4.5, 6.83),
        "pixel widened": (14.7, 7.78, 12.6),
        "pair widened alone": (4.26, 4.6, 5.27),
        "word outside": (6.68, 4.12, 6.08),
        "clip": (2.87, 2.55, 2.84),
        "shift": (0.0, 0.661, 0.0),
    },
    "elements": {
        "word, add": (67.9, 39.0, 69.1),
        "element left over, add": (27.5, 18.3, 24.3),
        "run": (9.26, 8.04, 7.9),
        "clip": (2.12, 1.42, 2.16),
        "word, multiply": (39.8, 26.9, 38.7),
        "element left over, multiply": (15.0, 4.61, 12.9),
        "word, multiply by one": (31.4, 14.8, 31.5),
        "element left over, multiply by one": (9.06, 5.54, 8.87),
    },
    "gathered_conv2d": {
        "word of a pixel and a pair": (6.76, 2.99, 5.5),
        "output": (12.5, 6.16, 10.5),
        "word of a window": (9.05, 7.16, 10.8),
        "element left over": (30.8, 10.7, 22.5),
        "call": (96.4, 106.0, 93.6),
        "word of a pair of channels": (3.18, 1.47, 3.1),
        "the same, 3 or 4 pixels": (1.29, 2.32, 1.99),
        "round": (7.5, 5.24, 8.76),
        "tap over an edge": (22.3, 11.9, 19.3),
        "clip": (2.4, 2.34, 2.97),
        "shift": (1.71, 0.593, 1.15),
    },
    "gathered_depthwise": {
        "product": (3.96, 2.41, 3.56),
        "output": (2.05, 1.83, 2.04),
        "pixel": (63.5, 42.3, 61.0),
        "product of a large window": (4.39, 3.08, 4.17),
    },
    "ordered": {
        "word, two pixels and channels": (22.7, 16.1, 20.4),
        "byte left over": (29.3, 20.8, 26.4),
        "row of a window, two pixels and channels": (98.9, 70.2, 89.0),
        "two pixels and channels": (34.8, 24.7, 31.3),
        "output": (8.23, 5.84, 7.4),
        "word, two channels": (15.4, 10.9, 13.8),
    },
    "pool": {
        "word of a tap, average": (3.71, 2.11, 3.53),
        "output of averages": (15.7, 13.8, 16.2),
        "row of taps": (3.57, 1.42, 2.54),
        "pixel of an image with padding": (259.0, 164.0, 260.0),
        "average of an image with padding": (5.13, 6.48, 3.86),
        "word of a tap, maximum": (3.49, 2.16, 3.49),
        "gathered, word of a tap, average": (7.41, 3.31, 7.06),
        "gathered, output of averages": (21.6, 18.1, 20.0),
        "word of a pixel": (29.3, 15.0, 14.9),
        "pixel": (56.7, 65.0, 105.0),
        "gathered, word of a tap, maximum": (8.88, 4.04, 7.96),
    },
    "row_conv2d": {
        "word of a pair of channels": (0.529, 0.714, 1.48),
        "word of a pixel and a pair": (3.79, 1.83, 3.06),
        "the same, of an odd number of pixels": (0.6, 0.0, 0.817),
        "round": (8.53, 3.61, 8.23),
        "output": (9.18, 6.0, 8.73),
        "word of windows": (6.24, 3.14, 5.49),
        "line": (20.5, 7.36, 18.6),
        "word of a line": (4.65, 4.06, 4.01),
        "element of a line": (9.42, 5.6, 8.66),
        "clip": (3.14, 2.39, 3.5),
        "shift": (1.13, 0.683, 1.23),
    },
    "row_depthwise": {
        "output": (10.7, 10.8, 11.1),
        "word": (8.59, 2.96, 6.96),
        "pixel by itself": (3.33, 0.548, 2.47),
        "unit in a loop": (5.82, 2.3, 7.61),
        "channel in units": (16.1, 18.7, 14.3),
        "product in a loop": (1.03, 0.898, 1.03),
        "pixel by itself in a loop": (2.88, 2.53, 2.9),
        "sum in memory": (3.91, 1.12, 2.69),
        "clip": (3.0, 1.89, 3.01),
        "shift": (0.762, 0.706, 0.797),
    },
    "row_pool": {
        "word added": (2.4, 1.47, 2.42),
        "shorter word added": (4.39, 2.3, 4.41),
        "sum": (9.45, 5.25, 8.41),
        "word of a row": (3.62, 1.58, 3.38),
        "word of 2 columns": (10.3, 6.66, 9.87),
        "word of a tap": (7.88, 4.69, 7.31),
        "output, average": (17.6, 15.1, 17.0),
        "output, maximum": (2.21, 1.19, 2.46),
        "average of an image with padding": (11.2, 8.0, 11.1),
    },
    "single": {
        "pair of products": (2.11, 1.39, 2.11),
        "pair of an output": (6.35, 4.39, 6.26),
        "output": (7.43, 4.21, 5.89),
        "word of a piece": (8.5, 4.29, 7.77),
        "product left over": (9.93, 4.75, 10.1),
        "row in one piece": (21.7, 9.42, 17.8),
        "tap": (16.0, 7.62, 14.4),
    },
    "winograd": {
        "step": (17.7, 9.19, 15.6),
        "large tile of two pairs": (801.0, 463.0, 725.0),
        "tile": (1640.0, 1080.0, 1660.0),
        "large tile of an output": (407.0, 274.0, 371.0),
        "four large pairs of weights": (566.0, 359.0, 548.0),
        "clip": (3.36, 2.35, 3.19),
        "shift": (0.0, 0.14, 0.0),
        "small tile of two pairs": (194.0, 123.0, 190.0),
        "small tile of an output": (131.0, 88.0, 119.0),
        "four small pairs of weights": (274.0, 171.0, 267.0),
    },
}
