"""Random networks of one operator that chooses, joins or pads elements or puts them elsewhere."""

from functools import partial

import numpy as np

from tests.importers.tflite_writer import Case, Random, Writer, scale, sizes, zero


def slice_(rng: Random) -> bytes:
    shape = (1, *sizes(rng))
    starts = [int(rng.integers(0, n)) for n in shape]
    counts = [int(rng.integers(1, n - start + 1)) for n, start in zip(shape, starts, strict=True)]
    given = [-1 if a + n == e and rng.random() < 0.5 else n
             for a, n, e in zip(starts, counts, shape, strict=True)]  # fmt: skip
    net, s, z = Writer(), scale(rng), zero(rng)
    x, y = net.tensor(shape, s, z), net.tensor(counts, s, z)
    return net.alone("SLICE", x, [net.ints(starts), net.ints(given)], y, "SliceOptions")


def strided_slice(rng: Random) -> bytes:
    """Limits as Python has them: negative ones, ones beyond the end, left out by masks."""
    shape, masks = (1, *sizes(rng)), {"BeginMask": 0, "EndMask": 0, "ShrinkAxisMask": 0}
    limits, out = [], []
    for axis, extent in enumerate(shape):
        first, last = sorted(rng.integers(0, extent, 2).tolist())
        step, begin, end = int(rng.integers(1, 4)), first, last + 1
        if axis and rng.random() < 0.3:  # back
            step, begin, end = -step, last, first - 1 if first else -extent - 1
        elif last == extent - 1:
            end += 5
        limits.append((begin - extent if rng.random() < 0.3 else begin, end, step))
        if axis == 3 and step > 0 and rng.random() < 0.3:
            masks["ShrinkAxisMask"] = 1 << axis
            limits[-1] = (*limits[-1][:2], 1)
            continue
        if step > 0 and rng.random() < 0.2:
            masks["BeginMask"] |= 1 << axis
            masks["EndMask"] |= 1 << axis
            first, last = 0, extent - 1
        out.append((last - first) // abs(step) + 1)
    net, s, z = Writer(), scale(rng), zero(rng)
    x, y = net.tensor(shape, s, z), net.tensor(out, s, z)
    held = map(net.ints, zip(*limits, strict=True))
    return net.alone("STRIDED_SLICE", x, [*held], y, "StridedSliceOptions", **masks)


def parts(kind: str, rng: Random) -> bytes:
    """One of the parts is the output, or two are added."""
    count, axis, net = int(rng.integers(2, 4)), int(rng.integers(1, 4)), Writer()
    shape, s, z = [1, *sizes(rng, 5)], scale(rng), zero(rng)
    each, around = shape[axis], axis - 4 if rng.random() < 0.5 else axis
    extents = [each, 1, each] if kind == "SPLIT_V" else [each if kind == "SPLIT" else 1] * count
    x = net.tensor([*shape[:axis], sum(extents), *shape[axis + 1 :]], s, z)
    outs = [
        net.tensor([*shape[:axis], *[n] * (kind != "UNPACK"), *shape[axis + 1 :]], s, z)
        for n in extents
    ]
    if kind == "SPLIT":
        net.operator(kind, [net.ints(around), x], outs, "SplitOptions", NumSplits=len(outs))
    elif kind == "SPLIT_V":
        held = net.ints(extents), net.ints(around)
        net.operator(kind, [x, *held], outs, "SplitVOptions", NumSplits=len(outs))
    else:
        net.operator(kind, [x], outs, "UnpackOptions", Num=len(outs), Axis=around)
    if rng.random() < 0.5:
        return net.content([x], [outs[int(rng.integers(len(outs)))]])
    y = net.tensor(net.tensors[outs[0]]["dims"], s * 2, z)
    net.operator("ADD", [outs[0], outs[-1]], [y], "AddOptions")
    return net.content([x], [y])


def transpose(rng: Random) -> bytes:
    net, s, z = Writer(), scale(rng), zero(rng)
    shape = (1, *sizes(rng))
    order = [0, *(int(axis) + 1 for axis in rng.permutation(3))]
    x, y = net.tensor(shape, s, z), net.tensor([shape[axis] for axis in order], s, z)
    return net.alone("TRANSPOSE", x, [net.ints(order)], y, "TransposeOptions")


def resize(kind: str, rng: Random) -> bytes:
    (height, width, depth), out = sizes(rng, 6), [int(n) for n in rng.integers(1, 20, 2)]
    net, s, z, corners = Writer(), scale(rng), zero(rng), int(rng.integers(3))
    x, y = net.tensor((1, height, width, depth), s, z), net.tensor((1, *out, depth), s, z)
    return net.alone(
        kind, x, [net.ints(out)], y,
        "ResizeBilinearOptions" if "BI" in kind else "ResizeNearestNeighborOptions",
        HalfPixelCenters=corners == 1, AlignCorners=corners == 2,
    )  # fmt: skip


def moved(kind: str, rng: Random) -> bytes:
    """Blocks, stacks, mirrors and chosen entries."""
    shape, axis, net = (1, *sizes(rng, 5)), int(rng.integers(1, 4)), Writer()
    places, more, options = np.arange(np.prod(shape)).reshape(shape), list[np.ndarray](), {}
    x = net.tensor(shape, s := scale(rng), z := zero(rng))
    inputs, size = [x], int(rng.integers(2, 4))
    if kind == "BROADCAST_TO":
        out = (1, int(rng.integers(2, 4)), *shape[1:])
        more = [np.array(out, np.int32)]
        net.tensors[x]["dims"] = (1, *shape[1:])
    elif kind == "GATHER":
        more, options = [rng.integers(0, shape[axis], 5).astype(np.int32)], {"Axis": axis}
        out = places.take(more[0], axis).shape
    elif kind == "MIRROR_PAD":
        most = [[n - 1] * 2 for n in shape]
        more = [rng.integers(0, most, endpoint=True).astype(np.int32).clip(0, 3)]
        options, out = {"Mode": int(rng.integers(2))}, np.pad(places, more[0]).shape
    elif kind == "REVERSE_V2":
        more, out = [np.array([axis], np.int32)], shape
    elif kind == "PACK":
        out, inputs = (*shape[:axis], size, *shape[axis:]), [x] * size
        options = {"ValuesCount": size, "Axis": axis}
    else:
        options, (height, width, depth) = {"BlockSize": size}, shape[1:]
        few, many = (height, width, depth * size**2), (height * size, width * size, depth)
        ends = (few, many) if kind == "DEPTH_TO_SPACE" else (many, few)
        net.tensors[x]["dims"], out = (1, *ends[0]), (1, *ends[1])
    inputs += [net.constant(each) for each in more]
    y, name = net.tensor(out, s, z), kind.title().replace("_", "")
    net.operator(kind, inputs, [y], f"{name}Options" if options else "", **options)
    return net.content([x], [y])


def concatenation(rng: Random) -> bytes:
    shape, axis = [1, *sizes(rng, 5)], int(rng.integers(1, 4))
    net, s, z = Writer(), scale(rng), zero(rng)
    x = net.tensor(shape, s, z)
    pieces, joined = [x], shape.copy()
    for _ in range(int(rng.integers(0, 3))):
        longer, padding = shape.copy(), np.zeros((4, 2), int)
        if rng.random() < 0.2:
            pieces.append(x)
        else:
            padding[axis] = rng.integers(0, 3, 2)
            longer[axis] += int(padding[axis].sum())
            pieces.append(net.tensor(longer, s, z))
            net.operator("PAD", [x, net.ints(padding)], pieces[-1:])
        joined[axis] += longer[axis]
    y = net.tensor(joined, s, z)
    given = axis - 4 if rng.random() < 0.5 else axis
    net.operator("CONCATENATION", pieces, [y], "ConcatenationOptions", Axis=given)
    return net.content([x], [y])


def pad(kind: str, rng: Random) -> bytes:
    shape, amounts = sizes(rng, 5), rng.integers(0, 3, (4, 2))
    amounts[0] = 0
    net, s, z = Writer(), scale(rng), zero(rng)
    x = net.tensor((1, *shape), s, z)
    inputs = [x, net.ints(amounts)]
    if kind == "PADV2":
        value = z if rng.random() < 0.3 else int(rng.integers(-128, 128))
        inputs.append(net.constant(np.array([value], np.int8), s, z))
    y = net.tensor([1, *(np.array(shape) + amounts[1:].sum(1))], s, z)
    net.operator(kind, inputs, [y])
    return net.content([x], [y])


def reshape(kind: str, rng: Random) -> bytes:
    net, s, z = Writer(), scale(rng), zero(rng)
    height, width, depth = sizes(rng)
    shape, out, more = (1, height, width, depth), (1, height * width, depth), []
    if kind == "SQUEEZE":
        width, depth = width + 1, depth + 1
        shape, out = (1, 1, width, depth), (width, depth)
    elif kind == "EXPAND_DIMS":
        shape, out = (1, width, depth), (1, width, 1, depth)
        more = [net.ints([2])]
    else:
        more = [net.ints(out)]
    x, y = net.tensor(shape, s, z), net.tensor(out, s, z)
    return net.alone(kind, x, [*more], y)


MOVES = ("BROADCAST_TO", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "PACK", "GATHER",
         "MIRROR_PAD", "REVERSE_V2")  # fmt: skip
SLICES: dict[str, Case] = {
    "CONCATENATION": concatenation,
    **{kind: partial(pad, kind) for kind in ("PAD", "PADV2")},
    **{kind: partial(reshape, kind) for kind in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")},
    "TRANSPOSE": transpose,
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
    **{kind: partial(parts, kind) for kind in ("SPLIT", "SPLIT_V", "UNPACK")},
    **{kind: partial(resize, kind) for kind in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")},
    **{kind: partial(moved, kind) for kind in MOVES},
}
