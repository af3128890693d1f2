"""What hand-written attacks are made of: small sound plans to spoil.

An attack makes ``(plan, graph)``; its docstring, or the comment above it, says what a reader would
do wrong that believed the plan. Those of ``adversarial_*.py`` register themselves with ``attack``,
or several at once with ``on_layer`` and ``made``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Memory
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Clear,
    Compute,
    Finish,
    Index,
    Plan,
    Slice,
    Step,
    Track,
    packed,
    whole,
)
from tests.plan.fixtures import U8, Builder, constants
from tests.plan.outcomes import orders

Subject = tuple[Plan, Graph]


@dataclass(frozen=True)
class Attack:
    """``make`` gives the plan, unless making it is refused; the refusal contains ``message``.

    Without a message the plan may be accepted, as long as it computes what it should.
    """

    make: Callable[[], Subject]
    message: str | None


ATTACKS: dict[str, Attack] = {}

INPUTS = np.array([[[1, 2, 3, 4]], [[250, 7, 0, 99]]])
"""Two frames for ``layer`` and what is made of it."""

MEMORIES = (
    Memory("sram", 128),
    Memory("flash", 256, "rom"),
    Memory("stream", 8, "stream"),
    Memory("card", 256, "block", 16),
)


def attack(message: str | None) -> Callable[[Callable[[], Subject]], Callable[[], Subject]]:
    def register(make: Callable[[], Subject]) -> Callable[[], Subject]:
        assert make.__doc__, f"{make.__name__} does not say what it attacks"
        made((make.__name__, message, make))
        return make

    return register


Case = tuple[str, str | None, Callable[..., Any]]
"""An attack's name, its message, and what makes it."""


def on_layer(*cases: Case) -> None:
    """Attacks that change the plan of ``layer``."""
    made(*((name, message, partial(of_layer, change)) for name, message, change in cases))


def made(*cases: Case) -> None:
    """Attacks that a call makes."""
    for name, message, make in cases:
        assert name not in ATTACKS, f"two attacks are called {name}"
        ATTACKS[name] = Attack(make, message)


def activation(name: str, tensor: str, shape: tuple[int, ...], bits: int, byte: int) -> Buffer:
    return Buffer(name, tensor, "sram", shape, bits, packed(shape, bits, 2 * byte))


def sums(name: str, bits: int, byte: int, step: int = 1) -> Buffer:
    """Accumulators of the layer ``y``."""
    return Buffer(name, "y", "sram", (3,), bits, packed((3,), bits, 2 * byte), "accumulator", step)


def scratch(byte: int, size: int = 4, memory: str = "sram", tensor: str = "") -> Buffer:
    shape = (size,)
    return Buffer("scratch", tensor, memory, shape, 8, packed(shape, 8, 2 * byte), "scratch")


def layer(weights: tuple[int, ...] = ()) -> Subject:
    """``y = W x + b``: 4 bytes at byte 0 of sram to three 16-bit numbers at byte 8; W, b in flash.

    ``weights``: all of them, (3, 4), in place of random ones.
    """
    b = Builder(np.random.default_rng(0))
    b.tensor("x", (4,), U8)
    b.dense("y", "x", 3)
    if weights:
        b.constants["y.weight"] = np.array(weights, dtype=np.int64).reshape(3, 4)
    graph = b.graph("x")
    x, y = activation("x", "x", (4,), 8, 0), activation("y", "y", (3,), 16, 8)
    fixed = constants(graph)
    step = Compute("y", whole(y), (whole(x), *map(whole, fixed)))
    return plan_of((x, y, *fixed), step), graph


def plan_of(
    buffers: tuple[Buffer, ...],
    *steps: Step,
    resident: tuple[str, ...] = ("x", "y.weight", "y.bias"),
) -> Plan:
    """One track, whose output is ``y``."""
    return Plan("fixture", "by hand", MEMORIES, buffers, (Track("cpu", steps),), resident, "y")


def halves(first: Buffer | None = None, second: Buffer | None = None, *between: Step) -> Subject:
    """The layer in two halves of its sums, with ``between`` between them.

    ``first`` is cleared and added to, then ``second`` is added to and finished; by default both
    are 32-bit sums at byte 16.
    """
    plan, graph = layer()
    first = first or sums("acc", 32, 16)
    second = second or first
    steps = (
        Clear("y", whole(first)),
        part(first, 0),
        *between,
        part(second, 2),
        Finish("y", whole(second), whole(plan.buffer["y"]), (whole(plan.buffer["y.bias"]),)),
    )
    return plan_of((*plan.buffers, *dict.fromkeys((first, second))), *steps), graph


def part(acc: Buffer, low: Index) -> Compute:
    """Two of the four products of each sum."""
    ins = (Slice("x", (low,), (2,)), Slice("y.weight", (0, low), (3, 2)))
    return Compute("y", whole(acc), ins, partial=True)


def edited(plan: Plan, *steps: Step, buffers: tuple[Buffer, ...] = ()) -> Plan:
    """``plan`` with other steps, if any are given, and with ``buffers`` in place of those of their
    names, or added. All at once: there is no plan in between that could be refused."""
    held = {buffer.name: buffer for buffer in (*plan.buffers, *buffers)}
    tracks = (Track("cpu", steps),) if steps else plan.tracks
    return replace(plan, buffers=tuple(held.values()), tracks=tracks)


def with_buffers(plan: Plan, *more: Buffer) -> Plan:
    return edited(plan, buffers=more)


def with_steps(plan: Plan, *steps: Step) -> Plan:
    return replace(plan, tracks=(Track("cpu", steps),))


def step_of(plan: Plan) -> Compute:
    """The only step of ``layer``."""
    (step,) = plan.tracks[0].steps
    assert isinstance(step, Compute)
    return step


def changed(plan: Plan, **fields: object) -> Plan:
    """``layer``'s plan with its only step changed."""
    return with_steps(plan, replace(step_of(plan), **fields))  # type: ignore[arg-type]


def rebuffered(plan: Plan, name: str, **fields: object) -> Plan:
    return with_buffers(plan, replace(plan.buffer[name], **fields))  # type: ignore[arg-type]


def moved(plan: Plan, name: str, byte: object) -> Plan:
    """``name`` begins at ``byte``, whatever that is."""
    map_ = plan.buffer[name].map
    assert isinstance(map_, Affine)
    return rebuffered(plan, name, map=replace(map_, base=2 * byte))  # type: ignore[operator]


Change = Callable[[Plan], Plan]


def buffer(name: str, **fields: Any) -> Change:
    return lambda plan: rebuffered(plan, name, **fields)


def step(**fields: Any) -> Change:
    return lambda plan: changed(plan, **fields)


def plan_with(**fields: Any) -> Change:
    return lambda plan: replace(plan, **fields)


def after(*steps: Any) -> Change:
    """The layer's step, then ``steps``."""
    return lambda plan: with_steps(plan, step_of(plan), *steps)


def right(graph: Graph) -> tuple[bytes, ...]:
    """What the graph alone makes of ``INPUTS``, as ``outcomes.differs`` wants to know it."""
    return tuple(graph.outputs(inputs[:, 0]).tobytes() for inputs, _ in orders(INPUTS))


def of_layer(change: Callable[[Plan], Plan]) -> Subject:
    plan, graph = layer()
    return change(plan), graph


def with_memory(plan: Plan, **fields: object) -> Plan:
    """``sram`` changed."""
    first, *others = plan.memories
    return replace(plan, memories=(replace(first, **fields), *others))  # type: ignore[arg-type]


def reading(plan: Plan, old: str, new: Buffer) -> Plan:
    """The layer reads ``new`` in place of ``old``."""
    step = step_of(plan)
    ins = tuple(whole(new) if piece.buffer == old else piece for piece in step.ins)
    return changed(with_buffers(plan, new), ins=ins)
