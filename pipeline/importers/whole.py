"""Operators that weigh or compare many elements, in the source's terms, for a ``Builder``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.importers import float_nodes as nodes
from pipeline.importers import float_whole, moving, resampling
from pipeline.importers.arithmetic import arithmetic
from pipeline.importers.builder import Builder
from pipeline.importers.float_graph import Shape, checked_size
from pipeline.importers.float_nodes import Floats, Pair
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Index, Value, ours, scattered, usual
from pipeline.importers.moves import Move, Run

Weighed = Callable[[int, int, int], Floats]
"""Weights of old indices for new ones along 0, rows, or 1, columns, from so many to so many."""


def resized(build: Builder, x: Value, shape: Shape, weighed: Weighed) -> Value:
    """(1, c, h, w) or (1, c, l) -> ``shape``."""
    if images := build.images(x):
        wide = (*shape[:2], 1, *shape[2:])
        return resized(build, images[0], wide, weighed).reshape(shape)
    old, new = ours(x.shape), ours(shape)
    if len(x.shape) != 4 or len(shape) != 4 or min(shape) < 1 or old[2] != new[2]:
        raise build.refuse(f"{list(x.shape)} to {list(shape)}: height and width can be resized")
    for axis in (0, 1):
        checked_size(f"{build.here}: its weights", (old[axis], new[axis]))
    rows, columns = (weighed(axis, old[axis], new[axis]) for axis in (0, 1))
    if all(np.array_equal(each, np.eye(*each.shape)) for each in (rows, columns)):
        return x
    image = build.usual(x)
    return build.made(float_whole.Resized, [image], shape, rows=rows, columns=columns)


def resampled(
    build: Builder, x: Value, shape: Shape, curve: str, way: str, rounding: str = "floor",
    scales: Sequence[float] = (), slope: float = -0.75,
) -> Value:  # fmt: skip
    """Resize to ``shape`` as ONNX says: by ``nearest`` neighbours, ``linear`` or ``cubic``.

    Args:
        scales: of the last axes, where they are not the sizes' ratios.
        slope: of cubic curves.
    """
    even = all(b % a == 0 for a, b in zip(x.shape, shape, strict=False))
    if curve == "nearest" and len(x.shape) == 4 and even and (way, rounding) in resampling.REPEATS:
        return enlarged(build, x, shape)

    def weighed(axis: int, extent: int, count: int) -> Floats:
        scale = scales[axis - 2 + len(scales)] if len(scales) > 1 - axis else 0.0
        at = resampling.places(extent, count, way, scale)
        if curve == "nearest":
            return resampling.nearest(extent, at, rounding)
        return (
            resampling.linear(extent, at) if curve == "linear"
            else resampling.cubic(extent, at, slope)
        )  # fmt: skip

    return resized(build, x, shape, weighed)


def enlarged(build: Builder, x: Value, shape: Shape) -> Value:
    """(1, c, h, w) -> ``shape``, whole multiples: nearest neighbours."""
    old, new = ours(x.shape), ours(shape)
    if len(old) != len(new):
        raise build.refuse(f"{list(x.shape)} to {list(shape)}: it has other axes")
    runs = [Run(0, 1, a, b // a) for a, b in zip(old, new, strict=True)]
    moved = Move.along(old, runs).fields
    return Value(build.add(nodes.Rearranged, [build.usual(x)], **moved), usual(shape))


def transposed(
    build: Builder, x: Value, weights: Floats, bias: Floats | None, shape: Shape,
    groups: int = 1, steps: Floats | None = None, **fields: Pair,
) -> Value:  # fmt: skip
    """(1, c, h, w) * (c, c_out / groups, kh, kw) -> ``shape``; of (1, c, l) with ``fields`` of
    height 1.

    Args:
        steps: as weights have them, one or c_out / groups of them.
    """
    if len(x.shape) == 3:
        wide, kernels = (*shape[:2], 1, *shape[2:]), weights[:, :, None]
        found = transposed(build, x.image, kernels, bias, wide, groups, steps, **fields)
        return found.reshape(shape)
    alike = len(x.shape) == weights.ndim == 4 and len(weights) == x.shape[1]
    if not alike or len(weights) % groups:
        raise build.refuse(f"a transposed convolution of {list(x.shape)} with {weights.shape}")
    depth, outs, *taps = weights.shape
    grouped = weights.reshape(groups, depth // groups, outs, *taps).transpose(0, 2, 3, 4, 1)
    many = np.zeros(groups * outs) if bias is None else bias
    each = steps if steps is None or steps.size == 1 else np.tile(steps.reshape(-1), groups)
    return build.made(
        float_whole.TransposedConvolution, [build.usual(x)], shape, size=shape[2:],
        weights=grouped.reshape(groups * outs, *taps, depth // groups), bias=many, steps=each,
        groups=groups, **fields,
    )  # fmt: skip


def joined(build: Builder, parts: Sequence[Value | Floats], axis: int) -> Value:
    """Concatenate activations and constants along ``axis``."""
    first = next((part for part in parts if isinstance(part, Value)), None)
    if first is None or any(len(part.shape) != len(first.shape) for part in parts):
        raise build.refuse("its inputs have different numbers of axes")
    beside = (p if isinstance(p, Value) else _constant(build, p, first, axis) for p in parts)
    return build.concatenation(list(beside), axis)


def _constant(build: Builder, values: Floats, x: Value, axis: int) -> Value:
    """``values``, whatever ``x`` is."""
    places = np.arange(values.shape[axis]) % x.shape[axis]
    like = moving.chosen(build, x, axis, places.tolist())
    if like.shape != values.shape:
        raise build.refuse(f"joins {list(x.shape)} and {list(values.shape)}")
    return build.scale(like, np.zeros(()), values)


REDUCTIONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "Mean": ((), ""),
    "Sum": ((), "affine"),
    "Max": ((), ""),
    "Min": ((), ""),
    "L1": (("abs",), "affine"),
    "L2": (("power", "2"), "sqrt"),
    "SumSquare": (("power", "2"), "affine"),
    "LogSumExp": (("exp",), "log"),
}
"""By ONNX's names: a function and its constant of each element, and one of their mean or extreme,
the mean being multiplied by their number first where that isn't empty."""


def reduced(build: Builder, kind: str, x: Value, axes: Sequence[int]) -> Value:
    """Reduce over ``axes``, which are left out."""
    (first, *constants), last = REDUCTIONS[kind][0] or ("",), REDUCTIONS[kind][1]
    if first:
        x = build.function(x, Composed.of(first, *map(float, constants)))
    pools = {"Max": nodes.MaxPool, "Min": nodes.MinPool}
    result = build.reduced(pools.get(kind, nodes.AveragePool), x, axes)
    if not last:
        return result
    scaled = Composed.of("affine", prod(x.shape) / prod(result.shape), 0.0)
    body = scaled if last == "affine" else Composed.of(last).after(scaled)
    return build.function(result, body)


def product(build: Builder, a: Value, b: Value) -> Value:
    """(…, n, k) * (…, k, m) -> (…, n, m), two activations; what is before broadcasts."""
    if min(len(a.shape), len(b.shape)) < 2 or a.shape[-1] != b.shape[-2]:
        raise build.refuse(f"a product of {list(a.shape)} and {list(b.shape)}")
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count, names, turned = prod(lead), list[str](), list[bool]()
    for side in (a, b):
        if prod(side.shape[:-2]) not in (1, count):
            side = moving.expanded(build, side, (*lead, *side.shape[-2:]))
        stack = side.reshape((prod(side.shape[:-2]), *side.shape[-2:]))
        other = stack.transpose((0, 2, 1))
        flat = other.index.reshape(-1)
        turned.append(stack.shape[1:] != (1, 1) and np.array_equal(flat, np.arange(flat.size)))
        used = other if turned[-1] else stack
        names.append(build.ordered(used, np.arange(flat.size).reshape(used.shape), used.shape))
    inputs = list(dict.fromkeys(names))
    given: dict[str, Any] = {"operands": tuple(map(inputs.index, names)), "turned": tuple(turned)}
    made = build.add(float_whole.MatrixProduct, inputs, **given)
    shape = (*lead, a.shape[-2], b.shape[-1])
    return Value(made, np.arange(prod(shape)).reshape(shape))


def attention(
    build: Builder, q: Value, k: Value, v: Value, scale: float | None = None,
    mask: NDArray[Any] | None = None, causal: bool = False,
) -> Value:  # fmt: skip
    """softmax(scale q k' + mask) v, (…, n, d) each: Vaswani et al., Attention is all you need
    (2017). Of several heads fewer may be of ``k`` and ``v``, each of which some of ``q`` share.

    Args:
        mask: what is added, or of truth values what is seen; ``causal``: what isn't ahead.
    """
    if len(q.shape) > 3 and 1 < k.shape[1] < q.shape[1]:
        shared = np.arange(k.shape[1]).repeat(q.shape[1] // k.shape[1]).tolist()
        k, v = (moving.chosen(build, each, 1, shared) for each in (k, v))
    turned = k.transpose((*range(len(k.shape) - 2), len(k.shape) - 1, len(k.shape) - 2))
    scores = product(build, q, turned)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    scaled = build.function(scores, Composed.of("affine", factor, 0.0))
    if causal:
        mask = np.tri(*scores.shape[-2:], dtype=bool)
    if mask is not None:
        added = np.where(mask, 0.0, -inf) if mask.dtype == bool else mask
        scaled = arithmetic(build, "add", scaled, added)
    return product(build, build.softmax(scaled, len(scores.shape) - 1), v)


def normalized(
    build: Builder, x: Value, together: Index, *, centred: bool = True, epsilon: float = 0.0,
    total: bool = False,
) -> Value:  # fmt: skip
    """``x``, normalized where ``together``, of its shape, has the same number; numbers begin at 0.

    Where what is normalized together lies at even distances in memory, nothing is moved.
    """
    count, size = int(together.max()) + 1, x.index.size
    numbers = scattered(together.astype(float), x.index)
    found = None
    for outer in (n for n in range(1, size // count + 1) if size // count % n == 0):
        cube = numbers.reshape(outer, count, -1)
        if (cube == cube[:1, :, :1]).all():
            axes = tuple(axis for axis in (0, 2) if cube.shape[axis] > 1) or (2,)
            found = (build.shaped(x.tensor, cube.shape), axes, x.index)
            break
    if found is None:
        order = np.empty(size, np.int64)
        order[np.argsort(together.reshape(-1), kind="stable")] = np.arange(size)
        index, shape = order.reshape(x.shape), (1, count, size // count)
        found = (build.ordered(x, index, shape), (2,), index)
    tensor, axes, index = found
    given: dict[str, Any] = {"centred": centred, "epsilon": epsilon, "total": total}
    return Value(build.add(float_whole.Normalized, [tensor], axes=axes, **given), index)


def over_axes(build: Builder, x: Value, axes: Sequence[int], **given: Any) -> Value:
    """Normalize over ``axes`` of the source."""
    kept = [axis for axis in range(len(x.shape)) if axis not in {a % len(x.shape) for a in axes}]
    extents = [x.shape[axis] if axis in kept else 1 for axis in range(len(x.shape))]
    numbers = np.arange(prod(extents)).reshape(extents)
    return normalized(build, x, np.broadcast_to(numbers, x.shape), **given)


def in_groups(build: Builder, x: Value, groups: int, epsilon: float) -> Value:
    """Normalize the channels of each of so many groups, of all places."""
    if len(x.shape) < 2 or groups < 1 or x.shape[1] % groups:
        raise build.refuse(f"channels of {list(x.shape)} are not {groups} groups")
    numbers = np.arange(x.shape[1]) // (x.shape[1] // groups)
    each = numbers.reshape(1, -1, *(1 for _ in x.shape[2:]))
    return normalized(build, x, np.broadcast_to(each, x.shape), epsilon=epsilon)


def affine(build: Builder, x: Value, factor: Floats | None, offset: Floats | None) -> Value:
    """``factor * x + offset``, which broadcast to ``x``; None for none."""
    if factor is None and offset is None:
        return x
    one, zero = np.ones(()), np.zeros(())
    return build.scale(x, one if factor is None else factor, zero if offset is None else offset)


def each_channel(build: Builder, x: Value, factor: Floats | None, offset: Floats | None) -> Value:
    """``affine`` of one number for each channel."""
    shape = (-1, *(1 for _ in x.shape[2:]))
    a, b = (None if each is None else each.reshape(shape) for each in (factor, offset))
    return affine(build, x, a, b)


def places(build: Builder, x: Value, axis: int, least: bool = False) -> Value:
    """Find where along ``axis`` of the source the greatest element is, or the least; the axis is
    left out."""
    rank = len(x.shape)
    order = (*(d for d in range(rank) if d != axis), axis)
    moved = x.transpose(order)
    rows, kept = prod(moved.shape[:-1]), moved.shape[:-1]
    numbers = np.broadcast_to(np.arange(rows).reshape(*kept, 1), moved.shape)
    held = scattered(numbers.astype(float), moved.index).reshape(build.shapes[x.tensor])
    for here in range(held.ndim):  # as it lies, if it is an axis there
        if held.shape[here] == moved.shape[-1] and (held == held.take([0], here)).all():
            name = build.add(float_whole.Places, [x.tensor], axis=here, least=least)
            index = np.argsort(held.take(0, here).reshape(-1), kind="stable")
            return Value(name, index.reshape(kept or (1,)))
    plain = np.arange(moved.index.size).reshape(moved.shape)
    tensor = build.ordered(moved, plain, (rows, moved.shape[-1]))
    name = build.add(float_whole.Places, [tensor], axis=1, least=least)
    return Value(name, np.arange(rows).reshape(kept))
