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
        """Those that were fitted for ``cpu``."""
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
        "word of a pixel and a pair": (9.75, 4.92, 4.99),
        "output": (6.45, 4.86, 7.56),
        "word of a window": (10.6, 6.68, 40.8),
        "element left over": (14.4, 6.39, 22.5),
        "narrow output": (13.7, 9.7, 16.0),
        "pair of products in registers": (2.9, 3.12, 2.95),
        "four sums of 8 bits": (12.3, 7.44, 12.2),
        "sum of 16 bits": (2.45, 1.58, 2.45),
        "element in registers": (5.62, 0.0, 4.53),
    },
    "conv2d": {
        "word of a pixel and a pair": (6.86, 2.39, 4.61),
        "output": (10.9, 4.83, 9.97),
        "word of a window": (9.42, 6.12, 8.96),
        "element left over": (23.0, 12.4, 21.3),
        "call": (101.0, 289.0, 0.0),
        "word of a pair of channels": (3.53, 1.51, 4.96),
        "the same, 3 or 4 pixels": (0.858, 4.76, 4.2),
        "round": (7.68, 4.96, 7.7),
        "tap over an edge": (22.4, 10.2, 22.4),
        "clip": (2.63, 2.58, 3.06),
        "shift": (0.807, 1.05, 0.774),
        "odd element of a row": (21.8, 16.3, 20.1),
    },
    "dense": {
        "word of a channel": (4.91, 2.33, 4.42),
        "group": (50.1, 46.1, 74.5),
        "word of the input": (9.83, 6.23, 9.08),
        "output": (5.66, 2.98, 1.9),
        "clip": (3.33, 2.83, 2.91),
        "shift": (2.06, 0.673, 2.3),
    },
    "depthwise": {
        "pair of taps": (2.47, 1.49, 2.31),
        "output": (10.5, 6.66, 9.48),
        "output of stride 2": (9.82, 4.16, 9.25),
        "row of a channel": (12.2, 4.64, 11.8),
        "row of weights for few outputs": (7.8, 4.42, 6.66),
        "pixel widened": (15.0, 10.4, 14.5),
        "pair widened alone": (3.6, 3.7, 5.13),
        "word outside": (6.42, 4.09, 6.17),
        "clip": (2.9, 2.59, 2.94),
        "shift": (0.0, 0.384, 0.0),
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
        "pair of products": (2.12, 1.39, 2.09),
        "pair of an output": (6.3, 4.35, 6.31),
        "output": (7.06, 4.2, 5.6),
        "word of a piece": (8.54, 4.29, 7.8),
        "product left over": (9.98, 4.75, 10.1),
        "row in one piece": (21.6, 9.42, 17.7),
        "tap": (16.0, 7.62, 14.3),
    },
    "winograd": {
        "step": (17.6, 9.19, 15.5),
        "large tile of two pairs": (777.0, 450.0, 713.0),
        "tile": (1470.0, 851.0, 1480.0),
        "large tile of an output": (409.0, 293.0, 369.0),
        "four large pairs of weights": (568.0, 358.0, 547.0),
        "clip": (3.21, 2.02, 3.1),
        "small tile of two pairs": (202.0, 110.0, 215.0),
        "small tile of an output": (130.0, 95.0, 114.0),
        "four small pairs of weights": (273.0, 172.0, 266.0),
    },
}
