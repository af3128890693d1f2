"""Small ONNX models: one for each operator, and networks to quantize."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.onnx import entered
from pipeline.importers.onnx_external import ExternalFiles
from pipeline.importers.onnx_file import OnnxFile, read

Array = npt.NDArray[Any]
Nodes = str | Sequence[onnx.NodeProto | str]
RANDOM = np.random.default_rng(5)
OPSET = 20


def parsed(made: onnx.ModelProto | bytes) -> OnnxFile:
    """Read a model that has no files beside it."""
    content = made if isinstance(made, bytes) else made.SerializeToString()
    return read(content, ExternalFiles(Path("nowhere"), 0))


def imported(name: str, file: OnnxFile, limits: tuple[float, float]) -> FloatGraph:
    return entered(name, file, limits)[0]


def weights(*shape: int, scale: float = 0.5) -> Array:
    return (RANDOM.standard_normal(shape) * scale).astype(np.float32)


def parsed_nodes(nodes: Nodes) -> list[onnx.NodeProto]:
    """Parse text as ``onnx.parser`` has it, "a = Conv(x, w); y = Abs(a)", nodes, or both."""
    if isinstance(nodes, str):
        return [onnx.parser.parse_node(each) for each in nodes.split("; ")]
    return [
        node for each in nodes for node in (parsed_nodes(each) if isinstance(each, str) else [each])
    ]


def model(
    nodes: Nodes,
    shape: Sequence[int | str],
    constants: dict[str, Array] | None = None,
    opset: int = OPSET,
    kinds: tuple[int, int] = (TensorProto.FLOAT, TensorProto.FLOAT),
) -> onnx.ModelProto:
    """From "x" to "y"."""
    start = helper.make_tensor_value_info("x", kinds[0], shape)
    end = helper.make_tensor_value_info("y", kinds[1], None)
    held = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(parsed_nodes(nodes), "net", [start], [end], held)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(graph, opset_imports=imports)
    made.ir_version = 10
    return made


def one(
    operator: str,
    shape: Sequence[int],
    *constants: Array | None,
    opset: int = OPSET,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one operator; ``constants`` are its inputs after the first."""
    named = {f"c{index}": value for index, value in enumerate(constants) if value is not None}
    names = ["" if value is None else f"c{index}" for index, value in enumerate(constants)]
    node = helper.make_node(operator, ["x", *names], ["y"], **attributes)
    return model([node], shape, named, opset)


def ints(*values: int) -> Array:
    return np.array(values, dtype=np.int64)


def number(value: float) -> Array:
    return np.array(value, dtype=np.float32)


MIXED = "p = Reshape(x, a); q = Transpose<perm=[0, 3, 5, 1, 2, 4]>(p); y = Reshape(q, b)"
"""Blocks of rows and columns to channels: four axes change places."""
IMAGE = (1, 4, 9, 8)
N = helper.make_node
CONV = "a = Conv<pads=[1, 1]>(x, w)"
SIGNALS: dict[str, Nodes] = {
    "signal": [CONV, "y = Conv<strides=[2]>(a, v)"],
    "signal, mean": [CONV, "y = ReduceMean<keepdims=0>(a, last)"],
    "signal, causal": [CONV, "y = Slice(a, one, last, last)"],
    "signal, joined": [CONV, "b = Sigmoid(a)", "y = Concat<axis=1>(a, b)"],
    "signal, dense": [CONV, "f = Flatten(a)", "y = Gemm<transB=1>(f, d)"],
}  # fmt: skip
"""Networks of one dimension, (1, c, l)."""


def of_signals(text: Nodes) -> onnx.ModelProto:
    nodes = parsed_nodes(text)
    held = {"w": weights(8, 3, 3), "v": weights(5, 8, 3), "d": weights(4, 160), "last": ints(-1),
            "pads": ints(0, 0, 1, 0, 0, 2), "one": ints(1)}  # fmt: skip
    read = {name for node in nodes for name in node.input}
    return model(nodes, (1, 3, 20), {name: held[name] for name in held if name in read})


def of(text: str, **constants: Array) -> onnx.ModelProto:
    """Of an image; if the convolution of "x" has no weights, they are of 1x1."""
    if "w" not in constants and ", w)" in text:
        constants["w"] = weights(4, 4, 1, 1)
    return model(text, IMAGE, constants)


def models() -> dict[str, onnx.ModelProto]:
    """By what each shows."""
    c = IMAGE[1]
    norm = [np.abs(weights(c)) + np.float32(0.5), weights(c), weights(c),
            np.abs(weights(c)) + np.float32(0.5)]  # fmt: skip
    unary = {
        name: one(name, IMAGE)
        for name in ("Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu",
                     "Selu", "Gelu", "Mish", "Softplus", "Softsign", "Exp", "Erf", "Abs", "Neg",
                     "Identity", "Dropout", "GlobalAveragePool", "GlobalMaxPool", "Floor", "Round",
                     "Ceil", "Sign", "Sin", "Cos", "ThresholdedRelu", "Shrink", "Celu")
    }  # fmt: skip
    positive = {
        name: of(f"a = Abs(x); b = Add(a, c); y = {name}(b)", c=number(1))
        for name in ("Log", "Sqrt", "Reciprocal")
    }  # fmt: skip
    signals = {name: of_signals(nodes) for name, nodes in SIGNALS.items()}
    return unary | positive | signals | {
        "Conv": one("Conv", IMAGE, weights(5, c, 3, 3), weights(5)),
        "Conv without bias, strided": one("Conv", IMAGE, weights(5, c, 3, 2), strides=[2, 1],
            pads=[1, 0, 2, 1]),
        "Conv same upper": one("Conv", IMAGE, weights(5, c, 4, 3), auto_pad="SAME_UPPER",
            strides=[2, 2]),
        "Conv same lower": one("Conv", IMAGE, weights(5, c, 4, 3), auto_pad="SAME_LOWER"),
        "Conv valid": one("Conv", IMAGE, weights(5, c, 3, 3), auto_pad="VALID"),
        "Conv dilated": one("Conv", IMAGE, weights(5, c, 3, 3), dilations=[2, 2]),
        "Conv grouped": one("Conv", IMAGE, weights(6, 2, 3, 3), weights(6), group=2),
        "Conv depthwise": one("Conv", IMAGE, weights(8, 1, 3, 3), weights(8), group=4),
        "Gemm": one("Gemm", (1, 12), weights(12, 5), weights(5), alpha=0.5, beta=2.0),
        "Gemm after Flatten": of("f = Flatten(x); y = Gemm<transB=1>(f, w)", w=weights(3, 288)),
        "Slice": of("y = Slice(x, s, e, a, d)", s=ints(1, -7), e=ints(3, 99), a=ints(1, -1),
            d=ints(1, 2)),
        "Slice of old": one("Slice", IMAGE, opset=9, starts=[2], ends=[9], axes=[2]),
        "Split": of("p, q = Split<axis=1>(x, n); a = Abs(p); y = Concat<axis=1>(q, a)",
            n=ints(1, 3)),
        "Resize": of('y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", '
            'nearest_mode="floor">(x, , f)', f=np.array([1, 1, 2, 3], np.float32)),
        "Gather": one("Gather", IMAGE, ints(2, 0, -1, 2), axis=1),
        "Gather one": one("Gather", IMAGE, np.array(-2), axis=1),
        "Tile": one("Tile", IMAGE, ints(1, 2, 1, 3)),
        "Expand": one("Expand", (1, 4, 1, 8), ints(4, 9, 1)),
        "DepthToSpace": one("DepthToSpace", (1, 12, 3, 4), blocksize=2),
        "DepthToSpace, inner": one("DepthToSpace", (1, 12, 3, 4), blocksize=2, mode="CRD"),
        "SpaceToDepth": one("SpaceToDepth", (1, 4, 9, 6), blocksize=3),
        "six axes": of(MIXED, a=ints(1, 4, 3, 3, 4, 2), b=ints(1, 24, 3, 4)),
        "Slice back": one("Slice", IMAGE, ints(-1, 6), ints(-99, 0), ints(1, 3), ints(-1, -2)),
        "Resize to a size": of('y = Resize<mode="nearest">(x, , , n)', n=np.array([1, 4, 36, 16])),
        **{
            f"Resize {mode} {way}": of(f'y = Resize<mode="{mode}", '
            f'coordinate_transformation_mode="{way}">(x, , f)',
            f=np.array([1, 1, 1.5, 0.6], np.float32))
            for mode, way in (("linear", "half_pixel"), ("linear", "align_corners"),
                ("cubic", "pytorch_half_pixel"), ("nearest", "asymmetric"))
        },
        **{
            f"ConvTranspose {options}": of(f"y = ConvTranspose<{options}>(x, w)",
            w=weights(c, 4 // groups, 3, 2))
            for options, groups in (("strides=[2, 3], pads=[1, 0, 1, 1], output_padding=[1, 2]", 1),
                ("auto_pad=\"SAME_UPPER\", strides=[2, 2]", 1), ("group=2, dilations=[2, 1]", 2),
                ("output_shape=[20, 17], strides=[2, 2]", 1))
        },
        **{
            f"Reduce{kind}": one(f"Reduce{kind}", IMAGE, ints(1, 3), opset=18, keepdims=0)
            for kind in ("Min", "Sum", "L1", "L2", "SumSquare", "LogSumExp")
        },
        "attention": model("v = Conv(x, w); a = Attention(v, v, v); y = Flatten(a)", IMAGE,
            {"w": weights(4, 4, 1, 1)}, 23),
        "attention with a mask": model(
            "v = Conv(x, w); a = Attention<is_causal=1>(v, v, v); b = Attention(a, v, v, m)"
            "; y = Flatten(b)", IMAGE, {"w": weights(4, 4, 1, 1), "m": np.eye(9) < 1}, 23),
        **{
            f"{kind}Normalization": model(
                f"v = Conv(x, k); n = {kind}Normalization<{more}>(v{', w' * held})"
                "; y = Flatten(n)", IMAGE, {"k": weights(4, 4, 1, 1), "w": weights(n)}, 23)
            for kind, more, held, n in (
                ("Layer", "axis=-1", 2, 8), ("RMS", "axis=-1", 1, 8), ("Lp", "axis=1", 0, 0),
                ("Instance", "epsilon=0.1", 2, 4), ("Group", "num_groups=2", 2, 4))
        },
        "norm in parts": of("z = Conv(x, w); m = ReduceMean(z, l); d = Sub(z, m); p = Pow(d, t); "
            "v = ReduceMean(p, l); e = Add(v, n); s = Sqrt(e); o = Div(d, s); y = Flatten(o)",
            l=ints(-1), t=number(2), n=number(0.1)),
        "root of squares in parts": of("p = Mul(x, x); v = ReduceMean(p, l); e = Add(n, v); "
            "s = Sqrt(e); r = Reciprocal(s); y = Mul(r, x)", l=ints(-1, -2), n=number(0.1)),
        **{f"Arg{kind}": model(f"y = Arg{kind}<{more}>(x)", IMAGE, kinds=(1, TensorProto.INT64))
            for kind, more in (("Max", "axis=1, keepdims=0"), ("Min", "axis=-1"))},
        "products": of("t = Transpose<perm=[0, 1, 3, 2]>(x); a = MatMul(x, t); "
            "b = MatMul(w, a); y = Softmax<axis=1>(b)", w=weights(3, 9)),
        "MaxPool dilated": one("MaxPool", IMAGE, kernel_shape=[2, 3], dilations=[2, 3],
            pads=[1, 2, 0, 1], strides=[2, 1]),
        "Upsample": model('y = Upsample<mode="nearest">(x, f)', IMAGE,
            {"f": np.array([1, 1, 3, 1], np.float32)}, opset=9),
        "Transpose inside": of("t = Transpose<perm=[0, 1, 3, 2]>(x); y = Conv(t, w)",
            w=weights(5, c, 3, 2)),
        "MatMul": one("MatMul", (1, 12), weights(12, 5)),
        "MatMul of positions": one("MatMul", (1, 7, 12), weights(12, 5)),
        "BatchNormalization": one("BatchNormalization", IMAGE, *norm),
        "MaxPool": one("MaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]),
        "MaxPool ceiled": one("MaxPool", IMAGE, kernel_shape=[2, 3], strides=[2, 3], ceil_mode=1),
        "AveragePool": one("AveragePool", IMAGE, kernel_shape=[3, 3], strides=[2, 2],
            pads=[1, 1, 1, 1]),
        "AveragePool counted": one("AveragePool", IMAGE, kernel_shape=[3, 3], strides=[2, 1],
            pads=[1, 0, 1, 2], count_include_pad=1),
        "ReduceMean": one("ReduceMean", IMAGE, ints(2, 3), keepdims=0),
        "ReduceMean kept": one("ReduceMean", IMAGE, ints(-2, -1)),
        "ReduceMean old": one("ReduceMean", IMAGE, opset=13, axes=[2, 3]),
        "ReduceMean of columns": of("m = ReduceMean(x, w); f = Flatten(m); y = Gemm(f, d)",
            w=ints(3), d=weights(c * 9, 3)),
        "ReduceMax": one("ReduceMax", IMAGE, ints(2, 3), keepdims=0),
        "Sum with a constant": one("Sum", IMAGE, weights(c, 1, 1)),
        "Add number": one("Add", IMAGE, number(1.5)),
        "Add channels": one("Add", IMAGE, weights(c, 1, 1)),
        "Add image": one("Add", IMAGE, weights(*IMAGE)),
        "Add branches": of("a = Conv(x, w); y = Add(a, x)"),
        "Sum": of("a = Conv(x, w); b = Relu(x); y = Sum(a, x, b)"),
        "Sub": of("a = Conv(x, w); y = Sub(x, a)"),
        "Sub from constant": of("y = Sub(c, x)", c=number(1)),
        "Mul": of("a = Conv(x, w); y = Mul(x, a)"),
        "Mul gate": of("p = GlobalAveragePool(x); a = Conv(p, w); s = Sigmoid(a); y = Mul(x, s)"),
        "Mul wider": of("m = GlobalAveragePool(x); y = Mul(m, c)", c=weights(c, 2, 3)),
        "Div": one("Div", IMAGE, np.abs(weights(c, 1, 1)) + np.float32(0.5)),
        "Div of constant": of("e = Exp(x); a = Add(e, c); y = Div(c, a)", c=number(1)),
        "Max": one("Max", IMAGE, number(0.25)),
        "Min": one("Min", IMAGE, number(0.25)),
        "Clip": one("Clip", IMAGE, number(-0.5), number(1.25)),
        "Clip from above": one("Clip", IMAGE, None, number(1.25)),
        "Add old": one("Add", IMAGE, weights(c), opset=6, axis=1, broadcast=1),
        "Clip old": one("Clip", IMAGE, opset=6, min=0.0, max=6.0),
        "PRelu": one("PRelu", IMAGE, weights(c, 1, 1)),
        "Pow": one("Pow", IMAGE, number(2)),
        "Cast": model([N("Cast", ["x"], ["a"], to=TensorProto.DOUBLE), N("Cast", ["a"], ["b"],
            to=TensorProto.FLOAT), "y = Abs(b)"], IMAGE),
        "Concat": of("a = Conv(x, w); y = Concat<axis=1>(a, x)", w=weights(3, c, 1, 1)),
        "Concat constants": of("a = Relu(x); y = Concat<axis=1>(z, a, r)",
            z=np.zeros(IMAGE, np.float32), r=weights(1, 2, *IMAGE[2:])),
        "ConvTranspose of rows": model("d = Gemm(x, m); t = Reshape(d, r); "
            "s = ConvTranspose(t, w); y = Flatten(s)", (1, 5),
            {"m": weights(5, 12), "r": ints(1, 3, 4), "w": weights(3, 2, 3)}),
        "Concat rows": of("a = Relu(x); y = Concat<axis=-2>(a, x)"),
        "Pad": one("Pad", IMAGE, ints(0, 0, 1, 2, 0, 0, 0, 1)),
        "Max of three": of("a = Conv(x, w); y = Max(a, x, c)", c=weights(4, 1, 1)),
        "Min of three": of("a = Conv(x, w); y = Min(x, a, c)", c=number(0.3)),
        "Div of two": of("a = Conv(x, w); s = Sigmoid(a); d = Add(s, c); y = Div(x, d)",
            c=number(0.5)),
        "Where of two": of("a = Conv(x, w); m = Greater(a, x); y = Where(m, a, x)"),
        "And, Not": of("l = Less(x, n); g = Greater(x, k); b = And(l, g); m = Not(b); "
            "f = Cast<to=1>(m); y = Add(f, x)", n=number(0.5), k=number(-0.2)),
        "Cast to integers": of("a = Mul(x, n); i = Cast<to=6>(a); y = Cast<to=1>(i)", n=number(9)),
        "Size": of("n = Size(x); f = Cast<to=1>(n); y = Div(x, f)"),
        **{f"{name}": of(f"m = {name}(n, x); y = Where(m, x, k)", n=number(0.2), k=number(-0.5))
           for name in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual")},
        "Equal": of("r = Round(x); e = Equal(r, k); y = Where(e, k, x)", k=number(1)),
        "Swish": one("Swish", IMAGE, opset=24, alpha=1.3),
        "QuickGelu": one("QuickGelu", IMAGE, domain="com.microsoft"),
        "Pad by edges": one("Pad", IMAGE, ints(0, 0, 1, 2, 0, 0, 2, 1), mode="edge"),
        "Pad by mirrors": one("Pad", IMAGE, ints(0, 1, 0, 2, 0, 0, 3, -1), mode="reflect"),
        "Pad round": one("Pad", IMAGE, ints(0, 0, 1, 2, 0, 1, 2, 0), mode="wrap"),
        "Pad by a number": one("Pad", IMAGE, ints(0, 0, -1, 2, 0, 1, 2, 0), number(0.5)),
        "Pad of axes": one("Pad", IMAGE, ints(1, 2), None, ints(3)),
        "Pad old": one("Pad", IMAGE, opset=2, pads=[0, 0, 1, 0, 0, 1, 0, 2]),
        "Softmax": one("Softmax", (1, 10)),
        "Softmax old": one("Softmax", (1, 10), opset=11),
        "Softmax of channels": one("Softmax", IMAGE, axis=1),
        "LogSoftmax": one("LogSoftmax", (1, 10)),
        "Transpose first": model("a = Transpose<perm=[0, 3, 1, 2]>(x); b = Conv(a, w); "
            "y = Transpose<perm=[0, 2, 3, 1]>(b)", (1, 7, 6, 4), {"w": weights(5, 4, 3, 3)}),
        "Reshape computed":
            of("s = Shape(x); batch = Gather(s, zero); b1 = Unsqueeze(batch, zeros); "
            "shape = Concat<axis=0>(b1, rest); f = Reshape(x, shape); y = MatMul(f, w)",
            zero=np.array(0, np.int64), zeros=ints(0), rest=ints(-1), w=weights(4 * 9 * 8, 3)),
        "Reshape that copies": model("a = Reshape(x, s); y = Gemm(a, w)", (1, 12, 1, 1),
            {"s": ints(0, -1), "w": weights(12, 5)}),
        "Squeeze, Unsqueeze":
            of("p = GlobalAveragePool(x); a = Squeeze(p, n); y = Unsqueeze(a, n)", n=ints(2, 3)),
        "open batch": model("y = Abs(x)", ("n", 4, 5, 5)),
        "constants folded": model([N("Cast", ["half"], ["h"], to=TensorProto.FLOAT),
            "v = Mul(w, h)", "t = Transpose<perm=[1, 0]>(v)",
            N("Constant", [], ["b"], value=numpy_helper.from_array(weights(5))),
            "y = Gemm(x, t, b)"], (1, 12), {"w": weights(5, 12), "half": np.float16(0.5)}),
    }  # fmt: skip


def small_network(seed: int = 0, classes: int = 5) -> onnx.ModelProto:
    """A residual network with squeeze-excitation and parts, as onnxruntime's tools quantize it."""
    random = np.random.default_rng(seed)

    def w(*shape: int) -> Array:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    constants = {
        "w1": w(8, 3, 3, 3), "b1": w(8, 1).ravel(), "w2": w(8, 1, 3, 3), "b2": w(8, 1).ravel(),
        "w3": w(8, 8, 1, 1), "b3": w(8, 1).ravel(), "w4": w(8, 8, 1, 1), "b4": w(8, 1).ravel(),
        "w5": w(classes, 16 * 4 * 4), "b5": w(classes, 1).ravel(),
    }  # fmt: skip
    nodes = [
        N("Conv", ["x", "w1", "b1"], ["a"], name="stem", pads=[1, 1, 1, 1]),
        N("Relu", ["a"], ["ar"], name="stem_relu"),
        N("Conv", ["ar", "w2", "b2"], ["d"], name="depthwise", pads=[1, 1, 1, 1], group=8),
        N("Clip", ["d", "zero", "six"], ["dr"], name="depthwise_relu6"),
        N("Conv", ["dr", "w3", "b3"], ["p"], name="pointwise"),
        N("Add", ["ar", "p"], ["s"], name="add"),
        N("GlobalAveragePool", ["s"], ["g"], name="mean"),
        N("Conv", ["g", "w4", "b4"], ["e"], name="excite"),
        N("Sigmoid", ["e"], ["es"], name="gate"),
        N("Mul", ["s", "es"], ["m"], name="scale"),
        N("Split", ["m"], ["l", "r"], name="split", axis=1, num_outputs=2),
        N("Pad", ["l", "pads"], ["lp"], name="pad"),
        N("Slice", ["lp", "from", "to", "axis"], ["ls"], name="slice"),
        N("Concat", ["r", "ls"], ["j"], name="join", axis=1),
        N("MaxPool", ["j"], ["mp"], name="maxpool", kernel_shape=[2, 2], strides=[2, 2]),
        N("AveragePool", ["j"], ["ap"], name="averagepool", kernel_shape=[2, 2],
          strides=[2, 2]),
        N("Concat", ["mp", "ap"], ["c"], name="concat", axis=1),
        N("Flatten", ["c"], ["f"], name="flatten"),
        N("Gemm", ["f", "w5", "b5"], ["y"], name="dense", transB=1),
    ]  # fmt: skip
    constants |= {
        "zero": number(0), "six": number(6), "pads": ints(0, 0, 0, 1, 0, 0, 0, 0), "from": ints(0),
        "to": ints(8), "axis": ints(3),
    }  # fmt: skip
    return model(nodes, (1, 3, 8, 8), constants)


class Frames(CalibrationDataReader):
    def __init__(self, frames: Array) -> None:
        self.frames = iter([{"x": frame[None]} for frame in frames])

    def get_next(self) -> Any:
        return next(self.frames, None)


def quantized(
    made: onnx.ModelProto, folder: Path, frames: Array, form: QuantFormat = QuantFormat.QDQ,
    kind: QuantType = QuantType.QInt8, **options: Any,
) -> Path:  # fmt: skip
    """The file that onnxruntime's tool makes of ``made`` and of what ``frames`` (n, c, h, w) give
    in it, with int8 weights of 7 bits."""
    onnx.save(made, folder / "float.onnx")
    quantize_static(
        folder / "float.onnx", folder / "net.onnx", Frames(frames), quant_format=form,
        activation_type=kind, weight_type=QuantType.QInt8, reduce_range=True, **options,
    )  # fmt: skip
    return folder / "net.onnx"
