"""One node of an ONNX graph, as its importer sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError
from pipeline.importers.builder import Builder, array
from pipeline.importers.float_graph import Affine
from pipeline.importers.float_nodes import Floats
from pipeline.importers.layout import Value
from pipeline.importers.onnx_file import FileNode


@dataclass(frozen=True, eq=False)
class Constant:
    """Known values; ``steps`` broadcasts to them, where they are integer multiples of it."""

    values: npt.NDArray[Any]
    steps: Floats | None = None

    @property
    def floats(self) -> Floats:
        return array(self.values)


SHIFT = 128
"""Offset taken off uint8: int8 is left, which stands for the same real values; of uint16 256 times
as much."""


@dataclass(frozen=True, eq=False)
class Stored:
    """An activation as the integers that stand for it; ``affine`` is None for an input whose
    quantization is still to come. ``unsigned``: ``SHIFT`` more than what is stored here."""

    value: Value
    affine: Affine | None
    unsigned: bool

    def zero_point(self, affine: Affine) -> int:
        """Return the file's, of ``affine``, as it is stored here."""
        return affine.zero_point + (SHIFT << affine.bits - 8 if self.unsigned else 0)


Item = Value | Constant | Stored
"""Anything that a name of the file stands for."""


@dataclass(frozen=True)
class Call:
    """``items`` are the inputs, None where one is left out."""

    builder: Builder
    node: FileNode
    items: tuple[Item | None, ...]
    opset: int

    def refuse(self, reason: str) -> ThimbleError:
        return self.builder.refuse(reason)

    def item(self, index: int) -> Item | None:
        return self.items[index] if index < len(self.items) else None

    def value(self, index: int = 0) -> Value:
        """Return an activation as real numbers."""
        found = self.item(index)
        if isinstance(found, Value):
            return found
        what = {type(None): "missing", Constant: "a constant"}.get(type(found), "quantized")
        raise self.refuse(f"input {index} is {what}, a float activation is expected")

    @property
    def x(self) -> Value:
        return self.value(0)

    @property
    def reals(self) -> list[Value | Floats]:
        """All inputs."""
        items = enumerate(self.items)
        return [i.floats if isinstance(i, Constant) else self.value(n) for n, i in items]

    def optional(self, index: int) -> Constant | None:
        found = self.item(index)
        if found is None or isinstance(found, Constant):
            return found
        raise self.refuse(f"input {index} is computed from the network's input, not a constant")

    def constant(self, index: int) -> Constant:
        found = self.optional(index)
        if found is None:
            raise self.refuse(f"input {index} is missing")
        return found

    def integers(self, index: int, name: str) -> tuple[int, ...] | None:
        """Return a list of integers: an attribute in old opsets, an input in new ones."""
        if name in self.node.attributes:
            return self.many(name)
        found = self.optional(index)
        if found is None:
            return None
        if found.values.dtype.kind not in "iu":
            raise self.refuse(f"{name} are not integers")
        return tuple(int(each) for each in found.values.reshape(-1))

    def many(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        return tuple(int(each) for each in self._attribute(name, default, tuple, "a list"))

    def integer(self, name: str, default: int) -> int:
        return int(self._attribute(name, default, int, "an integer"))

    def number(self, name: str, default: float) -> float:
        return float(self._attribute(name, default, (int, float), "a number"))

    def text(self, name: str, default: str) -> str:
        return str(self._attribute(name, default, str, "a text"))

    def _attribute(self, name: str, default: Any, kind: Any, said: str) -> Any:
        found = self.node.attributes.get(name, default)
        if not isinstance(found, kind):
            raise self.refuse(f"the attribute {name} is not {said}")
        return found

    def axis(self, axis: int, rank: int) -> int:
        if not -rank <= axis < rank:
            raise self.refuse(f"axis {axis} of {rank}")
        return axis % rank


Table = Mapping[str, Callable[[Call], Item | list[Item]]]
"""Importers by the operator's name; a list holds several results."""


def scalar(call: Call, index: int, default: float) -> float:
    """Return one number, from a constant input."""
    found = call.optional(index)
    if found is None:
        return default
    if found.values.size != 1:
        raise call.refuse(f"input {index} has {found.values.size} elements, one is expected")
    return float(np.asarray(found.values).reshape(-1)[0])
