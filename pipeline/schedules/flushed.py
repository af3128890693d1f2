"""Blocks that are written to the card whenever a plan leaves it idle: the worst case of energy
(Miao and Lin 2021, section 5.5). All that the plan does it does as before, if sometimes later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from math import gcd, prod

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.buffers import Buffer
from pipeline.plan.cost import high_water_nibbles
from pipeline.plan.rates import Rates
from pipeline.plan.vocabulary import Loop, Move, Plan, Slice, Step, Track, Wait, packed
from pipeline.schedules.swapped import MOVING, Window
from pipeline.timing.simulate import simulate

NAME = ".flushed"


def beside(
    planned: Callable[[Hardware], Plan], graph: Graph, hardware: Hardware, size: int
) -> Plan:
    """Return what is ``planned`` in ``size`` bytes less, with rows of the input in these, which are
    read once and then written as often as the card's idle times have room, before what it waits
    for. In a loop every turn has as many as fit in the mean.

    Raises:
        ThimbleError: where ``size`` is no row of the input, and for a card whose contents are
            checked or whose transfers are the core's.
    """
    card, line = hardware.card, 2 * hardware.card.line_bytes
    tensor = graph.tensors[graph.input]
    each = prod(tensor.shape[1:])
    whole = card.block_bytes // gcd(each, card.block_bytes)
    rows = min(size // each, tensor.shape[0])
    rows -= rows % whole if rows > whole else 0  # rows of whole blocks
    if not rows or not card.dma or card.sealed or card.summed:
        raise ThimbleError(
            f"strategy.flush_bytes={size}: 0, or at least a row of the input, {each} B, on a board "
            "with DMA, whose card is not checked (security=unchecked)"
        )
    kept = replace(card, driver_bytes=card.driver_bytes + rows * each + card.line_bytes)
    plan, memory = planned(replace(hardware, card=kept)), hardware.activation_memory
    source = next(b for b in plan.on_card.values() if b.tensor == graph.input)
    above = -(-high_water_nibbles(plan, memory, constants=True) // line) * line
    window = Window(f"{NAME}.rows", tensor, above // 2, (rows, *tensor.shape[1:])).buffer(memory)
    behind = max(b.extent[1] for b in plan.on_card.values())
    place = packed(tensor.shape, 8, -(-behind // (2 * card.block_bytes)) * 2 * card.block_bytes)
    target = Buffer(NAME, tensor.name, source.memory, tensor.shape, 8, place)
    read, written, here = (
        Slice(name, (0,) * len(tensor.shape), (rows, *tensor.shape[1:]))
        for name in (source.name, target.name, window.name)
    )
    rates = Rates.of(hardware)
    us = rates.move_us(rows * each, writes=True)
    us += rates.move_us(rows * each % card.block_bytes, writes=False)  # of its last block, if torn
    leaf, idle_us = count(), _idle_us(plan, graph, hardware)
    tracks = [
        Track(track.name, _filled(track.steps, leaf, idle_us, us, Move(here, written)))
        for track in plan.tracks
    ]
    tracks = [
        replace(track, steps=(Move(read, here), *track.steps)) if track.name == MOVING else track
        for track in tracks
    ]
    return replace(plan, buffers=(*plan.buffers, window, target), tracks=tuple(tracks))


def _idle_us(plan: Plan, graph: Graph, hardware: Hardware) -> Mapping[int, float]:
    """Find how long the card has nothing to do before each of its steps, by the step's number."""
    timeline = simulate(plan, graph, hardware)
    moving = [track.name for track in plan.tracks].index(MOVING)
    task, start, stop = (
        each[timeline.track == moving] for each in (timeline.task, timeline.start, timeline.stop)
    )
    gaps = start - np.concatenate([[0.0], stop[:-1]])
    return {int(number): float(gaps[task == number].mean()) for number in np.unique(task)}


def _filled(
    steps: tuple[Step, ...], leaf: Iterator[int], idle_us: Mapping[int, float], us: float,
    flush: Move,
) -> tuple[Step, ...]:  # fmt: skip
    found, before = list[Step](), 0  # where the last step that is no wait ended
    for step in steps:
        if isinstance(step, Loop):
            found.append(replace(step, body=_filled(step.body, leaf, idle_us, us, flush)))
        else:
            if times := int(idle_us.get(next(leaf), 0.0) // us):
                found.insert(before, Loop("flush", times, (flush,)))
            found.append(step)
        if not isinstance(step, Wait):
            before = len(found)
    return tuple(found)
