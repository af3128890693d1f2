"""Concatenation, slices, padding, reshaping, softmax, and what does nothing, of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import numpy as np

from pipeline.importers import float_nodes as nodes
from pipeline.importers import whole
from pipeline.importers.layout import Value
from pipeline.importers.moving import chosen, expanded, padded, tiled
from pipeline.importers.torch_call import Call, Table, floats, required


def item(call: Call) -> Value:
    """Return one of several results. Of those that are for training only the first is made."""
    found: Value | list[Value] = call.args[0]
    number: int = call.args[1]
    results = [found] if isinstance(found, Value) else found
    if number >= len(results):
        raise call.builder.refuse("only the first result of an operator is supported")
    return results[number]


def slice_(call: Call) -> Value:
    axis, extent = place(call, call.get(1, "dim", 0))
    start, stop = call.get(2, "start"), call.get(3, "end")
    whole = range(extent)[slice(start, stop, call.get(4, "step", 1))]
    return chosen(call.builder, call.x, axis, whole)


def select(call: Call) -> Value:
    axis, extent = place(call, call.get(1, "dim"))
    start = call.get(2, "index") % extent
    return chosen(call.builder, call.x, axis, [start]).reshape(call.shape)


def split(call: Call, name: str) -> list[Value]:
    """Parts of given sizes, or of one, or so many; the last may be shorter."""
    axis, extent = place(call, call.get(2, "dim", 0))
    given = call.get(1, name)
    each = -(-extent // given) if name == "chunks" else given
    listed = isinstance(each, Sequence)
    starts = [0, *accumulate(each)][:-1] if listed else range(0, extent, each)
    pairs = zip(starts, [*starts[1:], extent], strict=True)
    return [chosen(call.builder, call.x, axis, range(start, end)) for start, end in pairs]


def place(call: Call, dim: int) -> tuple[int, int]:
    """Return the axis and its extent."""
    axis = dim % len(call.x.shape)
    return axis, call.x.shape[axis]


def cat(call: Call) -> Value:
    parts = [p if isinstance(p, Value) else floats(p) for p in call.get(0, "tensors")]
    return whole.joined(call.builder, parts, call.get(1, "dim", 0) % len(call.shape))


def pad(call: Call) -> Value:
    """aten.pad, aten.constant_pad_nd: (before, after) from the last axis on."""
    widths = list(call.get(1, "pad"))
    mode, value = "constant", call.get(2, "value", 0)
    if isinstance(value, str):
        mode, value = value, call.get(3, "value", 0)
    mode = call.kwargs.get("mode", mode)
    mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    pairs = [(widths[i], widths[i + 1]) for i in range(0, len(widths), 2)]
    rank = len(call.x.shape)
    around = [(0, 0)] * (rank - len(pairs)) + pairs[::-1]
    return padded(call.builder, call.x, around, mode, float(value or 0))


def reshape(call: Call) -> Value:
    return call.x.reshape(call.shape)


def permute(call: Call) -> Value:
    rank = len(call.x.shape)
    return call.x.transpose(tuple(axis % rank for axis in call.get(1, "dims")))


def transpose(call: Call) -> Value:
    rank = len(call.x.shape)
    axes = list(range(rank))
    first, second = (call.get(1, "dim0", 0) % rank, call.get(2, "dim1", 1) % rank)
    axes[first], axes[second] = axes[second], axes[first]
    return call.x.transpose(tuple(axes))


def softmax(call: Call, kind: type[nodes.SoftmaxOver] = nodes.SoftmaxOver) -> Value:
    return call.builder.softmax(call.x, call.get(1, "dim") % len(call.x.shape), kind)


def same(call: Call) -> Value:
    """Import what changes nothing when a trained network runs: dropout, copies."""
    return call.x.reshape(call.shape)


def resized(call: Call, curve: str, form: str) -> Value:
    """aten.upsample_*: (input, output_size, align_corners, scales), without corners of nearest."""
    first = 2 + (curve != "nearest")
    scales = call.get(first, "scale_factors") if form == "vec" else call.args[first:]
    given = [float(s) for s in scales or () if s]
    aligned = first == 3 and call.get(2, "align_corners")
    way = "align_corners" if aligned else "half_pixel" if first == 3 else "asymmetric"
    return whole.resampled(call.builder, call.x, call.shape, curve, way, scales=given)


CURVES = {
    "nearest1d": "nearest", "nearest2d": "nearest", "linear1d": "linear", "bilinear2d": "linear",
    "bicubic2d": "cubic",
}  # fmt: skip
"""Lines or curves between neighbours, by what ATen calls them."""


def indexed(call: Call) -> Value:
    """aten.index_select(x, axis, indices), aten.index(x, [None, …, indices])"""
    if len(call.args) > 2:
        axis, found = place(call, call.args[1])[0], required(call, 2, "index")
    else:
        lists = call.args[1]
        given = [axis for axis, each in enumerate(lists) if each is not None]
        if len(given) != 1 or isinstance(lists[given[0]], Value):
            raise call.builder.refuse("constant indices along one axis are supported")
        axis, found = given[0], floats(lists[given[0]])
    indices = (found.reshape(-1).astype(int) % call.x.shape[axis]).tolist()
    return chosen(call.builder, call.x, axis, indices).reshape(call.shape)


def repeated(call: Call) -> Value:
    """aten.repeat_interleave(x, n, dim): each element n times."""
    count, dim = call.get(1, "repeats"), call.get(2, "dim")
    if dim is None or not isinstance(count, int):
        raise call.builder.refuse("elements are repeated along an axis, all as often")
    axis, extent = place(call, dim)
    return chosen(call.builder, call.x, axis, np.arange(extent).repeat(count).tolist())


def flipped(call: Call) -> Value:
    x = call.x
    for dim in call.get(1, "dims"):
        axis = dim % len(x.shape)
        x = chosen(call.builder, x, axis, range(x.shape[axis])[::-1])
    return x


def rolled(call: Call) -> Value:
    x = call.x
    for shift, dim in zip(call.get(1, "shifts"), call.get(2, "dims", []), strict=True):
        axis = dim % len(x.shape)
        x = chosen(call.builder, x, axis, np.roll(np.arange(x.shape[axis]), shift).tolist())
    return x


def stacked(call: Call) -> Value:
    parts, axis = call.get(0, "tensors"), call.get(1, "dim", 0) % len(call.shape)
    if not all(isinstance(part, Value) for part in parts):
        raise call.builder.refuse("a stack with constants is not supported")
    shape = (*call.shape[:axis], 1, *call.shape[axis + 1 :])
    return call.builder.concatenation([part.reshape(shape) for part in parts], axis)


def unstacked(call: Call) -> list[Value]:
    axis, extent = place(call, call.get(1, "dim", 0))
    shape = (*call.x.shape[:axis], *call.x.shape[axis + 1 :])
    return [chosen(call.builder, call.x, axis, [n]).reshape(shape) for n in range(extent)]


def shuffled(call: Call) -> Value:
    """aten.pixel_shuffle: channels become blocks of pixels; pixel_unshuffle: back."""
    size, (batch, channels, height, width) = call.get(1, "upscale_factor"), call.x.shape
    apart = call.x.reshape((batch, channels // size**2, size, size, height, width))
    return apart.transpose((0, 1, 4, 2, 5, 3)).reshape(call.shape)


def unshuffled(call: Call) -> Value:
    size, (batch, channels, height, width) = call.get(1, "downscale_factor"), call.x.shape
    apart = call.x.reshape((batch, channels, height // size, size, width // size, size))
    return apart.transpose((0, 1, 3, 5, 2, 4)).reshape(call.shape)


def channels_shuffled(call: Call) -> Value:
    groups, (batch, channels, *rest) = call.get(1, "groups"), call.x.shape
    apart = call.x.reshape((batch, groups, channels // groups, *rest))
    axes = (0, 2, 1, *range(3, len(apart.shape)))
    return apart.transpose(axes).reshape(call.shape)


OPERATORS: Table = {
    "<built-in function getitem>": item,
    "aten.cat.default": cat,
    "aten.slice.Tensor": slice_,
    "aten.select.int": select,
    "aten.split.Tensor": partial(split, name="split_size"),
    "aten.split_with_sizes.default": partial(split, name="split_sizes"),
    "aten.chunk.default": partial(split, name="chunks"),
    **{
        f"aten.upsample_{kind}.{form}": partial(resized, curve=curve, form=form)
        for kind, curve in CURVES.items()
        for form in ("default", "vec")
    },
    "aten.index_select.default": indexed,
    "aten.index.Tensor": indexed,
    "aten.repeat_interleave.self_int": repeated,
    "aten.flip.default": flipped,
    "aten.roll.default": rolled,
    "aten.stack.default": stacked,
    "aten.unbind.int": unstacked,
    "aten.pixel_shuffle.default": shuffled,
    "aten.pixel_unshuffle.default": unshuffled,
    "aten.channel_shuffle.default": channels_shuffled,
    "aten.repeat.default": lambda call: tiled(call.builder, call.x, call.get(1, "repeats")),
    "aten.tile.default": lambda call: tiled(call.builder, call.x, call.get(1, "dims")),
    "aten.expand.default": lambda call: expanded(call.builder, call.x, call.shape),
    "aten.pad.default": pad,
    "aten.constant_pad_nd.default": pad,
    "aten.flatten.using_ints": reshape,
    "aten.view.default": reshape,
    "aten.reshape.default": reshape,
    "aten._unsafe_view.default": reshape,
    "aten.squeeze.default": reshape,
    "aten.squeeze.dim": reshape,
    "aten.squeeze.dims": reshape,
    "aten.unsqueeze.default": reshape,
    "aten.permute.default": permute,
    "aten.transpose.int": transpose,
    "aten.t.default": transpose,
    "aten.softmax.int": softmax,
    "aten._softmax.default": softmax,
    "aten.log_softmax.int": partial(softmax, kind=nodes.LogSoftmaxOver),
    "aten._log_softmax.default": partial(softmax, kind=nodes.LogSoftmaxOver),
    "aten.dropout.default": same,
    "aten.clone.default": same,
    "aten.detach.default": same,
    "aten.alias.default": same,
    "aten._to_copy.default": same,
}
