"""A loop over channels (Liberis & Lane, "Pex", 2023): some of them pass through several operators,
and what they become is added to sums or put beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Literal

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Clear, Lin, Loop, Step, whole
from pipeline.schedules.bounds import Box, Range, added, all_of
from pipeline.schedules.draft import Draft

Rule = Literal["continue", "generate", "accumulate"]


@dataclass(frozen=True)
class Pass:
    """A pass over some channels: ``continue`` or ``generate`` them, or ``accumulate`` them to the
    sums of ``op``; ``over``: the input whose channels' place they take."""

    rule: Rule
    op: Operator
    over: str = ""


@dataclass(frozen=True)
class Channels:
    """``at_once`` of ``channels`` channels after the other.

    Attributes:
        var: the loop's variable.
        whole: tensors that are whole after the loop, though their channels are made one by one.
    """

    var: str
    channels: int
    at_once: int
    passes: tuple[Pass, ...] = ()
    whole: tuple[str, ...] = ()

    @property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(each.op for each in self.passes)

    @property
    def accumulated(self) -> list[str]:
        """Tensors that are summed up."""
        return [each.op.output for each in self.passes if each.rule == "accumulate"]

    def steps(self, draft: Draft) -> list[Step]:
        sums = {name: draft.sums(name) for name in self.accumulated}
        for name in self.whole:
            draft.hold(name)
        makers = {op.output: op for op in self.operators}
        opened = [Clear(makers[name].name, whole(acc)) for name, acc in sums.items()]
        body = tuple(self._one(each, draft) for each in self.passes)
        closed = [
            draft.finish(makers[name], whole(acc), whole(draft.hold(name, over=acc.name)))
            for name, acc in sums.items()
        ]
        return [*opened, Loop(self.var, -(-self.channels // self.at_once), body), *closed]

    def _one(self, each: Pass, draft: Draft) -> Step:
        op, shape = each.op, draft.graph.tensors[each.op.output].shape
        if each.rule == "accumulate":
            acc = draft.buffer(draft.graph.beside(op.output, "sums"))
            made, (*_, some) = all_of(shape), self._some(shape)
            return draft.add(op, acc, made, added(op, draft.graph.tensors, made, some))
        if op.output in self.whole:
            out = draft.buffer(op.output)
        else:
            how = {"within": self.var, "over": draft.home.get(each.over, "")}
            out = draft.hold(op.output, (*shape[:-1], self.at_once), "ring", **how)
        return draft.compute(op, out, self._some(shape), over=[each.over] * bool(each.over))

    def _some(self, shape: tuple[int, ...]) -> Box:
        """Return the channels of a pass."""
        return (*all_of(shape[:-1]), Range(Lin(0, ((self.var, self.at_once),)), self.at_once))


@dataclass(frozen=True)
class ChannelByChannel:
    """A channel of ``op`` is computed apart, then takes the place of the one that it was made of,
    as in TinyEngine (Lin et al., MCUNet, 2020)."""

    op: Operator

    def steps(self, draft: Draft) -> list[Step]:
        source, var = self.op.inputs[0], f"channel_{self.op.output}"
        shape = draft.graph.tensors[self.op.output].shape
        ring = draft.hold(self.op.output, (*shape[:-1], 1), "ring", within=var)
        channel = (*all_of(shape[:-1]), Range(Lin(0, ((var, 1),)), 1))
        made = draft.compute(self.op, ring, channel)
        out = draft.hold(self.op.output, over=draft.home[source])
        return [Loop(var, shape[-1], (made, draft.move(ring, out, channel)))]


@dataclass(frozen=True)
class Pooled:
    """``at_once`` channels of an image after the other, each pooled by ``op`` as soon as ``maker``,
    which reads single pixels, has made it: the image, often the widest, is never whole.

    Attributes:
        again: multiply–accumulates that are repeated.
        rows: of its result that are made together.
    """

    graph: Graph = field(repr=False, compare=False)
    maker: Operator
    op: Operator
    at_once: int
    again: int = 0
    rows: int = 1

    @property
    def inner(self) -> tuple[str, ...]:
        """Tensors that are never whole, nor any row of them."""
        return (self.maker.output,)

    @property
    def outer(self) -> tuple[str, ...]:
        """Tensors that rows are read of."""
        return self.maker.inputs

    @property
    def held(self) -> int:
        """Nibbles that it has of the image."""
        image = self.graph.tensors[self.maker.output]
        return prod(image.shape[:-1]) * self.at_once * image.dtype.bits // 4

    @property
    def each(self) -> tuple[Pooled]:
        """Return the steps that make its rows: itself."""
        return (self,)

    def steps(self, draft: Draft) -> list[Step]:
        image, pooled = (draft.graph.tensors[op.output].shape for op in (self.maker, self.op))
        var = f"channel_{self.op.output}"
        ring = draft.hold(self.maker.output, (*image[:-1], self.at_once), "ring", within=var)
        some = Range(Lin(0, ((var, self.at_once),)), self.at_once)
        made = draft.compute(self.maker, ring, (*all_of(image[:-1]), some))
        out = draft.buffer(draft.home[self.op.output])
        body = made, draft.compute(self.op, out, (*all_of(pooled[:-1]), some))
        return [Loop(var, -(-image[-1] // self.at_once), body)]
