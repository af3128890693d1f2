"""Writes the operators that can be imported into the documentation:
``python -m tests.importers.docs``."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.home import ROOT
from pipeline.importers import (
    onnx_arithmetic,
    onnx_functions,
    onnx_norms,
    onnx_pooling,
    onnx_quantized,
    onnx_recurrent,
    onnx_shapes,
    onnx_slices,
    onnx_weighted,
    tflite,
    tflite_float,
    torch_arithmetic,
    torch_functions,
    torch_norms,
    torch_pooling,
    torch_recurrent,
    torch_shapes,
    torch_weighted,
)

PAGE = ROOT / "docs" / "importing.md"
KINDS = ("convolutions, products, norms", "recurrent", "pools", "arithmetic", "shapes", "functions",
         "quantized")  # fmt: skip
TORCH = (
    {**torch_weighted.OPERATORS, **torch_norms.OPERATORS}, torch_recurrent.OPERATORS,
    torch_pooling.OPERATORS, torch_arithmetic.OPERATORS, torch_shapes.OPERATORS,
    torch_functions.OPERATORS,
)  # fmt: skip
ONNX = (
    {**onnx_weighted.OPERATORS, **onnx_norms.OPERATORS}, onnx_recurrent.OPERATORS,
    onnx_pooling.OPERATORS, onnx_arithmetic.OPERATORS,
    {**onnx_shapes.OPERATORS, **onnx_slices.OPERATORS}, onnx_functions.OPERATORS,
    onnx_quantized.OPERATORS,
)  # fmt: skip


def names(operators: Mapping[str, Any]) -> Iterable[str]:
    """ATen's ``aten.conv2d.default`` is ``conv2d``; what only PyTorch's decompositions make is
    left out."""
    short = {name.split(".")[1] if "." in name else name for name in operators}
    return sorted(each for each in short if not each.startswith(("_", "<")))


def table(kinds: Iterable[Mapping[str, Any]]) -> str:
    rows = [
        f"| {kind} | {', '.join(names(operators))} |"
        for kind, operators in zip(KINDS, kinds, strict=False)
    ]
    return "\n".join(["| | operators |", "| --- | --- |", *rows]) + "\n"


def of_tflite() -> str:
    """Operators that are supported alike share a row."""
    rows: dict[str, list[str]] = {}
    for name, form in tflite.supported().items():
        rows.setdefault(form, []).append(name)
    lines = [f"| {', '.join(names)} | {form} |" for form, names in rows.items()]
    floats = f"In float networks: {', '.join(sorted(tflite_float.OPERATORS))}."
    text = "\n".join(textwrap.wrap(floats, 120))
    return "\n".join(["| operator | supported |", "| --- | --- |", *lines, "", text]) + "\n"


def current(page: str) -> str:
    """The page with the tables as they have to be."""
    for kind, text in (("tflite", of_tflite()), ("torch", table(TORCH)), ("onnx", table(ONNX))):
        begin = f"<!-- {kind}: written by python -m tests.importers.docs -->\n"
        end = f"<!-- {kind}: end -->\n"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}{text}{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text()))
