"""The form in which a plan runs each operator: its steps, their order, the inputs overwritten."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pipeline.plan.unrolled import walk
from pipeline.plan.vocabulary import Clear, Compute, Finish, Plan

BY_ROWS, BY_COLUMNS, MIXED = "by rows", "by columns", "by rows and columns"
BY_CHANNELS, IN_TURNS = "channel by channel", "in turns with others"
Order = tuple[tuple[int, ...], ...]


@dataclass
class Form:
    """
    Attributes:
        steps: calls of its kernel.
        order: of its outputs, where it is another than row-major, or its steps and others' mix.
        over: tensors that it reads and whose place it takes, or part of it.
        first, last: numbers in the unrolled plan.
    """

    layer: str
    first: int
    last: int
    steps: int = 0
    order: tuple[str, ...] = ()
    over: list[str] = field(default_factory=list)

    @property
    def said(self) -> str:
        """``at once, by columns, over its input``."""
        steps = "at once" if self.steps == 1 else f"in {self.steps:,} steps"
        return ", ".join((steps, *self.order, *(["over its input"] if self.over else ())))

    def content(self) -> dict[str, object]:
        return {"layer": self.layer, "form": self.said, "steps": self.steps, "over": self.over}


def forms(plan: Plan) -> dict[str, Form]:
    """Return the form of each operator, by its name, in the order in which they begin."""
    found, orders, met = dict[str, Form](), dict[str, set[str]](), dict[tuple[str, str], bool]()
    for number, event in enumerate(walk(plan)):
        if not isinstance(step := event.step, Compute | Clear | Finish):
            continue
        form = found.setdefault(step.op, Form(step.op, number, number))
        form.last = number
        if not isinstance(step, Compute):
            continue
        form.steps += 1
        out = plan.buffer[step.out.buffer]
        if step.order:
            orders.setdefault(step.op, set()).add(traversal(step.order))
        *whole, channels = zip(step.out.size, out.shape, strict=True)
        if len(whole) == 2 and channels[0] < channels[1] and all(n == most for n, most in whole):
            orders.setdefault(step.op, set()).add(BY_CHANNELS)
        for piece in step.ins:
            held = plan.buffer[piece.buffer]
            key = held.name, out.name
            if key not in met:
                met[key] = held.role == "activation" and held.meets(out)
            if met[key] and held.tensor not in form.over:
                form.over.append(held.tensor)
    turns = _in_turns([form for form in found.values() if form.steps])
    for name, form in found.items():
        mixed = [IN_TURNS] if name in turns else []
        form.order = (*mixed, *sorted(orders.get(name, ())))
    return {name: form for name, form in found.items() if form.steps}


def traversal(order: Order) -> str:
    """Name a step's order of pixels; pixels along one axis are a row."""
    places = np.array(order)
    if len(places.shape) < 2 or places.shape[1] < 2:
        return BY_ROWS
    for axis, name in ((0, BY_ROWS), (1, BY_COLUMNS)):
        lines = places[:, axis]
        if np.count_nonzero(np.diff(lines)) + 1 == len(np.unique(lines)):
            return name
    return MIXED


def _in_turns(each: list[Form]) -> set[str]:
    """Operators that begin before others have ended."""
    found, ahead = set[str](), list[Form]()
    for form in sorted(each, key=lambda form: (form.first, form.last)):
        ahead = [before for before in ahead if before.last > form.first]
        found |= {one.layer for one in (*ahead, form)} if ahead else set()
        ahead.append(form)
    return found
