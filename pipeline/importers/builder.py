"""Builder shared by the PyTorch and ONNX importers: operators in the source's terms to float nodes.

Methods take and give ``Value``s in the source's shapes, (1, c, h, w) for images, and weights in the
source's order, (c_out, c_in / groups, kh, kw).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError
from pipeline.graph.state import State
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph, Node, Shape
from pipeline.importers.float_nodes import Floats, Padding, Pair
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Index, Moves, Value, is_usual, ours, scattered, usual
from pipeline.importers.moves import Move, flanked, moved, placed

SIGNAL_AXES = {1: 1, 2: 3}
"""Axes of a signal (1, c, l), in the image (1, c, 1, l)."""

MOST = 2000
"""Operators."""


class Builder:
    """Collects nodes. ``here`` is what messages call the operator in hand; ``label`` names it.

    ``moving``: elements may change their order in memory, which takes an operator; ``step``: what
    recurrent operators keep stays from one call to the next.
    """

    def __init__(self, name: str, moving: bool = False, step: bool = False) -> None:
        self.name, self.moving, self.step = name, moving, step
        self.here = ""
        self.label = ""
        self.shapes: dict[str, Shape] = {}
        self.nodes: list[Node] = []
        self.given: dict[str, Affine] = {}
        self.states: list[State] = []

    def graph(
        self, sources: Sequence[str], results: Sequence[Value], signals: bool = True
    ) -> FloatGraph:
        """Return the finished graph; its outputs are as the source orders them, but channels last
        of images, and of ``signals`` (1, c, l) where memory has them so."""
        self.here = f"{self.here}, the output"
        outputs = tuple(dict.fromkeys(self._final(result, signals) for result in results))
        if not self.nodes:
            raise ThimbleError(f"{self.name}: the network has no operator")
        kept, alive = tuple(self.states), list[Node]()
        read = {*outputs, *(each.made for each in kept)}
        for node in reversed(self.nodes):  # some of several results may be of no use
            if node.output in read:
                alive.append(node)
                read.update(node.inputs)
        read |= {*sources, *(each.read for each in kept)}
        shapes = {name: shape for name, shape in self.shapes.items() if name in read}
        given = {name: affine for name, affine in self.given.items() if name in read}
        ends = tuple(sources), outputs
        return FloatGraph(self.name, shapes, tuple(alive[::-1]), *ends, given, states=kept)

    def state(self, read: Value, result: Value) -> None:
        """Let ``read`` be the ``result`` of the call before: what an operator of its own makes, in
        the layout and the quantization of ``read``."""
        self.here = f"the state {read.tensor}"
        if result.shape != read.shape:
            raise self.refuse(
                f"it is {list(read.shape)}, and {list(result.shape)} for the next call: one shape "
                "is needed (model.state)"
            )
        if not any(read.tensor in node.inputs for node in self.nodes):
            raise self.refuse("nothing reads it: choose other pairs of model.state, or [none]")
        made = self.ordered(result, read.index, self.shapes[read.tensor])
        known = self.given.get(read.tensor, self.given.get(made))
        if known:
            self.given[read.tensor] = known
        own = any(node.output == made for node in self.nodes)
        if not own or made in {of.made for of in self.states} or known != self.given.get(made):
            made = self.add(nodes.Function, [made], body=Composed.of("identity"))
            if known:
                self.given[made] = known
        self.states.append(State(read.tensor, made))

    def _final(self, result: Value, signals: bool) -> str:
        plain = np.arange(result.index.size)
        turned = result.transpose((0, 2, 1)) if len(result.shape) == 3 else result
        if signals and not is_usual(result) and (turned.index.reshape(-1) == plain).all():
            return self.ordered(turned, turned.index, turned.shape[1:])  # (1, h, w, c) there, too
        return self.usual(result)

    def refuse(self, reason: str) -> ThimbleError:
        return ThimbleError(f"{self.here}: {reason}")

    def source(self, name: str, shape: Shape, last: bool) -> Value:
        """Return the network's input; ``last`` when the source itself has images channels last, or
        has a signal (1, c, l), which is then stored as an image of height 1: (1, l, c)."""
        order = np.arange(prod(shape), dtype=np.int64)
        if not last:
            stored, index = ours(shape), usual(shape)
        elif len(shape) == 3:
            stored = (1, shape[2], shape[1])
            index = order.reshape(stored).transpose(0, 2, 1)
        else:
            stored, index = shape[1:], order.reshape(shape)
        self.shapes[name] = stored
        return Value(name, index)

    def usual(self, value: Value) -> str:
        """Return the tensor that has ``value`` in its usual layout."""
        return self.ordered(value, value.index if is_usual(value) else usual(value.shape),
                            ours(value.shape))  # fmt: skip

    def ordered(self, value: Value, index: Index, shape: Shape) -> str:
        """``value`` as a tensor of ``shape`` whose elements are in the order of ``index``."""
        tensor = value.tensor
        if value.index is not index and not (value.index == index).all():
            return self.transposed(value, index, shape)
        return self.shaped(tensor, shape)

    def shaped(self, tensor: str, shape: Shape) -> str:
        if self.shapes[tensor] == shape:
            return tensor
        return self.add(nodes.Reshaped, [tensor], "reshape", shape=shape)

    def transposed(self, value: Value, index: Index, shape: Shape) -> str:
        """Return a tensor of ``shape`` whose elements are in the order of ``index``."""
        places = np.empty(index.size, np.int64)
        places[index.reshape(-1)] = value.index.reshape(-1)
        moves = moved(places, index.size) if self.moving else None
        if moves is None:
            raise Moves(
                f"{self.here}: a transposition or reshape that moves elements is not supported: "
                f"it would need {list(value.shape)} in another order in memory"
            )
        return placed(self, value.tensor, moves, shape)

    def rearranged(self, tensor: str, move: Move) -> str:
        return self.add(nodes.Rearranged, [tensor], "moved", **move.fields)

    def joined(self, tensors: Sequence[str], axis: int) -> str:
        return self.add(nodes.Concatenation, tensors, "joined", axis=axis)

    def images(self, *signals: Value) -> list[Value]:
        """Signals (1, c, l) as images of height 1, where memory has them all so."""
        found = [x.image for x in signals if len(x.shape) == 3]
        return found if len(found) == len(signals) and all(map(is_usual, found)) else []

    def add(self, kind: type[Node], inputs: Sequence[str], what: str = "", **fields: Any) -> str:
        """Append a node; the name of its output, which is also the node's."""
        base = f"{self.label}.{what}" if what else self.label
        name, count = base, 1
        while name in self.shapes:
            count += 1
            name = f"{base}.{count}"
        node = kind(name=name, inputs=tuple(inputs), output=name, where=self.here, **fields)
        shape = node.infer([self.shapes[each] for each in inputs])
        if not 1 <= len(shape) <= 3:
            raise self.refuse(f"a tensor of {list(shape)}: up to three axes and a batch of 1 work")
        self.shapes[name] = shape
        self.nodes.append(node)
        if len(self.nodes) > MOST:
            raise ThimbleError(f"{self.name}: has more than {MOST:,} operators")
        return name

    def made(self, kind: type[Node], inputs: Sequence[str], shape: Shape, **fields: Any) -> Value:
        """Return a node whose output is the source's tensor of ``shape``, in the usual layout."""
        name = self.add(kind, inputs, **fields)
        if self.shapes[name] != ours(shape):
            raise self.refuse(f"makes {list(self.shapes[name])}, expected {list(ours(shape))}")
        return Value(name, usual(shape))

    def convolution(
        self, x: Value, weights: Floats, bias: Floats | None, shape: Shape, **fields: Any
    ) -> Value:
        """(1, c, h, w) * (c_out, c / groups, kh, kw); ``fields`` of the node. Signals (1, c, l)
        are of height 1."""
        if len(x.shape) == 3:
            wide = (*shape[:2], 1, *shape[2:])
            made = self.convolution(x.image, weights[:, :, None], bias, wide, **fields)
            return made.reshape(shape)
        offsets = np.zeros(len(weights)) if bias is None else bias
        given = {"weights": weights.transpose(0, 2, 3, 1), "bias": offsets, **fields}
        return self.made(nodes.Convolution, [self.usual(x)], shape, **given)

    def linear(
        self, x: Value, weights: Floats, bias: Floats | None, steps: Floats | None = None
    ) -> Value:
        """(1, inputs) * (c_out, inputs): in whatever order memory has the inputs.

        (1, positions, inputs) is a convolution of 1x1 over the positions.
        """
        outputs, count = weights.shape
        offsets = np.zeros(outputs) if bias is None else bias
        if x.shape[-1] != count:
            raise self.refuse(f"weights for {count} inputs, but there are {x.shape[-1]}")
        if prod(x.shape) == count:
            stored = self.shapes[x.tensor]
            reordered = scattered(weights, x.index.reshape(-1)).reshape(outputs, *stored)
            name = self.add(nodes.Linear, [x.tensor], weights=reordered, bias=offsets, steps=steps)
            return Value(name, np.arange(outputs).reshape(*x.shape[:-1], outputs))
        rows = prod(x.shape[:-1])
        tensor = self.ordered(x, np.arange(prod(x.shape)).reshape(x.shape), (1, rows, count))
        pointwise = weights[:, None, None, :]
        name = self.add(nodes.Convolution, [tensor], weights=pointwise, bias=offsets, steps=steps)
        return Value(name, np.arange(rows * outputs).reshape(*x.shape[:-1], outputs))

    def scale(self, x: Value, factor: Floats, offset: Floats, given: Affine | None = None) -> Value:
        """``factor * x + offset``, constants that broadcast to ``x`` in the source's shapes.

        One number, one a channel, or one an element, as the constants vary in memory's order;
        ``given`` is the constant's quantization where the source has one.
        """
        shape = self.shapes[x.tensor]
        a, b = (self.stored(each, x) for each in (factor, offset))
        if np.ptp(a) == 0 and np.ptp(b) == 0:
            return self.function(x, Composed.of("affine", a.flat[0], b.flat[0]))
        tensor = x.tensor
        if all((each == each.reshape(-1, shape[-1])[0]).all() for each in (a, b)):
            rows = [each.reshape(-1, shape[-1])[0] for each in (a, b)]
            return Value(self.add(nodes.Scale, [tensor], factor=rows[0], offset=rows[1]), x.index)
        if (a != 1).any():
            tensor = self.add(nodes.Product, [tensor], "product", constant=a, constant_given=given)
        if (b != 0).any():
            tensor = self.add(nodes.Sum, [tensor], "sum", constant=b, constant_given=given)
        return Value(tensor, x.index)

    def slopes(self, x: Value, slopes: Floats) -> Value:
        """x >= 0 as it is, others times slopes that broadcast to ``x`` in the source's shapes."""
        if slopes.size and np.ptp(slopes) == 0:
            return self.function(x, Composed.of("leaky_relu", slopes.flat[0]))
        shape, held = self.shapes[x.tensor], self.stored(slopes, x)
        rows = held.reshape(-1, shape[-1])
        if (rows == rows[0]).all():
            held = rows[:1].reshape(*(1 for _ in shape[1:]), shape[-1])
        return Value(self.add(nodes.Slopes, [x.tensor], "prelu", constant=held), x.index)

    def stored(self, constant: Floats, x: Value) -> Floats:
        """Return a constant that broadcasts to ``x``, in the layout of its tensor."""
        try:
            full = np.broadcast_to(constant, x.shape)
        except ValueError:
            raise self.refuse(
                f"a constant of shape {list(constant.shape)} with {list(x.shape)}: only constants "
                "that broadcast to the activation are supported"
            ) from None
        return scattered(full, x.index).reshape(self.shapes[x.tensor])

    def binary(self, kind: type[nodes.Binary], a: Value, b: Value) -> Value:
        """Elementwise, with numpy's broadcasting."""
        try:
            shape = np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            raise self.refuse(f"{list(a.shape)} and {list(b.shape)} do not broadcast") from None
        same = self.shapes[a.tensor] == self.shapes[b.tensor] and a.shape == b.shape
        if same and (a.index is b.index or (a.index == b.index).all()):
            return Value(self.add(kind, [a.tensor, b.tensor]), a.index)
        if images := self.images(a, b):
            return self.binary(kind, *images).reshape(shape)
        rank = len(shape)
        first, second = (
            self.usual(each.reshape((1,) * (rank - len(each.shape)) + each.shape))
            for each in (a, b)
        )
        return self.made(kind, [first, second], shape)

    def function(self, x: Value, body: Composed) -> Value:
        return Value(self.add(nodes.Function, [x.tensor], body=body), x.index)

    def pool(
        self, kind: type[nodes.Pool], x: Value, shape: Shape, kernel: Pair, stride: Pair,
        padding: Padding, dilation: Pair = (1, 1),
    ) -> Value:  # fmt: skip
        """(1, c, h, w) -> ``shape``. What would begin beyond the padding is left out."""
        if len(x.shape) != 4:
            raise self.refuse(f"pooling of images is supported, not of {list(x.shape)}")
        image = self.usual(x)
        sizes = ours(x.shape)
        if kind is nodes.AveragePool and not any(padding) and kernel == sizes[:2]:
            return self.made(nodes.GlobalMean, [image], shape)
        fields = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        return self.made(kind, [image], shape, **fields)

    def reduced(self, kind: type[nodes.Pool], x: Value, axes: Sequence[int]) -> Value:
        """Return the mean, the greatest or the least over ``axes`` of the source, left out."""
        rank, over = len(x.shape), sorted({axis % len(x.shape) for axis in axes})
        kept = [axis for axis in range(1, rank) if axis not in over]
        if not over or over[0] == 0:
            raise self.refuse(f"over axes {list(axes)[:8]} of {list(x.shape)}: not the batch's")
        if x.shape[0] != 1:
            raise self.refuse(f"of {list(x.shape)}: only where axis 0, the batch, is 1")
        shape = tuple(x.shape[axis] for axis in kept)
        if rank == 4 and set(over) <= {2, 3}:
            image = x
            window = tuple(x.shape[axis] if axis in over else 1 for axis in (2, 3))
        else:
            extents = tuple(x.shape[axis] for axis in over)
            window = extents if len(over) == 2 else (1, prod(extents))
            image = x.transpose((0, *kept, *over)).reshape((1, prod(shape), *window))
        kernel = pair(window)
        counts = (n // taps for n, taps in zip(image.shape[2:], kernel, strict=True))
        made = (1, image.shape[1], *counts)
        return self.pool(kind, image, made, kernel, kernel, (0, 0, 0, 0)).reshape((1, *shape))

    def concatenation(self, parts: Sequence[Value], axis: int) -> Value:
        """Along ``axis`` of the source."""
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        if axis == 0 and len(shape) > 1:
            rows = [part.reshape((1, part.index.size)) for part in parts]
            return self.concatenation(rows, 1).reshape(tuple(shape))
        if images := self.images(*parts):
            return self.concatenation(images, SIGNAL_AXES[axis]).reshape(tuple(shape))
        if len(shape) > 4:
            flat = (np.arange(part.index.size).reshape(part.shape) for part in parts)
            pairs = zip(parts, flat, strict=True)
            each = [self.ordered(part, row, flanked(part.shape, axis)) for part, row in pairs]
            made = self.shaped(self.joined(each, 1), ours(tuple(shape)))
            return Value(made, usual(tuple(shape)))
        tensors = [self.usual(part) for part in parts]
        return self.made(
            nodes.Concatenation, tensors, tuple(shape), axis=our_axis(len(shape), axis)
        )

    def softmax(
        self, x: Value, axis: int, kind: type[nodes.SoftmaxOver] = nodes.SoftmaxOver
    ) -> Value:
        """Over any axis, or its logarithm."""
        moved = x.transpose((*(d for d in range(len(x.shape)) if d != axis), axis))
        if prod(x.shape) == x.shape[axis]:
            tensor = self.ordered(
                moved.reshape((1, prod(x.shape))), usual((1, prod(x.shape))), (prod(x.shape),)
            )
            name = self.add(kind, [tensor])
            return Value(name, np.arange(prod(x.shape)).reshape(x.shape))
        plain = np.arange(moved.index.size).reshape(moved.shape)
        if len(moved.shape) - (moved.shape[0] == 1) > 3 or not (moved.index == plain).all():
            rows = (prod(moved.shape[:-1]), moved.shape[-1])
            name = self.add(kind, [self.ordered(moved, plain, rows)])
            back = (*range(axis), len(x.shape) - 1, *range(axis, len(x.shape) - 1))
            return Value(name, plain).transpose(back)
        shape = (*moved.shape[moved.shape[0] == 1 : -1], moved.shape[-1])
        tensor = self.ordered(moved, moved.index, shape)
        name = self.add(kind, [tensor])
        return Value(name, x.index)

    def mark(self, x: Value, affine: Affine) -> Value:
        """``x`` as the source quantizes it: its tensor's quantization, or a change of it."""
        known = self.given.setdefault(x.tensor, affine)
        if known == affine:
            return x
        again = self.function(x, Composed.of("identity"))
        self.given[again.tensor] = affine
        return again


def our_axis(rank: int, axis: int) -> int:
    """Return the axis here of the source's ``axis``, which is not the batch."""
    return {1: 2, 2: 0, 3: 1}[axis] if rank == 4 else axis - 1


def pair(values: Sequence[int]) -> Pair:
    first, *rest = (int(value) for value in values)
    return first, rest[0] if rest else first


def array(values: npt.ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)
