"""Names of what is not supported, as the user knows it, and messages that say what is, as
docs/importing.md does."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from onnx import helper
from torch import nn
from torch.nn import functional as F

from pipeline.errors import ThimbleError
from pipeline.importers import onnx, torch_operators
from pipeline.importers.tflite import TFLite
from pipeline.importers.torch_export import exported
from pipeline.importers.unsupported import INSTEAD
from tests.importers.docs import PAGE, current, kinds
from tests.importers.onnx_models import N, imported, model, parsed, weights
from tests.importers.tflite_writer import Writer
from tests.importers.torch_modules import Of
from tests.programs import refusal
from tests.tiers import quick

IMAGE = torch.zeros(1, 8, 6, 6)


def refused(module: nn.Module, example: torch.Tensor = IMAGE) -> str:
    text = refusal(lambda: exported("net", module.eval(), example))
    assert "\n" not in text and len(text) < 400
    return text


def test_plain_recurrent_layers() -> None:
    layer = nn.RNN(36, 6, batch_first=True)
    said = refused(Of(lambda m, x: m.layer(x.flatten(2))[0], layer=layer))
    assert said.startswith("layer (nn.RNN, torch_modules.py:")
    assert "nn.RNN is not supported; of recurrent layers LSTM and GRU are" in said


FUNCTIONS: list[tuple[Callable[..., Any], str]] = [
    (lambda m, x: F.scaled_dot_product_attention(x, x, x, x @ x.mT), "mask that is computed is"),
    (lambda m, x: F.conv3d(x[:, :, None], torch.zeros(4, 8, 1, 3, 3)), "the operator conv3d is"),
    (lambda m, x: torch.fft.rfft(x).abs(), "the operator fft_rfft is not supported"),
    (lambda m, x: x.relu_()[:, :, ::7, 0:0], "takes nothing along axis 3 of [1, 8, 1, 6]"),
    (lambda m, x: x.mean(0) + 1, "not the batch's"),
    (lambda m, x: x.cumsum(2), "cumsum is not supported; docs/importing.md lists"),
    (lambda m, x: torch.ones(3), "does not depend on its input"),
    (lambda m, x: x.abs() if x.sum() > 0 else x, "torch.export cannot trace it"),
]


@pytest.mark.parametrize(("call", "said"), quick(3, FUNCTIONS))
def test_functions_of_pytorch(call: Callable[..., Any], said: str) -> None:
    assert said in refused(Of(call))


MODULES: list[tuple[nn.Module, str | None]] = [
    (nn.Unfold(3), "not supported"),
    (nn.MaxPool2d(2, return_indices=True), "only the first result"),
    *((layer, None) for layer in (
        nn.Threshold(0.1, 0.0),
        nn.Hardshrink(), nn.RReLU(), nn.LogSigmoid(), nn.FractionalMaxPool2d(2, 3),
        nn.LocalResponseNorm(2), nn.CircularPad2d(1), nn.LogSoftmax(1),
        nn.Softshrink(), nn.AdaptiveMaxPool2d(4),
        nn.Fold((6, 6), 3, padding=1), nn.Tanhshrink(),
    )),
]  # fmt: skip


@pytest.mark.parametrize(
    ("layer", "said"), quick(4, MODULES), ids=lambda item: type(item).__name__
)  # fmt: skip
def test_a_module_is_imported_or_named(layer: nn.Module, said: str | None) -> None:
    """By its place in the network and by its class."""
    example = torch.zeros(1, 8 * 9, 36) if isinstance(layer, nn.Fold) else IMAGE
    try:
        exported("net", nn.Sequential(nn.ReLU(), layer).eval(), example)
        text = ""
    except ThimbleError as error:
        text = str(error)
        assert f"1 (nn.{type(layer).__name__}" in text or "outputs" in text
    assert said is None or said in text


def test_an_unsupported_operator_says_where_it_is() -> None:
    net = nn.Sequential()
    net.add_module("stem", nn.Conv2d(8, 4, 1))
    net.add_module("odd", Of(lambda m, x: torch.cumsum(x, 1)))
    assert re.match(r"odd \(torch_modules\.py:\d+\): the operator cumsum", refused(net))
    net.add_module("wide", nn.FractionalMaxPool2d(2, 3))
    net.add_module("pool", nn.AvgPool2d(2, divisor_override=3))
    net.add_module("more", Of(lambda m, x: torch.cumsum(x, 1)))
    assert re.fullmatch(
        r"operators that are not supported: cumsum \(2 times, first odd \(torch_modules\.py:\d+\)\)"
        r", fractional_max_pool2d \(wide \(nn\.FractionalMaxPool2d\)\), avg_pool2d \(pool \(nn\."
        r"AvgPool2d\): average pooling with a divisor of its own is not supported\); .*",
        refused(net),
    )  # fmt: skip


BODY = {"body": helper.make_graph([], "body", [], [])}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "RNN": {"activations": ["Tanh", "Sigmoid"]}, "If": BODY, "Loop": BODY
}  # fmt: skip
OPERATORS = ["RNN", "If", "Loop", "TopK", "CumSum"]


def test_all_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    net = Writer()
    x, *more = (net.tensor((1, 4), 0.1, 0) for _ in range(6))
    kinds = ["CUMSUM", "TANH", "BUCKETIZE", "CUMSUM", "TANH"]
    for kind, one, two in zip(kinds, [x, *more], more, strict=False):
        net.operator(kind, [one], [two])
    (tmp_path / "net.tflite").write_bytes(net.content([x], more[-1:]))
    said = refusal(TFLite(str(tmp_path / "net.tflite")).graph).partition(": ")[2]
    assert said == (
        "operators that are not supported: CUMSUM (2 times, first operator 0), TANH (2 times, "
        "first operator 1: its output has the scale 0.1 and the zero point 0, expected 0.0078125 "
        "and 0), BUCKETIZE (operator 2); docs/importing.md lists what is"
    )
    made = model('a = Frob(x); i = Count(a); b = Upsample<mode="odd">(x, c)'
                 "; d = Reshape(x, i); y = Odd(d)", (1, 2, 6, 6),
                 {"c": weights(4)}, opset=9)  # fmt: skip
    assert refusal(lambda: imported("net", parsed(made), (0.0, 1.0))) == (
        "operators that are not supported: Frob (a (Frob)), Count (i (Count)), Upsample (b "
        "(Upsample): mode odd: nearest, linear and cubic are supported), Odd (y (Odd)); "
        "docs/importing.md lists what is"
    )


@pytest.mark.parametrize("source", ["a", "w"])
@pytest.mark.parametrize("name", OPERATORS)
def test_onnx(name: str, source: str) -> None:
    """Refuse it on activations and on constants, whatever the types of its attributes."""
    held = ATTRIBUTES.get(name, {})
    made = model([N("Relu", ["x"], ["a"]), N(name, [source, "w"], ["y"], name="memory", **held)],
                 (1, 8), {"w": weights(8, 8)})  # fmt: skip
    hint = INSTEAD.get(name.lower(), "docs/importing.md lists what is")
    said = refusal(lambda: imported("net", parsed(made), (0.0, 1.0)))
    expected = f"memory ({name}): the operator {name} is not supported; {hint}"
    assert said == expected or (name == "TopK" and said.startswith(expected))


def test_the_lists_are_current() -> None:
    page = PAGE.read_text()
    assert page == current(page), "run python -m tests.importers.docs"
    assert page.count(": written by python -m tests.importers.docs") == page.count(": end -->") == 3
    for of, every in (("torch", torch_operators.supported()), ("onnx", onnx.supported())):
        assert {name for _, names in kinds(of) for name in names} == set(every)
