"""A schedule and its buffers as the steps of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.graph.access import Operand, Window, clipped
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.reshape import Reshape
from pipeline.graph.tensor import Box
from pipeline.plan.vocabulary import (
    Buffer,
    Clear,
    Compute,
    Finish,
    Index,
    Lin,
    Slice,
    whole,
)
from pipeline.plan.vocabulary import Loop as PlanLoop
from pipeline.plan.vocabulary import Step as PlanStep
from pipeline.strategies.partial.schedule import Loop, Schedule, Step


@dataclass(frozen=True)
class Range:
    """The channels of one pass: from ``var * size`` on."""

    var: str
    size: int

    @property
    def start(self) -> Index:
        return Lin(0, ((self.var, self.size),))


@dataclass(frozen=True)
class Emitter:
    """``buffers`` by name; constants have their tensors' names."""

    graph: Graph
    buffers: Mapping[str, Buffer]
    makers: Mapping[str, Operator]

    def steps(self, plan: Schedule) -> tuple[PlanStep, ...]:
        found: list[PlanStep] = []
        for place, part in enumerate(plan):
            if isinstance(part, Step):
                found.append(self.full(part))
            else:
                found += self.loop(part, f"channel{place}")
        return tuple(found)

    def full(self, step: Step) -> Compute:
        op, out = self.makers[step.tensor], self.buffers[step.tensor]
        ins = tuple(
            self.read(op, name, None) for name in dict.fromkeys(o.tensor for o in self.operands(op))
        )
        return Compute(op.name, whole(out), ins, unit(op, out.shape), scratch=self.beside(step))

    def loop(self, loop: Loop, var: str) -> list[PlanStep]:
        part = Range(var, loop.at_once)
        sums = loop.made_by("accumulate")
        opened = [Clear(self.makers[t].name, whole(self.buffers[f"{t}.sums"])) for t in sums]
        body = [self.pass_of(step, loop, part) for step in loop.steps if not step.view]
        closed = [self.finish(tensor) for tensor in sums]
        return [*opened, PlanLoop(var, -(-loop.channels // loop.at_once), tuple(body)), *closed]

    def pass_of(self, step: Step, loop: Loop, part: Range) -> Compute:
        """One operator of a loop for the channels of one pass."""
        op = self.makers[step.tensor]
        if step.rule == "accumulate":
            acc = whole(self.buffers[f"{step.tensor}.sums"])
            ins = (self.channels(self.held(op.inputs[0]), part), self.weights_of(op, part))
            pixel = (*[1] * (len(acc.size) - 1), acc.size[-1])
            return Compute(op.name, acc, ins, pixel, partial=True, scratch=self.beside(step))
        out = self.channels(self.held(step.tensor), part)
        names = dict.fromkeys(operand.tensor for operand in self.operands(op))
        read = tuple(self.read(op, name, part) for name in names)
        return Compute(op.name, out, read, unit(op, out.size), scratch=self.beside(step))

    def beside(self, step: Step) -> tuple[str, ...]:
        name = f"{step.tensor}.scratch"
        return (name,) if name in self.buffers else ()

    def finish(self, tensor: str) -> Finish:
        """Elements one by one: each lies no higher than the sums it is made of."""
        op = self.makers[tensor]
        out = whole(self.buffers[tensor])
        bias = tuple(whole(self.buffers[o.tensor]) for o in op.completion(self.graph.tensors))
        return Finish(op.name, whole(self.buffers[f"{tensor}.sums"]), out, bias)

    def held(self, tensor: str) -> Buffer:
        """A tensor by channels: its ring, or a view of all of it."""
        return self.buffers.get(f"{tensor}.ring") or self.buffers[tensor]

    def operands(self, op: Operator) -> list[Operand]:
        terms = [operand for term in op.terms(self.graph.tensors) for operand in term.operands]
        return [*terms, *op.completion(self.graph.tensors)]

    def channels(self, buffer: Buffer, part: Range) -> Slice:
        zeros, rest = (0,) * (len(buffer.shape) - 1), buffer.shape[:-1]
        return Slice(buffer.name, (*zeros, part.start), (*rest, part.size))

    def read(self, op: Operator, name: str, part: Range | None) -> Slice:
        """What ``op`` reads of ``name``: all that it needs, or, along the axis that follows the
        output's channels, those of the pass."""
        buffer = self.held(name) if part and self.follows(op, name) else self.buffers[name]
        lows, sizes = list[Index](), list[int]()
        target = self.graph.tensors[op.output]
        boxes = [
            clipped(operand.region(target.box), buffer.shape)
            for operand in self.operands(op)
            if operand.tensor == name
        ]
        for axis, (low, high) in enumerate(_hull(boxes)):
            if part and self.follows(op, name, axis):
                lows.append(part.start)
                sizes.append(part.size)
            else:
                lows.append(low)
                sizes.append(high - low)
        return Slice(buffer.name, tuple(lows), tuple(sizes))

    def follows(self, op: Operator, name: str, axis: int | None = None) -> bool:
        """Index c along ``axis`` (any) of ``name`` is read by channel c of the output and no other
        channel."""
        target = self.graph.tensors[op.output]
        last, extents = len(target.shape) - 1, self.graph.tensors[name].shape
        windows = [operand.windows for operand in self.operands(op) if operand.tensor == name]
        axes = range(len(extents)) if axis is None else (axis,)
        return any(
            all(each[a] == Window(last) for each in windows) and extents[a] == target.shape[-1]
            for a in axes
        )

    def weights_of(self, op: Operator, part: Range) -> Slice:
        """What the channels of a pass are multiplied by: weights end with the input's channels."""
        weights = self.buffers[op.parameters[0]]
        if weights.shape[-1] == self.graph.tensors[op.inputs[0]].shape[-1]:
            return self.channels(weights, part)
        return whole(weights)  # of a grouped convolution: channels of a group


def unit(op: Operator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """What a kernel reads the inputs of before it writes any of it: one element, all of a reshape,
    otherwise a pixel."""
    if op.element_wise:
        return ()
    if isinstance(op, Reshape):
        return shape
    if len(shape) == 1 and op.combine != "whole":
        return (1,)
    return (*[1] * (len(shape) - 1), shape[-1])


def _hull(boxes: list[Box]) -> Box:
    return tuple(
        (min(low for low, _ in ranges), max(high for _, high in ranges))
        for ranges in zip(*boxes, strict=True)
    )
