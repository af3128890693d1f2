"""Float networks of .tflite files, told in ONNX's operators, which compute the same.

TensorFlow has images (1, h, w, c) where ONNX has (1, c, h, w): here the name of a tensor of four
axes stands for ONNX's. What takes or makes another shape stands between transpositions, which only
rename elements. Weights of 8 bits and of float16 keep their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from tflite.BuiltinOperator import BuiltinOperator
from tflite.Padding import Padding

from pipeline.errors import ThimbleError
from pipeline.importers import tflite_moves, tflite_slices
from pipeline.importers.float_graph import checked_size
from pipeline.importers.functions import PLAIN
from pipeline.importers.onnx_file import FileInput, FileNode, OnnxFile
from pipeline.importers.tflite_builder import values_of
from pipeline.importers.tflite_model import FileModel, FileTensor, Node
from pipeline.importers.tflite_operator import Entry, Options, axis_of, positive
from pipeline.importers.tflite_pooling import reduced_axes
from pipeline.importers.tflite_slices import Lists, chosen_by, moved_input, numbers
from pipeline.importers.tflite_translation import (
    INTEGERS,
    TO_ONNX,
    Rule,
    Translation,
    axis_in_onnx,
    in_onnx,
    named,
)
from pipeline.importers.unsupported import unsupported

OPSET = 13


def windows(options: Options) -> dict[str, Any]:
    """Return the attributes that say where windows lie."""
    strides = positive(options, "stride_h", "stride_w")
    if around := options.get("around"):
        return {"pads": tuple(side[end] for end in (0, 1) for side in around), "strides": strides}
    kinds = {Padding.SAME: "SAME_UPPER", Padding.VALID: "VALID"}
    if options["padding"] not in kinds:
        raise ThimbleError(f"its padding is number {options['padding']}, expected SAME or VALID")
    return {"auto_pad": kinds[options["padding"]], "strides": strides}


def convolution(to: Translation, node: Node, options: Options) -> None:
    source, weights = node.input(0), node.input(1)
    depthwise = node.kind == "DEPTHWISE_CONV_2D"
    if len(weights.dims) != 4 or len(source.dims) != 4:
        raise ThimbleError(f"a convolution of {list(source.dims)} with {list(weights.dims)}")
    depth = 1 if depthwise else weights.dims[3]
    kernel = to.constant(weights, (3, 0, 1, 2) if depthwise else TO_ONNX)
    bias = [to.constant(each) for each in node.inputs[2:3] if each]
    made = to.add(
        "Conv", named(source), kernel, *bias, **windows(options),
        dilations=(options["dilation_h"], options["dilation_w"]), group=source.dims[3] // depth,
    )  # fmt: skip
    to.activated(made, options, node.output)


def transpose_conv(to: Translation, node: Node, options: Options) -> None:
    taken, used = node.input(2).dims, node.input(1).dims
    if not len(taken) == len(used) == len(node.output.dims) == 4:
        raise ThimbleError(f"a transposed convolution of {list(taken)} with {list(used)}")
    weights = to.constant(node.input(1), (3, 0, 1, 2))
    bias = [to.constant(each) for each in node.inputs[3:4] if each]
    strides, before, after = windows(options)["strides"], list[int](), list[int]()
    for axis, step in enumerate(strides, 1):
        size, taps = node.output.dims[axis], node.input(1).dims[axis]
        total = max(0, (-(-size // step) - 1) * step + taps - size)
        before.append(total // 2 if options["padding"] == Padding.SAME else 0)
        after.append((node.input(2).dims[axis] - 1) * step + taps - before[-1] - size)
    pads = (*before, *after)
    source = named(node.input(2))
    made = to.add("ConvTranspose", source, weights, *bias, strides=strides, pads=pads)
    to.activated(made, options, node.output)


def batch_matmul(to: Translation, node: Node, options: Options) -> None:
    sides = list[str]()
    for n, turned in enumerate((options["adj_x"], options["adj_y"])):
        rank = len(node.input(n).dims)
        order = (*range(rank - 2), rank - 1, rank - 2) if turned else range(rank)
        sides.append(to.add("Transpose", to.plain(node.input(n)), perm=tuple(order)))
    to.shaped(to.add("MatMul", *sides), node.output)


def places(to: Translation, node: Node, options: Options) -> None:
    source, operator = node.input(0), "ArgMax" if node.kind == "ARG_MAX" else "ArgMin"
    axis, dims = axis_of(numbers(node.input(1), 1)[0], source), list(source.dims)
    dims[axis] = 1
    made = to.add(operator, named(source), axis=axis_in_onnx(axis, source), keepdims=1)
    to.fitted(made, dims, node.output)


def fully_connected(to: Translation, node: Node, options: Options) -> None:
    source, weights = node.input(0), node.input(1)
    count = weights.dims[-1] if weights.dims else 0
    if len(weights.dims) != 2 or not count or source.size % count:
        raise ThimbleError(f"weights of {list(weights.dims)} do not fit {list(source.dims)}")
    rows = source.size // count
    shape = to.integers((1, count) if rows == 1 else (1, rows, count))
    flat = to.add("Reshape", to.plain(source), shape)
    bias = [to.constant(each) for each in node.inputs[2:3] if each]
    made = to.add("Gemm", flat, to.constant(weights), *bias, transB=1)
    made = to.add("Reshape", made, to.integers(node.output.dims))
    if len(node.output.dims) == 4:
        made = to.add("Transpose", made, perm=TO_ONNX)
    to.activated(made, options, node.output)


def pool(to: Translation, node: Node, options: Options) -> None:
    kernel = options["filter_height"], options["filter_width"]
    operator = "MaxPool" if node.kind == "MAX_POOL_2D" else "AveragePool"
    made = to.add(operator, named(node.input(0)), kernel_shape=kernel, **windows(options))
    to.activated(made, options, node.output)


def reduction(operator: str, total: bool = False) -> Rule:
    """``total``: a mean times the number of elements."""

    def reduced(to: Translation, node: Node, options: Options) -> None:
        source = node.input(0)
        axes = reduced_axes(node)
        made, count = named(source), prod(source.dims[axis] for axis in axes)
        if axes:
            listed = tuple(sorted(axis_in_onnx(axis, source) for axis in axes))
            made = to.add(operator, made, axes=listed, keepdims=1)
        if total:
            made = to.add("Mul", made, to.held(count))
        dims = [1 if axis in axes else extent for axis, extent in enumerate(source.dims)]
        to.fitted(made, dims, node.output)

    return reduced


def binary(operator: str, count: int = 2) -> Rule:
    def combined(to: Translation, node: Node, options: Options) -> None:
        rank = len(node.output.dims)
        made = to.add(operator, *(to.operand(node.input(n), rank) for n in range(count)))
        to.activated(made, options, node.output)

    return combined


def squared_difference(to: Translation, node: Node, options: Options) -> None:
    rank = len(node.output.dims)
    made = to.add("Sub", *(to.operand(node.input(n), rank) for n in (0, 1)))
    to.add("Mul", made, made, output=named(node.output))


def cast(to: Translation, node: Node, options: Options) -> None:
    kind = {"FLOAT32": 1, "BOOL": 9}.get(node.output.type, 7)
    to.add("Cast", named(node.input(0)), to=kind, output=named(node.output))


def unary(operator: str, *limits: float, **attributes: str) -> Rule:
    """``limits`` are further inputs; ``attributes``: the options of the file that they are."""

    def applied(to: Translation, node: Node, options: Options) -> None:
        given = {name: options[field] for name, field in attributes.items()}
        constants = (to.held(each) for each in limits)
        target = named(node.output)
        to.add(operator, named(node.input(0)), *constants, output=target, **given)

    return applied


def softmax(to: Translation, node: Node, options: Options) -> None:
    source = named(node.input(0))
    if options.get("beta", 1.0) not in (0.0, 1.0):
        source = to.add("Mul", source, to.held(options["beta"]))
    operator = "Softmax" if node.kind == "SOFTMAX" else "LogSoftmax"
    to.add(operator, source, axis=axis_in_onnx(-1, node.input(0)), output=named(node.output))


def l2_normalization(to: Translation, node: Node, options: Options) -> None:
    source = named(node.input(0))
    made = to.add("LpNormalization", source, axis=axis_in_onnx(-1, node.input(0)))
    to.activated(made, options, node.output)


def reshape(to: Translation, node: Node, options: Options) -> None:
    to.shaped(to.plain(node.input(0)), node.output)


def transpose(to: Translation, node: Node, options: Options) -> None:
    order = tuple(numbers(node.input(1), len(node.input(0).dims)))
    to.shaped(to.add("Transpose", to.plain(node.input(0)), perm=order), node.output)


def concatenation(to: Translation, node: Node, options: Options) -> None:
    rank = len(node.output.dims)
    names = [to.operand(node.input(n), rank) for n in range(len(node.inputs))]
    made = to.add("Concat", *names, axis=axis_in_onnx(options["axis"], node.output))
    to.activated(made, options, node.output)


def pad(to: Translation, node: Node, options: Options) -> None:
    source = node.input(0)
    amounts = values_of(node.input(1), INTEGERS)
    if amounts.shape != (len(source.dims), 2):
        raise ThimbleError(f"its paddings {amounts.tolist()} do not fit {source.name}")
    if len(source.dims) == 4:
        amounts = amounts[list(TO_ONNX)]
    value = [to.constant(each) for each in node.inputs[2:3] if each]
    widths = to.integers(amounts.T.reshape(-1).tolist())
    to.add("Pad", named(source), widths, *value, output=named(node.output))


def taking(rule: Callable[[Node, Options], Sequence[Lists]]) -> Rule:
    """Return the entries that ``rule`` says, axis by axis."""

    def taken(to: Translation, node: Node, options: Options) -> None:
        source = moved_input(node)
        for target, lists in chosen_by(rule, node, options):
            made = named(source)
            for axis, (extent, each) in enumerate(zip(source.dims, lists, strict=True)):
                if list(each) != list(range(extent)):
                    here = axis_in_onnx(axis, source)
                    made = to.add("Gather", made, to.integers(each), axis=here)
            to.fitted(made, list(map(len, lists)), target)

    return taken


def pack(to: Translation, node: Node, options: Options) -> None:
    axis, shape = axis_of(options["axis"], node.output), list(node.output.dims)
    shape[axis] = 1
    given = (to.plain(node.input(n)) for n in range(len(node.inputs)))
    parts = [to.add("Reshape", each, to.integers(shape)) for each in given]
    to.shaped(to.add("Concat", *parts, axis=axis), node.output)


def repeated(operator: str) -> Rule:
    """Repeat as often along each axis, or to a shape, as the second input says."""

    def applied(to: Translation, node: Node, options: Options) -> None:
        counts = numbers(node.input(1))
        made = to.add(operator, to.plain(node.input(0)), to.integers(counts))
        to.shaped(made, node.output)

    return applied


def resize(to: Translation, node: Node, options: Options) -> None:
    height, width = numbers(node.input(1), 2)
    way = "half_pixel" if options["half_pixel_centers"] else "asymmetric"
    linear = node.kind == "RESIZE_BILINEAR"
    if options["align_corners"]:
        way = "align_corners"
    rounding = "floor" if way == "asymmetric" else "round_prefer_ceil"
    to.add(
        "Resize", named(node.input(0)), "", "",
        to.integers((1, node.input(0).shape[-1], height, width)),
        mode="linear" if linear else "nearest", nearest_mode=rounding,
        coordinate_transformation_mode=way, output=named(node.output),
    )  # fmt: skip


def dequantize(to: Translation, node: Node, options: Options) -> None:
    if not node.input(0).data:
        raise ThimbleError("a network that is partly float and partly quantized isn't supported")
    to.dequantized[node.output.index] = node.input(0)


OPERATORS: Mapping[str, Rule] = {
    **{
        name.upper(): unary(name.capitalize())
        for name in PLAIN
        if hasattr(BuiltinOperator, name.upper())
    },
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": convolution,
    "TRANSPOSE_CONV": transpose_conv,
    "BATCH_MATMUL": batch_matmul,
    "FULLY_CONNECTED": fully_connected,
    "AVERAGE_POOL_2D": pool,
    "MAX_POOL_2D": pool,
    "MEAN": reduction("ReduceMean"),
    "SUM": reduction("ReduceMean", total=True),
    "REDUCE_MAX": reduction("ReduceMax"),
    "REDUCE_MIN": reduction("ReduceMin"),
    "ARG_MAX": places,
    "ARG_MIN": places,
    "ADD": binary("Add"),
    "SUB": binary("Sub"),
    "MUL": binary("Mul"),
    "DIV": binary("Div"),
    "MAXIMUM": binary("Max"),
    "MINIMUM": binary("Min"),
    "PRELU": binary("PRelu"),
    "LOGISTIC": unary("Sigmoid"),
    "HARD_SWISH": unary("HardSwish"),
    "LEAKY_RELU": unary("LeakyRelu", alpha="alpha"),
    "RELU": unary("Relu"),
    "RELU6": unary("Clip", 0.0, 6.0),
    "RELU_N1_TO_1": unary("Clip", -1.0, 1.0),
    "ELU": unary("Elu"),
    "GELU": unary("Gelu"),
    "RSQRT": unary("Pow", -0.5),
    "SQUARE": unary("Pow", 2.0),
    "LOGICAL_NOT": unary("Not"),
    "LOGICAL_AND": binary("And"),
    "POW": binary("Pow"),
    "LESS": binary("Less"),
    "LESS_EQUAL": binary("LessOrEqual"),
    "GREATER": binary("Greater"),
    "GREATER_EQUAL": binary("GreaterOrEqual"),
    "EQUAL": binary("Equal"),
    "SELECT": binary("Where", 3),
    "SELECT_V2": binary("Where", 3),
    "SQUARED_DIFFERENCE": squared_difference,
    "CAST": cast,
    "SOFTMAX": softmax,
    "LOG_SOFTMAX": softmax,
    "L2_NORMALIZATION": l2_normalization,
    "RESHAPE": reshape,
    "SQUEEZE": reshape,
    "EXPAND_DIMS": reshape,
    "TRANSPOSE": transpose,
    "CONCATENATION": concatenation,
    "PAD": pad,
    "PADV2": pad,
    "SLICE": taking(tflite_slices.slice_),
    "STRIDED_SLICE": taking(tflite_slices.strided_slice),
    "SPLIT": taking(tflite_slices.split),
    "SPLIT_V": taking(tflite_slices.split_v),
    "UNPACK": taking(tflite_slices.unpack),
    "MIRROR_PAD": taking(tflite_moves.mirror_pad),
    "REVERSE_V2": taking(tflite_moves.reverse),
    "GATHER": taking(tflite_moves.gather),
    "PACK": pack,
    "TILE": repeated("Tile"),
    "BROADCAST_TO": repeated("Expand"),
    "DEPTH_TO_SPACE": unary("DepthToSpace", blocksize="block_size"),
    "SPACE_TO_DEPTH": unary("SpaceToDepth", blocksize="block_size"),
    "RESIZE_NEAREST_NEIGHBOR": resize,
    "RESIZE_BILINEAR": resize,
    "DEQUANTIZE": dequantize,
}

FIELDS = {"DIV": ("DivOptions", "activation:i8"), "GELU": ("GeluOptions", "approximate:bool")}
"""Options of operators that have other ones, or none, where integers are computed."""


def translated(
    model: FileModel, ends: list[FileTensor], needed: list[int], entries: Mapping[str, Entry]
) -> OnnxFile:
    """Tell the operators ``needed`` for ``ends`` in ONNX's; ``entries`` know their options.

    Raises:
        ThimbleError: what is not supported, and where it is.
    """
    inputs, to = list[FileInput](), Translation()
    for source in model.inputs(needed):
        shape, batches = source.dims, source.dims[:1] if len(source.dims) > 1 else (1,)
        if source.type != "FLOAT32" or batches != (1,) or not 1 <= len(shape) <= 4:
            raise ThimbleError(
                f"the input {source.name} is {source.type.lower()} of {list(shape)}: float32, a "
                "batch of 1 and up to four axes are supported"
            )
        size = checked_size(f"the input {source.name}", in_onnx(source))
        inputs.append(FileInput(named(source), size, "float32"))
    tensors = list[FileTensor]()
    for index in needed:
        kind = model.operator(index)[0]
        to.where = f"operator {index}, {kind}"
        try:
            given = model.node(index)
            to.label = given.layer
            tensors += (*filter(None, given.inputs), *given.outputs)
            if kind not in OPERATORS:
                raise ThimbleError(unsupported(kind))
            entry = Entry(lambda *_: None, *FIELDS[kind]) if kind in FIELDS else entries.get(kind)
            OPERATORS[kind](to, given, entry.values(given) if entry else {})
        except ThimbleError as error:
            reads, makes = ([f"tensor {n}" for n in each] for each in model.operator(index)[1:])
            refused = ThimbleError(f"{to.where}: {error}")
            node = FileNode(kind, tuple(reads), tuple(makes), {}, to.where, to.label, refused)
            to.nodes.append(node)
    floats = [t for t in tensors if t.type == "FLOAT32" and t.dims[:1] == (1,) and len(t.dims) < 5]
    return OnnxFile(
        nodes=tuple(to.nodes), constants=to.constants, inputs=tuple(inputs),
        outputs=tuple(map(named, ends)), opset=OPSET, channels_first=True,
        names={named(each): each.name for each in tensors},
        shapes=lambda: {named(each): in_onnx(each) for each in floats},
    )  # fmt: skip
