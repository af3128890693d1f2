"""C functions, one for all steps that differ in addresses and ranges only."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.render import render
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.errors import ThimbleError

WRITTEN = "out"
"""The name of the view that a kernel writes its result to."""

SCRATCH, ASIDE = "scratch", "aside"
"""Names of the views that it may destroy; in the second it keeps outputs."""


@dataclass(frozen=True)
class Use:
    """One call of a kernel.

    Attributes:
        views: by their names in the kernel.
        values: ranges and the like, by their names in the kernel.
        apart: whether no view shares a byte with what is written.
        lines: where in ``nn_orders`` the order of pixels begins, if it is not row by row.
    """

    views: Mapping[str, View]
    values: Mapping[str, Value]
    apart: bool
    lines: int | None = None


def stride_name(view: str, axis: int) -> str:
    """Name the argument that has a view's stride along an axis."""
    return f"{view}_{('row', 'column', 'plane')[axis]}"


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
    shared: dict[str, Any]
    calls: list[Use] = field(default_factory=list)

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
        words = self._words(varying)
        return [name for name in varying if name in words]

    def _words(self, arguments: list[str]) -> set[str]:
        """Return those of the code, without its comments."""
        code = re.sub(r"/\*.*?\*/", "", self._rendered(arguments, ""), flags=re.DOTALL)
        return set(re.findall(r"\w+", code))

    def code(self) -> str:
        # pointers to what is looked up, or is empty, are the arena's start: equal ones may not be
        # called apart
        views = [view for call in self.calls for view in call.views.values()]
        at_start = self._looked_up or any(view.empty for view in views)
        apart = not at_start and all(call.apart for call in self.calls)
        restrict = "restrict " if apart else ""
        parameters = [
            f"{'' if name in (WRITTEN, SCRATCH, ASIDE) else 'const '}{view.type} *{restrict}{name}"
            for name, view in self.calls[0].views.items()
        ]
        parameters += [f"const nn_place_t *{name}_places" for name in self._looked_up]
        parameters += ["const nn_order_t *lines"] * (self.calls[0].lines is not None)
        values = (f"int32_t {name}" for name in self.arguments)
        return self._rendered(self.arguments, ", ".join((*parameters, *values)))

    @cached_property
    def _looked_up(self) -> list[str]:
        """Views whose elements are found through a table. All calls have to be known.

        Raises:
            ThimbleError: for code that does not ask the table: it would read something else.
        """
        words = self._words(self.arguments)
        names = [name for name, view in self.calls[0].views.items() if view.lookup]
        for name in names:
            if f"{name}_places" not in words:
                raise ThimbleError(
                    f"{self.name}: {self.template} cannot find the rows or pixels of {name}, which "
                    "lie anywhere: please report it"
                )
        return names

    def _rendered(self, arguments: list[str], signature: str) -> str:
        first = self.calls[0]
        views = {name: _argued(view, arguments) for name, view in first.views.items()}
        values = {n: n if n in arguments else str(value) for n, value in first.values.items()}
        return render(
            f"{self.template}.c.j2", name=self.name, about=self.about, signature=signature,
            v=values, views=views, source=views.get("in"), held=views.get("weights"),
            out=views[WRITTEN], **self.shared,
        )  # fmt: skip

    def call(self, number: int) -> Call:
        use = self.calls[number]
        arguments = [view.pointer for view in use.views.values()]
        arguments += [use.views[name].places for name in self._looked_up]
        if use.lines is not None:
            arguments.append(Argument(f"&nn_orders[{PLACE}]", Value(use.lines)))
        arguments += [Argument(PLACE, use.values[name]) for name in self.arguments]
        return Call(self.name, tuple(arguments))


def _argued(view: View, arguments: Sequence[str]) -> View:
    """Add the names of those of its strides that are arguments."""
    names = ((axis, stride_name(view.name, axis)) for axis in range(len(view.strides) - 1))
    return replace(view, stride_names={axis: name for axis, name in names if name in arguments})
