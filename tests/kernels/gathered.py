"""Layers pixel by pixel, in any order, whose cycles ``bench.py`` measures: some of one to three
pixels, most of whose cycles are those of a call."""

from __future__ import annotations

from tests.kernels.layers import Layer

GATHERED = [
    *(
        Layer("cortex_m.gathered_conv2d", shape, channels, window=window, stride=stride)
        for shape, channels, window, stride in (
            ((16, 16, 16), 32, (3, 3), (1, 1)), ((96, 96, 3), 8, (3, 3), (2, 2)),
            ((49, 10, 1), 64, (10, 4), (2, 2)), ((25, 5, 64), 64, (1, 1), (1, 1)),
            ((48, 48, 8), 16, (1, 1), (1, 1)), ((24, 24, 32), 32, (1, 1), (1, 1)),
            ((7, 7, 96), 96, (1, 1), (1, 1)), ((8, 8, 64), 64, (3, 3), (2, 2)),
            ((10, 10, 5), 7, (5, 5), (1, 1)), ((1, 1, 64), 32, (1, 1), (1, 1)),
            ((1, 10, 64), 64, (1, 1), (1, 1)), ((1, 7, 96), 48, (1, 1), (1, 1)),
        )
    ),
    *(
        Layer(
            "cortex_m.gathered_conv2d", shape, channels, "conv", window, same=same, twice=twice,
            dilation=dilation, scattered=True,
        )
        for shape, channels, window, same, twice, dilation in (
            ((12, 10, 45), 45, (3, 3), True, False, 1), ((3, 12, 45), 45, (3, 3), False, False, 1),
            ((12, 10, 45), 45, (3, 3), True, True, 4), ((20, 10, 45), 45, (3, 3), True, False, 16),
            ((12, 12, 32), 32, (3, 3), True, True, 1), ((3, 11, 24), 16, (3, 3), False, True, 1),
            ((24, 24, 16), 32, (1, 1), True, True, 1), ((12, 12, 64), 64, (1, 1), True, True, 1),
            ((25, 5, 64), 64, (1, 1), True, False, 1), ((9, 9, 30), 40, (1, 1), True, False, 1),
        )
    ),
    *(
        Layer(
            "cortex_m.gathered_conv2d", shape, channels, "conv", window, same=False, twice=twice,
            scattered=True,
        )
        for shape, channels, window, twice in (
            ((3, 3, 16), 16, (3, 3), True), ((3, 4, 16), 16, (3, 3), True),
            ((3, 5, 32), 32, (3, 3), False), ((1, 2, 64), 64, (1, 1), False),
            ((1, 1, 16), 16, (1, 1), True),
        )
    ),
    *(
        Layer("cortex_m.gathered_depthwise", shape, kind="depthwise", window=window, stride=stride)
        for shape, window, stride in (
            ((48, 48, 8), (3, 3), (1, 1)), ((48, 48, 16), (3, 3), (2, 2)),
            ((24, 24, 32), (3, 3), (1, 1)), ((6, 6, 128), (3, 3), (1, 1)),
            ((25, 5, 64), (3, 3), (1, 1)), ((12, 12, 64), (3, 3), (2, 2)),
            ((16, 16, 12), (5, 5), (1, 1)), ((14, 14, 24), (7, 7), (1, 1)),
        )
    ),
    *(
        Layer("cortex_m.gathered_sum", shape, kind="plus", scattered=scattered)
        for shape, scattered in (
            ((16, 16, 32), False), ((8, 8, 64), True), ((10, 10, 45), True), ((20, 20, 6), False),
            ((1, 10, 45), True), ((1, 2, 16), True),
        )
    ),
    *(
        Layer("cortex_m.gathered_pool", shape, kind=kind, window=window, stride=stride, same=same)
        for kind in ("mean", "maximum")
        for shape, window, stride, same in (
            ((25, 5, 64), (25, 5), (25, 5), False), ((16, 16, 32), (2, 2), (2, 2), False),
            ((16, 16, 16), (3, 3), (1, 1), True),
        )
    ),
]  # fmt: skip
