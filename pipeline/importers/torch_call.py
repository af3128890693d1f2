"""One call of an ATen operator, as its importer sees it; arguments are those of ATen's schemas
(https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/native_functions.yaml)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from pipeline.importers.builder import Builder, array
from pipeline.importers.float_graph import Shape
from pipeline.importers.float_nodes import Floats
from pipeline.importers.layout import Value


@dataclass(frozen=True, eq=False)
class Stepped:
    """A constant of integers times ``steps``, one or one for each index of ``axis``."""

    values: torch.Tensor
    steps: Floats
    axis: int


@dataclass(frozen=True)
class Call:
    """One call of an operator; ``shape`` is its result's."""

    builder: Builder
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shape: Shape

    def get(self, index: int, name: str, default: Any = None) -> Any:
        """Return the argument at ``index`` or of this name."""
        return self.args[index] if index < len(self.args) else self.kwargs.get(name, default)

    @property
    def x(self) -> Value:
        found = self.get(0, "self", self.kwargs.get("input"))
        if not isinstance(found, Value):
            raise self.builder.refuse("a constant where an activation is expected")
        return found

    def constant(self, index: int, name: str) -> Floats | None:
        """Return a parameter; an activation in its place is refused."""
        found = self.get(index, name)
        if isinstance(found, Value):
            raise self.builder.refuse(f"{name} is computed from the input, a constant is expected")
        return None if found is None else floats(found)

    def steps(self, index: int, name: str, axis: int = 0) -> Floats | None:
        """Return the steps that a parameter's values are multiples of, one or one for each index of
        ``axis``, where they are known."""
        found = self.get(index, name)
        known = isinstance(found, Stepped) and (found.steps.size == 1 or found.axis == axis)
        return found.steps if known else None


def floats(item: Any) -> Floats:
    item = item.values if isinstance(item, Stepped) else item
    return array(item.detach().cpu().double().numpy() if isinstance(item, torch.Tensor) else item)


def required(call: Call, index: int, name: str) -> Floats:
    found = call.constant(index, name)
    assert found is not None
    return found


Table = Mapping[str, Callable[[Call], Value | list[Value]]]
"""Importers by the name of the operator's overload; a list holds several results."""
