"""From when to when each piece of memory that a schedule uses is needed.

Steps are numbered through: one for an operator alone; for a loop one to open it, one for each
operator in it, and one to finish what it accumulated. A loop's body is one pass: its rings of
channels are needed within a pass only, whatever it reads or writes whole through all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.strategies.partial.schedule import Loop, Schedule, Step

Scratch = Callable[[str, str, int], int]
Form = Literal["whole", "ring", "tile", "sums", "scratch"]


@dataclass(frozen=True)
class Piece:
    """A tensor in one form, needed from step ``first`` to ``last``; of each axis ``held`` indices
    at once. It begins where the piece ``over`` lies, if that names one. Scratch is bytes beside the
    operator that makes the tensor."""

    tensor: str
    form: Form
    held: tuple[int, ...]
    first: int
    last: int
    over: str = ""

    @property
    def elements(self) -> int:
        return prod(self.held)

    @property
    def name(self) -> str:
        return self.tensor if self.form == "whole" else f"{self.tensor}.{self.form}"


def lives(
    plan: Schedule,
    graph: Graph,
    start: str,
    makers: Mapping[str, Operator],
    scratch: Scratch = lambda tensor, rule, at_once: 0,
) -> list[Piece]:
    """All pieces, in the order in which they are first needed.

    Args:
        scratch: bytes that the operator that makes a tensor needs, given its name and, of a step in
            a loop, its rule and how many channels are computed at once; otherwise "" and 0.
    """
    shapes = {name: graph.tensors[name].shape for name in (start, *makers)}
    found = {start: Piece(start, "whole", shapes[start], 0, 0)}
    now = 0

    def use(name: str, step: int) -> None:
        found[name] = replace(found[name], last=max(found[name].last, step))

    def beside(name: str, step: int, rule: str = "", at_once: int = 0) -> None:
        if needed := scratch(name, rule, at_once):
            piece = Piece(name, "scratch", (needed,), step, step)
            found[piece.name] = piece

    for place, part in enumerate(plan):
        now += 1
        if isinstance(part, Step):
            op = makers[part.tensor]
            over = _overwritten(op, graph, _read_after(plan, place, makers))
            found[part.tensor] = Piece(
                part.tensor, "whole", shapes[part.tensor], now, now, over if over in found else ""
            )
            for name in op.inputs:
                use(name, now)
            beside(part.tensor, now)
            continue
        opened, now = now, now + 1
        closed = opened + 1 + sum(not step.view for step in part.steps)
        for name in part.made_by("concatenate"):
            found[name] = Piece(name, "whole", shapes[name], opened, closed)
        for name in part.made_by("accumulate"):
            sums = Piece(name, "sums", shapes[name], opened, closed)
            found[sums.name] = sums
            found[name] = Piece(name, "whole", shapes[name], closed, closed, sums.name)
        for step in part.steps:
            if step.view:
                if step.rule == "slice":
                    use(step.tensor, closed)
                continue
            if step.rule != "accumulate" and step.tensor not in found:
                ring = (*shapes[step.tensor][:-1], part.at_once)
                piece = Piece(step.tensor, "ring", ring, now, now)
                found[piece.name] = piece
            for name in makers[step.tensor].inputs:
                ring_name = f"{name}.ring"
                if ring_name in found and step.rule != "generate":
                    use(ring_name, now)
                else:
                    use(name, closed)
            beside(step.tensor, now, step.rule, part.at_once)
            now += 1
    use(graph.output, now)
    return list(found.values())


def _read_after(plan: Schedule, place: int, makers: Mapping[str, Operator]) -> set[str]:
    rest = (s for p in plan[place + 1 :] for s in (p.steps if isinstance(p, Loop) else (p,)))
    return {name for s in rest for name in ((s.tensor,) if s.view else makers[s.tensor].inputs)}


def _overwritten(op: Operator, graph: Graph, later: set[str]) -> str:
    """The input whose place the output takes: one that dies here."""
    dying = set(op.overwritable(graph.tensors)) - later - {graph.output}
    return next((name for name in op.inputs if name in dying), "")
