"""All that a memory map shows, as plain values for the page's script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.plan.buffers import PASSING
from pipeline.plan.cost import Cost, high_water_nibbles, intervals, spans
from pipeline.plan.vocabulary import Buffer, Plan
from pipeline.report.memory_map.cells import Pieces
from pipeline.report.memory_map.clock import Clock, layer
from pipeline.report.memory_map.lives import lives
from pipeline.timing.bars import Bars

MOST_RUNS = 200
"""Most runs shown of a buffer in many places: of more, those with the smallest gaps are merged."""


def picture(
    plan: Plan,
    graph: Graph,
    hardware: Hardware,
    cost: Cost,
    clock: Clock,
    charts: Sequence[Bars] = (),
    metrics: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Times are whole numbers of the clock's unit, addresses and sizes nibbles, the stack and what
    else a program has in its memory bytes.

    Args:
        charts: the tracks, of a plan that was simulated.
        metrics: what was measured, if anything: the stack, other statics.
    """
    layers = [op.name for op in graph.operators]
    pieces = lives(plan, graph, clock)
    sizes = {memory.name: memory.bytes for memory in hardware.memories}
    return {
        "unit": clock.unit,
        "end": round(clock.end),
        "steps": len(clock.events),
        "layers": layers,
        "stretches": [
            [round(each.begin), round(each.stop), *each.layers] for each in clock.stretches
        ],
        "tracks": [each.content() for each in charts] or tracks(plan, clock, layers),
        "buffers": [_buffer(buffer, graph) for buffer in plan.buffers],
        "memories": [
            {
                "name": memory.name,
                "bytes": sizes.get(memory.name, memory.bytes),
                **besides(plan, hardware, memory.name, metrics or {}),
                "held": held(plan, clock, memory.name),
                "pieces": packed(pieces[memory.name]) if memory.name in pieces else packed(None),
            }
            for memory in plan.memories
            if memory.kind == "ram" and any(b.memory == memory.name for b in plan.buffers)
        ],
        "peak": peak(cost, clock),
    }


def _buffer(buffer: Buffer, graph: Graph) -> dict[str, Any]:
    return {
        "name": buffer.name,
        "tensor": buffer.tensor,
        "kind": kind(buffer, graph),
        "bits": buffer.bits,
        "shape": list(buffer.shape),
        "why": why(buffer, graph),
    }


def kind(buffer: Buffer, graph: Graph) -> str:
    """Return what a buffer's bytes are for: a name of ``palette.MEMORY``."""
    if buffer.role in PASSING:
        return "scratch"
    if buffer.role == "accumulator":
        return "sums"
    if any(buffer.tensor in (each.read, each.made) for each in graph.states):
        return "state"
    return "weights" if buffer.tensor in graph.constants else "tensor"


def why(buffer: Buffer, graph: Graph) -> str:
    """Say who makes what a buffer holds, and who needs it."""
    if buffer.role == "scratch":
        return "working memory of a kernel, of no use after its step"
    if buffer.role == "aside":
        return "what a kernel keeps of an output that lies over its input, until that has been read"
    if buffer.role == "ahead":
        return "inputs of the next inference on their way to the card, and outputs of the last one"
    name = buffer.tensor
    readers = [op.name for op in graph.operators if name in (*op.inputs, *op.parameters)]
    kept = name in {each.made for each in graph.states}
    ends = ["the network's output"] * (name in graph.outputs or not (readers or kept))
    ends += ["kept for the next call"] * kept
    needed = " and ".join([f"needed by {', '.join(readers)}"] * bool(readers) + ends)
    if name in graph.constants:
        return f"constants, {needed}"
    if name in graph.inputs:
        return f"the network's input, {needed}"
    if name in graph.starts:
        return f"state, kept from the call before, {needed}"
    maker = graph.producer(name).name
    if buffer.role == "accumulator":
        return f"sums of {maker} under way, until they are complete"
    return f"made by {maker}, {needed}"


def held(plan: Plan, clock: Clock, memory: str) -> list[list[int]]:
    """[buffer, begin, stop, low, high, …] of each buffer, from its first to its last use; constants
    for ever. A buffer that lies in several places has more than one pair of nibbles."""
    used, _ = spans(plan)
    found = []
    for number, buffer in enumerate(plan.buffers):
        if buffer.memory != memory or (buffer.name not in used and buffer.role != "constant"):
            continue
        first, last = used.get(buffer.name, (0, 0))
        times = [round(float(clock.begin[first])), round(float(clock.stop[last]))]
        if buffer.role == "constant":
            times = [0, round(clock.end)]
        elif buffer.name in plan.resident:
            times[0] = 0
        places = _fewer(intervals(buffer))
        found.append([number, *times, *places.reshape(-1).tolist()])
    return found


def _fewer(places: IntArray) -> IntArray:
    """``places`` (n, 2) without the narrowest gaps between them."""
    while len(places) > MOST_RUNS:
        gaps = places[1:, 0] - places[:-1, 1]
        wide = np.flatnonzero(gaps > np.partition(gaps, -MOST_RUNS)[-MOST_RUNS])
        low = np.concatenate([[0], wide + 1])
        high = np.concatenate([wide, [len(places) - 1]])
        places = np.stack([places[low, 0], places[high, 1]], axis=1)
    return places


def packed(pieces: Pieces | None) -> dict[str, list[int]]:
    """Return the pieces as sorted columns of differences to the one before, which are short."""
    if pieces is None or not len(pieces):
        return {name: [] for name in ("buffer", "low", "nibbles", "born", "lasts")}
    born, dies = pieces.born.round().astype(np.int64), pieces.dies.round().astype(np.int64)
    order = np.lexsort((born, pieces.low, pieces.buffer))
    columns = {
        "buffer": pieces.buffer,
        "low": pieces.low,
        "nibbles": pieces.high - pieces.low,
        "born": born,
        "lasts": np.maximum(dies - born, 0),
    }
    return {name: np.diff(each[order], prepend=0).tolist() for name, each in columns.items()}


def tracks(plan: Plan, clock: Clock, layers: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tracks of a plan without a card as bars like ``timing.bars``: steps of one layer
    in a row as one."""
    number = {name: n for n, name in enumerate(layers)}
    result = []
    for track, each in enumerate(plan.tracks):
        mine = [n for n, event in enumerate(clock.events) if event.track == track]
        names = [layer(clock.events[n]) for n in mine]
        turns = [n for n in range(len(names)) if n == 0 or names[n] != names[n - 1]]
        rows = []
        for first, stop in pairwise([*turns, len(names)]):
            begin = round(float(clock.begin[mine[first]]))
            took = round(float(clock.stop[mine[stop - 1]])) - begin
            if took:
                rows.append((begin, took, number.get(names[first], -1), 0, stop - first, took))
        keys = ("start", "took", "layer", "kind", "steps", "busy")
        columns = zip(*rows, strict=True) if rows else ((),) * len(keys)
        found = {key: list(column) for key, column in zip(keys, columns, strict=True)}
        result.append({"name": each.name, **found})
    return result


def besides(
    plan: Plan, hardware: Hardware, memory: str, metrics: Mapping[str, Any]
) -> dict[str, float]:
    """Bytes of the stack and of what is neither tensors nor weights."""
    if memory != hardware.stack_memory:
        return {"stack": 0, "statics": 0}
    stack = metrics.get("stack_bytes") or hardware.stack_reserve_bytes
    planned = ceil(high_water_nibbles(plan, memory, constants=True) / 2)
    return {"stack": stack, "statics": max(0, metrics.get("statics_bytes", 0) - planned)}


def peak(cost: Cost, clock: Clock) -> Mapping[str, Any]:
    """Return when most memory is in use, how much, and in which layer."""
    moment = cost.peak
    place = cost.timeline.index(moment)
    later = cost.timeline[place + 1 :]
    stop = clock.begin[later[0].step] if later else clock.end  # of a buffer's last use
    return {
        "begin": round(float(clock.begin[moment.step])),
        "stop": round(float(stop)),
        "bytes": moment.live_bytes,
        "layer": moment.label,
    }
