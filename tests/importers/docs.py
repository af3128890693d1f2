"""Writes the operators that can be imported into the documentation:
``python -m tests.importers.docs``."""

import textwrap
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from pipeline.home import ROOT
from pipeline.importers import tflite, tflite_float

PAGE = ROOT / "docs" / "importing.md"
KINDS = {
    "convolutions, products, norms": ("weighted", "norms"), "recurrent": ("recurrent",),
    "pools": ("pooling",), "arithmetic": ("arithmetic",), "shapes": ("shapes", "slices"),
    "functions": ("functions",), "quantized": ("quantized",),
}  # fmt: skip
"""What a row has, and ends of the names of the modules that import it."""


def kinds(of: str) -> Iterator[tuple[str, list[str]]]:
    """What each row has of a front end; ATen's ``aten.conv2d.default`` is ``conv2d``. What only
    PyTorch's decompositions and its quantizer make is left out."""
    for kind, ends in KINDS.items():
        modules = [f"pipeline.importers.{of}_{end}" for end in ends]
        found = [import_module(module).OPERATORS for module in modules if find_spec(module)]
        every = [name.removeprefix("aten.").partition(".")[0] for each in found for name in each]
        left_out = ("_", "<", "quantized_decomposed")
        yield kind, sorted({name for name in every if not name.startswith(left_out)})


def table(of: str) -> str:
    rows = [f"| {kind} | {', '.join(names)} |" for kind, names in kinds(of) if names]
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
    for kind, text in (("tflite", of_tflite()), ("torch", table("torch")), ("onnx", table("onnx"))):
        begin = f"<!-- {kind}: written by python -m tests.importers.docs -->\n"
        end = f"<!-- {kind}: end -->\n"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}{text}{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text()))
