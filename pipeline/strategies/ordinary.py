"""Whole tensors, one operator after the other, as inference engines do it; alias ``naive``.

The order with the least peak, element-wise operators in place where an input dies, and addresses
that need no more than that peak.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, clipped
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.reshape import Reshape
from pipeline.graph.tensor import Box, Tensor
from pipeline.hardware import Hardware
from pipeline.kernels import Form, scratch_bytes
from pipeline.plan.vocabulary import KEPT, Buffer, Compute, Plan, Slice, Track, packed, whole
from pipeline.strategies.arrangement import WORD, round_up
from pipeline.strategies.base import Strategy
from pipeline.strategies.constants import constants
from pipeline.strategies.placement import Placement, place
from pipeline.strategies.prologue import Prologue
from pipeline.strategies.skyline import Block
from pipeline.strategies.work import Task, Work


@dataclass(frozen=True)
class Ordinary(Strategy):
    """For any graph; ``layout`` is the chains' and means nothing here.

    Attributes:
        preserve_input: nothing is written over the input, so that it need not be given anew.
    """

    name: ClassVar[str] = "ordinary"
    preserve_input: bool = False

    def plan(self, graph: Graph, hardware: Hardware) -> Plan:
        if graph.output == graph.input or graph.output in graph.constants:
            raise ThimbleError(
                f"{graph.name} has nothing to compute: its output {graph.output} is "
                f"{'its input' if graph.output == graph.input else 'a constant'}"
            )
        prologue = Prologue.of(graph, hardware)
        if self.preserve_input and prologue.streams:
            raise ThimbleError(
                "strategy.preserve_input: on this board the input streams in and is gone "
                "once it is read; set hardware.streams_input=false, or leave preserve_input out"
            )
        operators = [op for op in needed(graph) if op is not prologue.pool]
        names = [prologue.start.name, *(op.output for op in operators)]
        number = {name: n for n, name in enumerate(names)}
        tensors = [graph.tensors[name] for name in names]
        needs = [2 * scratch_bytes(Form.whole(op, graph), hardware) for op in operators]
        aligns = [_alignment(tensor, hardware) for tensor in tensors]
        sizes = tuple(
            round_up(t.size * t.dtype.bits // 4, align)
            for t, align in zip(tensors, aligns, strict=True)
        )
        sums = [Block(prologue.sum_nibbles, 0, 0, WORD)] if prologue.pool else []

        def arranged(scratch: list[int]) -> Placement:
            tasks = tuple(
                _task(op, graph, number, cells)
                for op, cells in zip(operators, scratch, strict=True)
            )
            tasks = _keeping(tasks, 0) if self.preserve_input else tasks
            return place(Work(sizes, tasks, 0, number[graph.output]), aligns, sums)

        placed = arranged(needs)
        if any(needs) and placed.cells > room(graph, hardware):
            needs = [0] * len(needs)  # slower kernels need none
            placed = arranged(needs)
        held = {
            tensor.name: _buffer(tensor, hardware.activation_memory, address)
            for tensor, address in zip(tensors, placed.addresses, strict=False)
        }
        arriving = prologue.buffers(placed.addresses[-1] if sums else 0)
        fixed = constants(graph, hardware, placed.cells)
        frame = arriving[0] if arriving else held[names[0]]
        scratch = {
            task: _scratch(operators[task].name, hardware.activation_memory, address, needs[task])
            for task, address in zip(placed.order.tasks, placed.scratch, strict=True)
            if needs[task]
        }
        steps = tuple(
            _compute(operators[task], graph, held, scratch.get(task)) for task in placed.order.tasks
        )
        return Plan(
            graph.name,
            self.name,
            (*hardware.memories, *prologue.memories),
            (*arriving, *held.values(), *scratch.values(), *fixed),
            (Track("cpu", (*prologue.steps(arriving, held[names[0]]), *steps)),),
            (frame.name, *(buffer.name for buffer in fixed)),
            graph.output,
            notes=(
                ("order_proved", placed.order.proved),
                ("arena_proved", placed.proved),
                *(((KEPT, True),) if self.preserve_input else ()),
            ),
        )


def needed(graph: Graph) -> list[Operator]:
    """The operators that the output depends on, in the graph's order."""
    wanted, result = {graph.output}, list[Operator]()
    for op in reversed(graph.operators):
        if op.output in wanted:
            wanted.update(op.inputs)
            result.append(op)
    return result[::-1]


def _task(op: Operator, graph: Graph, number: dict[str, int], scratch: int) -> Task:
    reads = tuple(number[name] for name in dict.fromkeys(op.inputs))
    over = tuple(number[name] for name in op.overwritable(graph.tensors))
    return Task(reads, number[op.output], over, scratch)


def room(graph: Graph, hardware: Hardware) -> int:
    """Nibbles that the board leaves to the arena."""
    name = hardware.activation_memory
    held = next(memory.bytes for memory in hardware.memories if memory.name == name)
    weights = graph.weight_bytes if hardware.weight_memory == name else 0
    stack = hardware.stack_reserve_bytes if hardware.stack_memory == name else 0
    return 2 * int(held - stack - weights)


def _scratch(op: str, memory: str, address: int, nibbles: int) -> Buffer:
    shape = (nibbles // 2,)
    return Buffer(f"{op}.scratch", "", memory, shape, 8, packed(shape, 8, address), "scratch")


def _keeping(tasks: tuple[Task, ...], tensor: int) -> tuple[Task, ...]:
    """``tensor`` is there until the end: the last task, which makes the output, reads it, too."""
    *others, last = tasks
    over = tuple(each for each in last.over if each != tensor)
    return (*others, replace(last, reads=tuple(sorted({*last.reads, tensor})), over=over))


def _alignment(tensor: Tensor, hardware: Hardware) -> int:
    """Nibbles: the board's, and a multiple of an element."""
    return max(2 * hardware.alignment_bytes, tensor.dtype.bits // 4)


def _buffer(tensor: Tensor, memory: str, address: int) -> Buffer:
    bits = tensor.dtype.bits
    place = packed(tensor.shape, bits, address)
    return Buffer(tensor.name, tensor.name, memory, tensor.shape, bits, place)


def _compute(
    op: Operator, graph: Graph, held: dict[str, Buffer], scratch: Buffer | None
) -> Compute:
    """The whole output; of every operand the box that it reads."""
    target = graph.tensors[op.output]
    terms = [operand for term in op.terms(graph.tensors) for operand in term.operands]
    read: dict[str, Box] = {}
    for operand in (*terms, *op.completion(graph.tensors)):
        box = _region(operand, graph, target)
        read[operand.tensor] = _hull(read.get(operand.tensor, box), box)
    ins = tuple(
        Slice(held[name].name if name in held else name, *_corner_and_size(box))
        for name, box in read.items()
    )
    names = (scratch.name,) if scratch else ()
    return Compute(op.name, whole(held[op.output]), ins, _unit(op, target.shape), scratch=names)


def _region(operand: Operand, graph: Graph, target: Tensor) -> Box:
    return clipped(operand.region(target.box), graph.tensors[operand.tensor].shape)


def _hull(a: Box, b: Box) -> Box:
    return tuple((min(p, r), max(q, s)) for (p, q), (r, s) in zip(a, b, strict=True))


def _corner_and_size(box: Box) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(start for start, _ in box), tuple(stop - start for start, stop in box)


def _unit(op: Operator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """What a kernel reads the inputs of before it writes any of it: one element, all of a reshape,
    otherwise a pixel."""
    if op.element_wise:
        return ()
    if isinstance(op, Reshape):
        return shape
    if len(shape) == 1 and op.combine != "whole":
        return (1,)
    return (*[1] * (len(shape) - 1), shape[-1])
