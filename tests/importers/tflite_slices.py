"""Random networks of one operator that chooses elements or puts them elsewhere."""

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
    held = [net.constant(np.array(numbers, np.int32)) for numbers in (starts, given)]
    return net.alone("SLICE", x, [*held], y, "SliceOptions")


def strided_slice(rng: Random) -> bytes:
    """Limits as Python has them: negative ones, ones beyond the end, left out by masks."""
    shape, masks = (1, *sizes(rng)), {"BeginMask": 0, "EndMask": 0, "ShrinkAxisMask": 0}
    begins, ends, steps, out = [], [], [], []
    for axis, extent in enumerate(shape):
        first = int(rng.integers(0, extent))
        last = int(rng.integers(first, extent))
        step, whole = int(rng.integers(1, 4)), rng.random() < 0.2
        if axis and rng.random() < 0.3:  # back
            begins.append(last - extent if rng.random() < 0.3 else last)
            ends.append(first - 1 if first else -extent - 1)
            steps.append(-step)
            out.append((last - first) // step + 1)
            continue
        begins.append(first - extent if rng.random() < 0.3 else first)
        ends.append(extent + 5 if last == extent - 1 else last + 1)
        steps.append(step)
        if axis == 3 and rng.random() < 0.3:
            masks["ShrinkAxisMask"] |= 1 << axis
            steps[-1] = 1
            continue
        if whole:
            masks["BeginMask"] |= 1 << axis
            masks["EndMask"] |= 1 << axis
            first, last = 0, extent - 1
        out.append((last - first) // step + 1)
    net, s, z = Writer(), scale(rng), zero(rng)
    x, y = net.tensor(shape, s, z), net.tensor(out, s, z)
    held = [net.constant(np.array(numbers, np.int32)) for numbers in (begins, ends, steps)]
    return net.alone("STRIDED_SLICE", x, [*held], y, "StridedSliceOptions", **masks)


def parts(kind: str, rng: Random) -> bytes:
    """One of the parts is the output, or two are added."""
    count, axis = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    shape, s, z = [1, *sizes(rng, 5)], scale(rng), zero(rng)
    part = shape.copy()
    shape[axis] = {"SPLIT": count * shape[axis], "UNPACK": count}.get(kind, 2 * shape[axis] + 1)
    net = Writer()
    x = net.tensor(shape, s, z)
    extents = [part[axis]] * count
    if kind == "UNPACK":
        del part[axis]
    if kind == "SPLIT_V":
        count, extents = 3, [part[axis], 1, part[axis]]
    outs = []
    for extent in extents:
        if kind != "UNPACK":
            part[axis] = extent
        outs.append(net.tensor(tuple(part), s, z))
    around = axis - 4 if rng.random() < 0.5 else axis
    held = net.constant(np.array(around, np.int32)) if kind != "UNPACK" else -1
    if kind == "SPLIT":
        net.operator(kind, [held, x], outs, "SplitOptions", NumSplits=count)
    elif kind == "SPLIT_V":
        lengths = net.constant(np.array(extents, np.int32))
        net.operator(kind, [x, lengths, held], outs, "SplitVOptions", NumSplits=count)
    else:
        net.operator(kind, [x], outs, "UnpackOptions", Num=count, Axis=around)
    if rng.random() < 0.5:
        return net.content([x], [outs[int(rng.integers(count))]])
    y = net.tensor(net.tensors[outs[0]]["dims"], s * 2, z)
    net.operator("ADD", [outs[0], outs[-1]], [y], "AddOptions")
    return net.content([x], [y])


def transpose(rng: Random) -> bytes:
    net, s, z = Writer(), scale(rng), zero(rng)
    shape = (1, *sizes(rng))
    order = [0, *(int(axis) + 1 for axis in rng.permutation(3))]
    x, y = net.tensor(shape, s, z), net.tensor([shape[axis] for axis in order], s, z)
    return net.alone(
        "TRANSPOSE", x, [net.constant(np.array(order, np.int32))], y, "TransposeOptions"
    )


def resize(kind: str, rng: Random) -> bytes:
    (height, width, depth), out = sizes(rng, 6), [int(n) for n in rng.integers(1, 20, 2)]
    net, s, z, corners = Writer(), scale(rng), zero(rng), int(rng.integers(3))
    x, y = net.tensor((1, height, width, depth), s, z), net.tensor((1, *out, depth), s, z)
    return net.alone(
        kind, x, [net.constant(np.array(out, np.int32))], y,
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


MOVES = ("BROADCAST_TO", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "PACK", "GATHER",
         "MIRROR_PAD", "REVERSE_V2")  # fmt: skip
SLICES: dict[str, Case] = {
    "TRANSPOSE": transpose,
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
    "SPLIT": partial(parts, "SPLIT"),
    "SPLIT_V": partial(parts, "SPLIT_V"),
    "UNPACK": partial(parts, "UNPACK"),
    "RESIZE_BILINEAR": partial(resize, "RESIZE_BILINEAR"),
    "RESIZE_NEAREST_NEIGHBOR": partial(resize, "RESIZE_NEAREST_NEIGHBOR"),
    **{kind: partial(moved, kind) for kind in MOVES},
}
