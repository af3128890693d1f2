"""Small sound plans of one dense layer to spoil, in several forms, and ways to change them."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from types import FunctionType
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.lookup import Lookup
from pipeline.hardware import Memory
from pipeline.plan.maps import Map
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Clear,
    Compute,
    Finish,
    Index,
    Move,
    Plan,
    Signal,
    Slice,
    Step,
    Track,
    Wait,
    packed,
    whole,
)
from tests.plan.fixtures import constants, of_bytes
from tests.strategies.chains import Chain

Subject = tuple[Plan, Graph]
Change = Callable[[Plan], Plan]

MEMORIES = (
    Memory("sram", 128),
    Memory("flash", 256, "rom"),
    Memory("stream", 8, "stream"),
    Memory("card", 256, "block", 16),
)


def like_x(name: str, byte: int, **fields: Any) -> Buffer:
    """Another place for the input."""
    return replace(Buffer(name, "x", "sram", (4,), 8, packed((4,), 8, 2 * byte)), **fields)


def sums(name: str = "acc", bits: int = 32, byte: int = 16, step: int = 1) -> Buffer:
    """Accumulators of the layer ``y``."""
    return Buffer(name, "y", "sram", (3,), bits, packed((3,), bits, 2 * byte), "accumulator", step)


def scratch(byte: int, name: str = "scratch", **fields: Any) -> Buffer:
    return like_x(name, byte, **{"tensor": "", "role": "scratch"} | fields)


def plan_of(
    buffers: tuple[Buffer, ...], *steps: Step, resident: tuple[str, ...] = ("x",), output: str = "y"
) -> Plan:
    return Plan("chain", "by hand", MEMORIES, buffers, (Track("cpu", steps),), resident, (output,))


def layer(weights: int | None = None) -> Subject:
    """``y = W x + b``: 4 bytes at byte 0 of sram to three 16-bit numbers at byte 8; W, b in flash.

    ``weights``: what all of them are, instead of random ones.
    """
    graph = of_bytes(np.random.default_rng(0), (4,), outputs=3)
    if weights is not None:
        values = {**graph.constants, "y.weight": np.full((3, 4), weights)}
        graph = replace(graph, constants=values)
    fixed = constants(graph)
    y = Buffer("y", "y", "sram", (3,), 16, packed((3,), 16, 16))
    buffers = like_x("x", 0), y, *fixed
    step = Compute("y", whole(y), tuple(map(whole, (buffers[0], *fixed))))
    return plan_of(buffers, step, resident=("x", "y.weight", "y.bias")), graph


def halves(first: Buffer | None = None, second: Buffer | None = None, *between: Step) -> Subject:
    """The layer in two halves of its sums, with ``between`` between them.

    ``first`` is cleared and added to, then ``second`` is added to and finished; by default both
    are 32-bit sums at byte 16.
    """
    plan, graph = layer()
    first = first or sums()
    second = second or first
    steps = (
        Clear("y", whole(first)),
        part(first, 0),
        *between,
        part(second, 2),
        Finish("y", whole(second), whole(plan.buffer["y"]), (whole(plan.buffer["y.bias"]),)),
    )
    return edited(plan, *steps, buffers=(first, second)), graph


def part(acc: Buffer, low: Index, size: int = 2, weights: Index | None = None) -> Compute:
    """``size`` of the four products of each sum, with the ``weights`` from there on."""
    weight = Slice("y.weight", (0, low if weights is None else weights), (3, size))
    return Compute("y", whole(acc), (Slice("x", (low,), (size,)), weight), partial=True)


def fetched() -> Subject:
    """The weights come from a card in one move; ``io`` signals, ``cpu`` waits."""
    plan, graph = layer()
    card = replace(plan.buffer["y.weight"], memory="card")
    ram = replace(card, name="ram", memory="sram", role="activation", map=packed((3, 4), 8, 128))
    step = step_of(plan)
    use = replace(step, ins=(step.ins[0], whole(ram), step.ins[2]))
    io, cpu = (Move(whole(card), whole(ram)), Signal("there")), (Wait("there", 1), use)
    return side_by_side(edited(plan, *io, *cpu, buffers=(card, ram)), io, cpu), graph


def streamed(*indices: int, map: Map | None = None) -> Subject:
    """The input arrives as a stream: one move for each of ``indices``, then the layer."""
    plan, graph = layer()
    arriving = like_x("arriving", 0, memory="stream", **({"map": map} if map else {}))
    moves = [Move(Slice("arriving", (n,), (1,)), Slice("x", (n,), (1,))) for n in indices]
    plan = edited(plan, *moves, step_of(plan), buffers=(arriving,))
    return replace(plan, resident=("arriving", *plan.resident[1:])), graph


def two_frames(*each: tuple[Index, Index, Index], frames: int = 2, **fields: Any) -> Subject:
    """Two inputs and two outputs, one layer for each: frame, copy of the input, of the output."""
    plan, graph = layer()
    x = replace(plan.buffer["x"], copies=2, copy_stride=8, map=packed((4,), 8, 64))
    y = replace(plan.buffer["y"], **{"copies": 2, "copy_stride": 16, **fields})
    steps = (of_frame(*numbers) for numbers in each or ((0, 0, 0), (1, 1, 1)))
    plan = replace(plan, frames=frames, buffers=(x, y, *plan.buffers[2:]))
    return edited(plan, *steps), graph


def of_frame(frame: Index, source: Index, target: Index) -> Compute:
    step = step_of(layer()[0])
    read = replace(step.ins[0], copy=source)
    out = replace(step.out, copy=target)
    return replace(step, frame=frame, out=out, ins=(read, *step.ins[1:]))


def of_one(op: Operator, x: Buffer, y: Buffer, *steps: Step, more: tuple[Buffer, ...]) -> Subject:
    """A plan of one operator without parameters."""
    graph = Chain(x.shape, "uint8", source="x").add(op, "uint8").graph()
    return plan_of((x, y, *more), *steps), graph


def looked_up(base: int, stride: int = 2, **fields: Any) -> Subject:
    """A table's look-up of four bytes from nibble 16 on, to ``base``."""
    op = Lookup("y", ("x",), "y", table=tuple(range(256)))
    x, y = like_x("x", 8), replace(like_x("y", 0), tensor="y", map=Affine(base, (stride,)))
    step = replace(Compute("y", whole(y), (whole(x),)), **fields)
    return of_one(op, x, y, step, more=())


# --- changes


def edited(plan: Plan, *steps: Step, buffers: tuple[Buffer, ...] = ()) -> Plan:
    """``plan`` with other steps, if any are given, and with ``buffers`` in place of those of their
    names, or added. All at once: there is no plan in between that could be refused."""
    held = {buffer.name: buffer for buffer in (*plan.buffers, *buffers)}
    tracks = (Track("cpu", steps),) if steps else plan.tracks
    return replace(plan, buffers=tuple(held.values()), tracks=tracks)


def side_by_side(plan: Plan, *tracks: tuple[Step, ...]) -> Plan:
    named = tuple(Track(f"track{n}", steps) for n, steps in enumerate(tracks))
    return replace(plan, tracks=named)


def step_of(plan: Plan) -> Compute:
    """The last step of a plan of one track without loops."""
    step = plan.tracks[0].steps[-1]
    assert isinstance(step, Compute)
    return step


def _changed(old: Any, fields: dict[str, Any]) -> Any:
    """A field that is given as a function is made from what it was."""
    made = {k: v(getattr(old, k)) for k, v in fields.items() if isinstance(v, FunctionType)}
    return replace(old, **fields | made)


def buffer(name: str, **fields: Any) -> Change:
    return lambda plan: edited(plan, buffers=(_changed(plan.buffer[name], fields),))


def step(*more: Buffer, **fields: Any) -> Change:
    """``layer``'s only step changed, and more buffers."""
    return lambda plan: edited(plan, _changed(step_of(plan), fields), buffers=more)


def plan_with(**fields: Any) -> Change:
    return lambda plan: _changed(plan, fields)


def memory(number: int = 0, **change: Any) -> Change:
    return plan_with(
        memories=lambda each: (*each[:number], replace(each[number], **change), *each[number + 1 :])
    )


def before(*steps: Step, buffers: tuple[Buffer, ...] = (), **fields: Any) -> Change:
    """``steps``, then the layer's, changed."""
    return lambda plan: edited(plan, *steps, _changed(step_of(plan), fields), buffers=buffers)


def moved(name: str, byte: int, **fields: Any) -> Change:
    """``name`` packed from ``byte`` on."""

    def change(plan: Plan) -> Plan:
        here = plan.buffer[name]
        return buffer(name, map=packed(here.shape, here.bits, 2 * byte), **fields)(plan)

    return change


def then(*changes: Change) -> Change:
    return lambda plan: reduce(lambda made, change: change(made), changes, plan)


def on(subject: Subject, change: Change) -> Subject:
    return change(subject[0]), subject[1]
