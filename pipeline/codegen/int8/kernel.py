"""C functions, one for all steps that differ in addresses and ranges only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipeline.codegen.int8 import nest
from pipeline.codegen.int8.values import Value
from pipeline.codegen.int8.views import View
from pipeline.codegen.render import render

WRITTEN = "out"
"""The name of the view that a kernel writes its result to."""

SCRATCH = "scratch"
"""Of the one that it may destroy."""


@dataclass(frozen=True)
class Call:
    """
    Attributes:
        views: by their names in the kernel.
        values: ranges and the like, by their names in the kernel.
        apart: whether no view shares a byte with what is written.
    """

    views: Mapping[str, View]
    values: Mapping[str, Value]
    apart: bool


@dataclass
class Kernel:
    """A template with the shapes that all calls share; what varies between them is an argument.

    Attributes:
        template: its file below firmware/kernels, without ``.c.j2``.
        about: of the comment above it.
        shared: what the template knows besides views and values.
    """

    name: str
    template: str
    about: str
    shared: Mapping[str, Any]
    calls: list[Call] = field(default_factory=list)

    @cached_property
    def arguments(self) -> list[str]:
        """Values that are not one number in all calls, and that the code asks for. All calls have
        to be known."""
        first = self.calls[0].values
        varying = [
            name
            for name, value in first.items()
            if not value.known or any(call.values[name] != value for call in self.calls)
        ]
        words = set(re.findall(r"\w+", self._rendered(varying, "")))
        return [name for name in varying if name in words]

    def code(self) -> str:
        restrict = "restrict " if all(call.apart for call in self.calls) else ""
        views = (
            f"{'' if name in (WRITTEN, SCRATCH) else 'const '}{view.type} *{restrict}{name}"
            for name, view in self.calls[0].views.items()
        )
        values = (f"int32_t {name}" for name in self.arguments)
        return self._rendered(self.arguments, ", ".join((*views, *values)))

    def _rendered(self, arguments: list[str], signature: str) -> str:
        first = self.calls[0]
        values = {n: n if n in arguments else str(value) for n, value in first.values.items()}
        return render(
            f"{self.template}.c.j2",
            name=self.name,
            about=self.about,
            signature=signature,
            v=values,
            product=nest.product,
            offset=nest.offset,
            minus=nest.minus,
            times=nest.times,
            total=nest.total,
            centred=nest.centred,
            source=first.views.get("in"),
            out=first.views[WRITTEN],
            **self.shared,
        )

    def statement(self, number: int) -> str:
        call = self.calls[number]
        pointers = (view.pointer for view in call.views.values())
        ranges = (str(call.values[name]) for name in self.arguments)
        return f"{self.name}({', '.join((*pointers, *ranges))});"
