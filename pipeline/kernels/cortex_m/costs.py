"""Cycles of what fast kernels do, without flash waits, and bytes of code of those that make a row:
fitted to what simulated layers take (tests/kernels/cycles.json), and written by
``python -m tests.kernels.fit``."""

from functools import cache

from pipeline.kernels.work import Counts

CORES = ("cortex-m4", "cortex-m7", "cortex-m33")
"""Of our boards, those with SMLAD and its kin: Armv7E-M, Armv8-M with DSP."""


@cache
def costs(cpu: str, kernel: str) -> Counts:
    """Of a kernel, by its name in the set."""
    return {word: each[CORES.index(cpu)] for word, each in COSTS[kernel].items()}


CODE_BYTES = {
    "row_added": 74,
    "row_concat": 77,
    "row_conv2d": 1053,
    "row_dense": 503,
    "row_depthwise": 781,
    "row_depthwise_wide": 1022,
    "row_fused": 1137,
    "row_image": 1123,
    "row_pointwise": 1171,
    "row_pool": 304,
    "row_wide": 1546,
}

COSTS = {
    "accumulate": {
        "word of a pixel and a pair": (9.17, 4.84, 3.91),
        "output": (6.7, 4.86, 8.14),
        "narrow output": (14.0, 9.36, 16.8),
        "element of a window": (13.4, 6.79, 19.3),
        "tap": (1.96, 0.0, 4.68),
        "pair of products in registers": (2.73, 3.12, 2.78),
        "four sums of 8 bits": (13.9, 7.44, 13.7),
        "sum of 16 bits": (6.63, 1.58, 6.6),
        "element in registers": (3.4, 0.0, 2.32),
    },
    "conv2d": {
        "word of a pair of channels": (3.84, 0.0, 4.4),
        "the same, 3 or 4 pixels": (0.0, 0.0, 4.34),
        "word of a pixel and a pair": (6.94, 3.94, 4.55),
        "round": (8.72, 5.3, 10.1),
        "pair of channels": (20.1, 22.1, 0.0),
        "output": (7.32, 1.23, 9.52),
        "pixel": (3.87, 0.0, 0.0),
        "row of a window": (8.57, 2.96, 8.69),
        "word of a window": (8.49, 6.04, 8.46),
        "element left over": (20.4, 10.8, 17.1),
        "tap over an edge": (28.6, 10.8, 20.3),
        "element over an edge": (16.3, 8.05, 15.8),
        "clip": (2.88, 2.84, 3.03),
        "shift": (1.14, 1.22, 1.04),
    },
    "dense": {
        "word of a group": (0.447, 1.62, 1.44),
        "word of a channel": (3.13, 1.49, 4.26),
        "round": (56.6, 21.7, 0.0),
        "group": (0.0, 0.0, 76.9),
        "word of the input": (5.13, 2.5, 8.03),
        "call": (97.8, 110.0, 8.26),
        "clip": (5.3, 4.21, 4.02),
        "shift": (5.62, 2.82, 2.08),
    },
    "depthwise": {
        "pair of taps": (2.47, 1.51, 2.32),
        "output": (10.5, 7.41, 9.43),
        "output of stride 2": (9.88, 3.56, 9.34),
        "row of a channel": (12.4, 7.15, 12.3),
        "pixel widened": (14.4, 11.9, 13.8),
        "pair widened alone": (3.64, 3.05, 5.16),
        "word outside": (6.32, 3.33, 5.92),
        "group of channels": (5.12, 4.23, 10.4),
        "clip": (2.9, 2.34, 2.93),
        "shift": (0.0, 0.358, 0.0),
    },
    "gathered_conv2d": {
        "word of a pixel and a pair": (8.51, 4.58, 7.66),
        "pair of channels": (115.0, 48.5, 104.0),
        "word of a window": (13.8, 7.12, 12.4),
        "tap": (11.4, 6.3, 10.2),
        "pixel": (8.21, 35.0, 7.39),
    },
    "gathered_depthwise": {
        "product": (3.9, 2.49, 3.51),
        "output": (4.1, 3.08, 3.69),
        "pixel": (78.6, 37.3, 70.7),
        "product of a large window": (5.54, 3.39, 4.98),
    },
    "gathered_pool": {
        "word of a tap, average": (7.58, 3.37, 6.82),
        "output of averages": (20.6, 18.7, 18.6),
        "pixel": (194.0, 130.0, 174.0),
        "word of a tap, maximum": (9.07, 4.14, 8.16),
    },
    "ordered_conv2d": {
        "product": (1.4, 0.994, 1.26),
        "row of a window, two pixels and channels": (22.0, 15.6, 19.8),
        "output": (30.0, 21.3, 27.0),
    },
    "ordered_dense": {
        "product": (1.7, 1.21, 1.53),
        "output": (40.0, 28.4, 36.0),
    },
    "pool": {
        "word of a tap, average": (3.69, 2.1, 3.52),
        "output of averages": (16.4, 14.7, 16.7),
        "row of taps": (3.55, 1.39, 2.51),
        "pixel of an image with padding": (277.0, 179.0, 274.0),
        "word of a tap, maximum": (3.46, 2.15, 3.49),
    },
    "row_added": {
        "word": (4.66, 3.0, 4.95),
        "byte": (1.84, 1.57, 2.01),
        "channel": (10.5, 4.44, 8.35),
    },
    "row_concat": {
        "word": (3.23, 3.11, 3.35),
        "word of a short piece": (2.76, 2.79, 2.79),
        "long piece": (30.0, 15.4, 32.8),
        "call": (43.7, 26.3, 41.7),
    },
    "row_conv2d": {
        "word of a pixel and a pair": (4.21, 2.07, 3.66),
        "output": (10.2, 9.13, 8.92),
        "word of windows": (5.62, 3.6, 5.77),
        "clip": (2.35, 1.34, 2.39),
        "shift": (0.396, 1.2, 1.2),
    },
    "row_dense": {
        "word of an output": (5.92, 3.76, 6.43),
        "word of a group": (8.78, 3.23, 4.87),
        "output": (13.6, 12.2, 5.62),
    },
    "row_depthwise": {
        "output": (21.7, 14.6, 20.6),
        "group": (9.2, 4.41, 7.77),
        "group of stride 2": (19.3, 7.43, 18.5),
        "channel": (0.678, 0.0, 0.0),
        "pixel of a last block": (5.33, 4.76, 5.26),
        "group in blocks of two sizes": (15.3, 8.09, 9.87),
        "clip": (3.08, 2.18, 3.01),
        "shift": (0.982, 0.982, 0.943),
    },
    "row_depthwise_wide": {
        "pair of taps": (2.31, 1.42, 2.14),
        "output": (13.2, 11.8, 12.2),
        "word widened": (12.9, 7.2, 11.8),
        "word moved": (4.8, 3.3, 5.86),
        "byte widened": (2.34, 1.53, 1.56),
        "row widened": (4.88, 1.61, 5.21),
        "clip": (2.84, 2.56, 3.1),
        "shift": (2.29, 1.89, 2.09),
    },
    "row_fused": {
        "word of a pair of channels": (0.0642, 0.0, 0.302),
        "word of a pixel and a pair": (5.07, 2.29, 4.48),
        "round": (0.0, 5.06, 0.0),
        "output": (3.3, 0.0, 5.32),
        "call": (702.0, 818.0, 524.0),
        "clip": (0.0, 0.0582, 0.0),
        "shift": (0.961, 0.487, 0.716),
    },
    "row_image": {
        "word of a pixel and a pair": (3.67, 2.43, 3.52),
        "word of a pixel": (1.44, 0.104, 1.11),
        "output": (4.62, 3.45, 2.96),
        "word of windows": (8.58, 4.25, 5.18),
        "call": (2570.0, 1470.0, 2970.0),
        "clip": (2.2, 2.14, 3.65),
        "shift": (1.06, 1.12, 1.17),
    },
    "row_pointwise": {
        "word of a pair of channels": (0.539, 0.532, 4.31),
        "word of a pixel and a pair": (2.9, 1.85, 0.494),
        "word of a pixel": (0.856, 0.0, 1.68),
        "round": (15.2, 3.57, 14.3),
        "pair of channels": (71.0, 0.0, 67.3),
        "output": (0.0, 5.94, 0.0),
        "word of windows": (2.49, 3.89, 3.97),
        "call": (662.0, 0.0, 0.0),
        "clip": (3.17, 2.35, 3.69),
        "shift": (0.874, 0.729, 1.22),
    },
    "row_pool": {
        "word": (11.2, 4.69, 8.33),
        "byte": (1.63, 2.43, 2.2),
        "tap": (6.02, 4.7, 6.47),
        "output of averages": (12.4, 10.2, 11.9),
        "output of an image with padding": (20.9, 14.9, 20.0),
    },
    "row_wide": {
        "word of a pair of channels": (2.6, 0.823, 3.4),
        "word of a pixel and a pair": (1.9, 1.82, 1.12),
        "word of a pixel": (1.42, 0.0, 1.46),
        "round": (11.1, 4.27, 11.1),
        "output": (7.43, 8.73, 0.0),
        "word of windows": (5.59, 0.0, 7.03),
        "call": (379.0, 0.0, 1630.0),
        "clip": (3.45, 2.91, 2.9),
        "shift": (0.851, 1.3, 1.03),
    },
    "rows": {
        "product": (3.51, 2.09, 2.9),
        "output": (87.7, 44.5, 86.7),
    },
    "single": {
        "product": (3.78, 1.79, 3.27),
        "tap": (7.2, 6.33, 6.96),
        "output": (13.5, 14.8, 19.1),
    },
    "strips": {
        "pair of products": (1.86, 1.22, 1.83),
        "pair of an output": (5.59, 4.03, 5.5),
        "output": (22.8, 12.1, 22.7),
    },
    "sum": {
        "output": (17.7, 10.7, 17.2),
        "call": (59.5, 48.5, 63.5),
    },
    "winograd": {
        "step": (16.9, 8.62, 14.7),
        "round": (2.52, 2.4, 4.98),
        "large tile of two pairs": (876.0, 526.0, 835.0),
        "small tile of two pairs": (281.0, 167.0, 284.0),
        "the same, fewer than four channels": (436.0, 280.0, 327.0),
        "tile": (168.0, 0.0, 368.0),
        "large tile of an output": (487.0, 332.0, 436.0),
        "small tile of an output": (169.0, 120.0, 153.0),
        "four large pairs of weights": (572.0, 360.0, 552.0),
        "four small pairs of weights": (272.0, 172.0, 266.0),
        "clip": (2.55, 1.83, 2.68),
        "shift": (0.0, 0.278, 0.0),
    },
}
