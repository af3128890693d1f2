"""Small networks whose first layers absorb their input's scaling in different ways, as each of the
files that a network arrives in. Weights are random, and inputs fill a range."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from tflite.Padding import Padding
from torch import nn

from pipeline.graph.graph import Graph
from pipeline.importers.lower import range_affine
from pipeline.importers.onnx import Onnx
from pipeline.importers.torch_model import TorchModel
from pipeline.models.network import state_arrays
from pipeline.quantize.int8 import Int8
from tests.importers.onnx_models import Array, N, model
from tests.importers.test_onnx_quantized import Frames
from tests.importers.tflite_reference import imported
from tests.importers.tflite_writer import Writer

SHAPE, CHANNELS, SIDE = (1, 3, 6, 6), 3, 6
Limits = tuple[float, float]


class Scaled(nn.Module):
    """The network's own normalization, to -1…1."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.factor, self.offset = 2 / (high - low), -(high + low) / (high - low)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor + self.offset


def normed(low: float, high: float) -> nn.Module:
    norm = nn.BatchNorm2d(CHANNELS)
    norm.running_mean = torch.tensor([0.4, 0.5, 0.6]) * (high - low) + low
    norm.running_var = (torch.tensor([0.2, 0.3, 0.4]) * (high - low)) ** 2
    return norm


FIRST: dict[str, Callable[[float, float], list[nn.Module]]] = {
    "padded": lambda *limits: [nn.Conv2d(CHANNELS, 4, 3, padding=1), nn.ReLU()],
    "unpadded": lambda *limits: [nn.Conv2d(CHANNELS, 4, 3), nn.ReLU()],
    "dense": lambda *limits: [nn.Flatten(), nn.Linear(CHANNELS * SIDE**2, 8), nn.ReLU()],
    "pooled": lambda *limits: [nn.AvgPool2d(2), nn.Conv2d(CHANNELS, 4, 2), nn.ReLU()],
    "batch-normed": lambda *limits: [normed(*limits), nn.Conv2d(CHANNELS, 4, 3, padding=1)],
    "batch-normed, unpadded": lambda *limits: [normed(*limits), nn.Conv2d(CHANNELS, 4, 3)],
    "scaled": lambda *limits: [Scaled(*limits), nn.Conv2d(CHANNELS, 4, 3, padding=1)],
}


def made(first: str, low: float, high: float) -> nn.Sequential:
    """The network, from (n, 3, 6, 6) to (n, 3)."""
    torch.manual_seed(3)
    layers = FIRST[first](low, high)
    layers += [nn.Flatten()] * (first != "dense")
    size = nn.Sequential(*layers).eval()(torch.zeros(SHAPE)).shape[1]
    return nn.Sequential(*layers, nn.Linear(size, 3)).eval()


ONNX: dict[type[nn.Module], tuple[str, dict[str, Any]]] = {
    nn.Conv2d: ("Conv", {}), nn.Linear: ("Gemm", {"transB": 1}), nn.ReLU: ("Relu", {}),
    nn.Flatten: ("Flatten", {}), nn.BatchNorm2d: ("BatchNormalization", {}),
    nn.AvgPool2d: ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Scaled: ("Add", {}),
}  # fmt: skip


def float_onnx(network: nn.Sequential) -> onnx.ModelProto:
    nodes, held = list[onnx.NodeProto](), dict[str, Array]()
    for index, layer in enumerate(network):
        name = "x" if index == 0 else f"t{index}"
        out = "y" if index == len(network) - 1 else f"t{index + 1}"
        own = {f"{index}.{key}": value.numpy() for key, value in layer.state_dict().items()}
        own = {key: value for key, value in own.items() if value.ndim}
        kind, options = ONNX[type(layer)]
        if isinstance(layer, Scaled):
            held["factor"] = np.array(layer.factor, np.float32)
            nodes.append(N("Mul", [name, "factor"], ["scaled"]))
            name, own = "scaled", {"offset": np.array(layer.offset, np.float32)}
        if isinstance(layer, nn.Conv2d):
            options = {"pads": [int(layer.padding[0])] * 4}
        held |= own
        nodes.append(N(kind, [name, *own], [out], **options))
    return model(nodes, SHAPE, held)


def of_onnx(folder: Path, first: str, limits: Limits, raw: Array, real: Array) -> Graph:
    onnx.save(float_onnx(made(first, *limits)), folder / "net.onnx")
    network = Onnx(str(folder / "net.onnx"), input_range=limits).float_graph()
    assert network is not None
    return Int8().from_float(network, {"train_images": raw})


def of_torch(folder: Path, first: str, limits: Limits, raw: Array, real: Array) -> Graph:
    given = {"first": first, "low": limits[0], "high": limits[1]}
    own = TorchModel((SIDE, SIDE, CHANNELS), 3, f"{__name__}:made", given, input_range=limits)
    return Int8().graph("net", own, state_arrays(own.build()), {"train_images": raw})


def of_quantized(form: QuantFormat) -> Callable[..., Graph]:
    def build(folder: Path, first: str, limits: Limits, raw: Array, real: Array) -> Graph:
        onnx.save(float_onnx(made(first, *limits)), folder / "float.onnx")
        quantize_static(
            folder / "float.onnx", folder / "net.onnx", Frames(real.astype(np.float32)),
            quant_format=form, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
        return Onnx(str(folder / "net.onnx"), input_range=limits).graph()

    return build


def of_tflite(folder: Path, first: str, limits: Limits, raw: Array, real: Array) -> Graph:
    """As the converter quantizes it; scalings of the input are depthwise convolutions."""
    net, x, order = Writer(), torch.from_numpy(real).float(), np.arange(0)
    affine = range_affine(*limits)
    given = source = net.tensor((1, SIDE, SIDE, CHANNELS), affine.scale, affine.zero_point)
    for layer in made(first, *limits):
        image, x = x.shape[1:], layer(x).detach()
        dims = (1, *x.shape[2:], x.shape[1]) if x.ndim == 4 else (1, x.shape[1])
        before, affine = net.tensors[source], range_affine(float(x.min()), float(x.max()))
        scale, zero = affine.scale, affine.zero_point
        if isinstance(layer, (nn.Flatten, nn.AvgPool2d)):
            scale, zero = before["scales"], before["zeros"]
        target = net.tensor(dims, scale, zero)
        steps: dict[str, Any] = {"Padding": Padding.VALID, "StrideH": 1, "StrideW": 1}
        if isinstance(layer, nn.Flatten):
            order = np.arange(x.shape[1]).reshape(image).transpose(1, 2, 0).ravel()
            net.operator("RESHAPE", [source], [target])
        elif isinstance(layer, nn.ReLU):
            net.operator("RELU", [source], [target])
        elif isinstance(layer, nn.AvgPool2d):
            steps |= {"FilterHeight": 2, "FilterWidth": 2, "StrideH": 2, "StrideW": 2}
            net.operator("AVERAGE_POOL_2D", [source], [target], "Pool2DOptions", **steps)
        elif isinstance(layer, nn.Linear):
            weights = parameters(net, before, layer.weight.detach()[:, order], layer.bias)
            order = np.arange(x.shape[1])
            net.operator("FULLY_CONNECTED", [source, *weights], [target], "FullyConnectedOptions")
        elif isinstance(layer, nn.Conv2d):
            weights = parameters(net, before, layer.weight.permute(0, 2, 3, 1), layer.bias)
            steps["Padding"] = Padding.SAME if layer.padding[0] else Padding.VALID
            net.operator("CONV_2D", [source, *weights], [target], "Conv2DOptions", **steps)
        else:
            ends = (layer(torch.full((1, CHANNELS, 1, 1), n)) for n in (0.0, 1.0))
            offset, factor = (each.detach().reshape(CHANNELS) for each in ends)
            weights = parameters(net, before, (factor - offset)[:, None], offset, depthwise=True)
            net.operator("DEPTHWISE_CONV_2D", [source, *weights], [target],
                         "DepthwiseConv2DOptions", DepthMultiplier=1, **steps)  # fmt: skip
        source = target
    return imported(net.content([given], [source]), folder)


def parameters(
    net: Writer, source: dict[str, Any], weights: torch.Tensor, bias: torch.Tensor,
    depthwise: bool = False,
) -> tuple[int, int]:  # fmt: skip
    """int8 with a scale for each channel, or one for all of a dense layer, and int32."""
    real = weights.detach().double().numpy()
    scales = np.abs(real).reshape(len(real), -1).max(1) / 127
    if real.ndim == 2 and not depthwise:
        scales = np.full_like(scales, scales.max())
    stored = np.rint(real / scales.reshape(-1, *(1,) * (real.ndim - 1))).astype(np.int8)
    units = scales * float(source["scales"][0])
    biases = np.rint(bias.detach().double().numpy() / units).astype(np.int32)
    if depthwise:
        stored = stored.reshape(1, 1, 1, -1)
    one = real.ndim == 2 and not depthwise
    kept = scales[:1] if one else scales
    return (
        net.constant(stored, kept, axis=3 if depthwise else 0),
        net.constant(biases, units[:1] if one else units),
    )


KINDS: dict[str, Callable[..., Graph]] = {
    "float ONNX": of_onnx,
    "PyTorch": of_torch,
    "QDQ": of_quantized(QuantFormat.QDQ),
    "QOperator": of_quantized(QuantFormat.QOperator),
    "TFLite": of_tflite,
}
