"""An explicit pad in front of a convolution becomes the convolution's own padding.

Both put the real value 0 around an image, so nothing changes but the padded copy, which is gone:
MobileNetV2-224 as Keras exports it needs 1,505 kB instead of 2,452.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pad import Pad
from pipeline.passes._edit import consumers, edited


def apply(graph: Graph) -> Graph:
    readers = consumers(graph)
    pads: dict[str, Pad] = {}
    for op in graph.operators:
        convolved = all(isinstance(reader, Conv2d) for reader in readers[op.output])
        if isinstance(op, Pad) and op.output != graph.output and _spatial(op) and convolved:
            pads[op.output] = op
    changed: list[Operator] = []
    for op in graph.operators:
        if isinstance(op, Conv2d) and op.inputs[0] in pads:
            op = _padded(op, pads[op.inputs[0]])
        changed.append(op)
    return apply(edited(graph, changed)) if pads else graph  # there may be pads of pads


def _spatial(op: Pad) -> bool:
    return len(op.padding) == 3 and op.padding[2] == (0, 0)


def _padded(op: Conv2d, pad: Pad) -> Conv2d:
    (above, below), (before, behind) = pad.padding[:2]
    top, bottom, left, right = op.padding
    padding = (top + above, bottom + below, left + before, right + behind)
    return replace(op, inputs=pad.inputs, padding=padding)
