"""Constants that an ONNX model keeps in files beside it, as PyTorch's exporter writes them.

Source: onnx.proto, ``TensorProto.external_data``: ``location`` is relative to the model's folder,
``offset`` and ``length`` are bytes in the file. Paths are kept inside of the model's folder: a
model may come from anyone. No PyTorch here: the runner asks for the files, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import TensorProto, helper

from pipeline.errors import ThimbleError
from pipeline.importers.onnx_names import shown, text

MOST_DIGITS = 18
"""Most digits of an offset or a length: no file's size has more."""


def is_external(tensor: TensorProto) -> bool:
    return bool(tensor.data_location == TensorProto.EXTERNAL or tensor.external_data)


@dataclass
class ExternalFiles:
    """The files beside a model: in ``folder`` or below; at most ``budget_bytes`` are read."""

    folder: Path
    budget_bytes: int

    def taken_in(self, tensor: TensorProto, what: str) -> TensorProto:
        """``tensor`` with the bytes that its file holds; ``what`` is what messages call it.

        Raises:
            ThimbleError: the file is elsewhere, missing or too short, or the sizes do not fit.
        """
        entries = {text(entry.key): text(entry.value) for entry in tensor.external_data}
        location = shown(entries.get("location", ""))
        path = self.inside(entries.get("location", ""), what)
        kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
        wanted = prod(int(extent) for extent in tensor.dims) * kind.itemsize
        offset = _number(entries.get("offset", "0"), f"{what}: its offset in {location}")
        length = _number(entries.get("length", str(wanted)), f"{what}: its length in {location}")
        if length != wanted:
            shape = list(tensor.dims)[:8]
            raise ThimbleError(f"{what}: {length:,} bytes in {location} for {shape} of {kind}, "
                               f"which are {wanted:,}")  # fmt: skip
        self.budget_bytes -= wanted
        if self.budget_bytes < 0:
            raise ThimbleError(f"{what}: the constants beside the model are too large: is it one?")
        found = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        try:
            if path.stat().st_size >= offset + wanted:
                with path.open("rb") as file:
                    file.seek(offset)
                    found.raw_data = file.read(wanted)
        except OSError as error:
            raise ThimbleError(f"{what} is in {location}: {error.strerror}") from None
        if len(found.raw_data) != wanted:
            raise ThimbleError(
                f"{what} is at bytes {offset:,} to {offset + wanted:,} of {location}, which ends "
                "before: was it copied whole?"
            )
        return found

    def inside(self, location: str, what: str) -> Path:
        """Return the file at ``location``, links followed."""
        try:
            folder = self.folder.resolve()
            path = (folder / location).resolve()
            here, there = path.is_relative_to(folder), path.is_file()
        except (OSError, ValueError, RuntimeError):  # too long, a null byte, a circle of links
            here, there = True, False
        if not location or not here:
            raise ThimbleError(
                f"{what} is in {shown(location) or 'a file without a name'}, outside of the "
                "model's folder: only files in it are read; move or copy it there"
            )
        if not there:
            raise ThimbleError(
                f"{what} is in {shown(location)}, and there is no such file beside the model: "
                "copy it there, too"
            )
        return path


def files(model: Path) -> dict[str, Path]:
    """Return the files beside ``model``, by how it names them; only those that are there, and none
    of what is no model."""
    parsed, external = onnx.ModelProto(), ExternalFiles(model.parent, 0)
    try:
        parsed.ParseFromString(model.read_bytes())
    except (DecodeError, ValueError, RecursionError, OSError):
        return {}
    named = {
        text(entry.value) for tensor in _tensors(parsed) for entry in tensor.external_data
        if entry.key == "location"
    }  # fmt: skip
    found = {}
    for location in sorted(named):
        with suppress(ThimbleError):  # the stage that reads it says so
            found[location] = external.inside(location, "")
    return found


def _tensors(model: onnx.ModelProto) -> Iterator[TensorProto]:
    yield from model.graph.initializer
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise ThimbleError(f"{what} is {shown(text)!r}, not a number of bytes")
    return int(text)
