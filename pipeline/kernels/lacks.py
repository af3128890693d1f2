"""Checks that there is C for a plan: each step has a kernel, and the output has whole bytes."""

from collections import defaultdict

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.hardware import LARGEST_ON_AVR, LPM_BYTES, Hardware
from pipeline.kernels.choose import why_none
from pipeline.kernels.feeding import feeds
from pipeline.kernels.form import Form
from pipeline.kernels.int4 import NIBBLES, OUT_OF_REACH
from pipeline.plan.vocabulary import Compute, Finish, Move, Plan
from pipeline.plan.well_formed import statements


def lacks(plan: Plan, graph: Graph, hardware: Hardware) -> str:
    """Return the first step without C, and why; "" if there is C for all of ``plan``."""
    for output in (graph.tensors[name] for name in graph.outputs):
        if output.dtype.bits < 8:
            made, what = graph.producer(output.name).name, f"the output {output.name}"
            return f"{what}: {made} has to make 8 bits or more, not {output.dtype}"
    arrives = any(plan.memory[plan.buffer[name].memory].kind == "stream" for name in plan.resident)
    if arrives and not any(feeds(step, plan) for step in statements(plan)):
        return f"the input {graph.input}: it streams in, and nothing reads it"
    for step in statements(plan):
        if not isinstance(step, Compute | Finish):
            continue
        op, out = graph.operator(step.op), plan.buffer[step.out.buffer]
        if isinstance(step, Finish):
            if out.bits < 8 and not isinstance(op, AveragePool2d):
                return f"{op.name} ({type(op).__name__}): sums become elements of whole bytes"
            fed = op.inputs[0] in graph.inputs  # nn_feed may write over sums that are done
            if out.bits < 8 and not fed and plan.buffer[step.acc.buffer].meets(out):
                return (
                    f"{op.name} ({type(op).__name__}): 4 bits do not take the place of their sums"
                )
        elif not step.kernel:
            over = (plan.buffer[piece.buffer] for piece in step.ins)
            overlaps = {each.tensor for each in over if each.role != "constant" and each.meets(out)}
            form = Form.of(step, plan.buffer, graph, overlaps)
            why = why_none(form, hardware) or "no kernel does without the scratch that it needs"
            return f"{op.name} ({type(op).__name__}): {why}"
        elif why := _too_large(step, plan, graph, hardware):
            return f"{op.name} ({type(op).__name__}): {why}"
    if hardware.core == "avr" and _listed_bytes(plan) > LARGEST_ON_AVR:
        return (
            f"its permutations: an array on an AVR has at most {LARGEST_ON_AVR:,} B, theirs is more"
        )
    return ""


def _listed_bytes(plan: Plan) -> int:
    """Bytes, at most, of the array with the places of what moves within a memory, and of a result
    that is put together: two each, and two more for each cycle, which has at least two. Moves that
    are alike have one list."""
    lists = dict[bytes, int]()
    for step in statements(plan):
        if not isinstance(step, Move):
            continue
        both = [(plan.buffer[each.buffer], each) for each in (step.src, step.dst)]
        if both[0][0].memory == both[1][0].memory:
            each = (b.addresses(piece.box(b.shape, defaultdict(int))) for b, piece in both)
            cells = np.stack([found.reshape(-1, found.shape[-1]) for found in each])
            cells -= cells.min()
            grid = (np.diff(cells) == both[0][0].nibbles).all()
            pixel = both[0][0].nibbles * cells.shape[2]
            moved = cells[:, :, 0] if grid and not (cells[:, :, 0] % pixel).any() else cells
            lists[moved.tobytes()] = moved.size // 2
    for result in (plan.buffer[name] for name in plan.outputs):
        cells = result.addresses(result.box).reshape(-1)
        scattered = (np.diff(cells) != result.nibbles).any() or cells[0] // 2 % max(
            1, result.bits // 8
        )
        lists[result.name.encode()] = cells.size * bool(scattered)
    return 3 * sum(lists.values())


def _too_large(step: Compute, plan: Plan, graph: Graph, hardware: Hardware) -> str:
    """Return which limit of the step's kernel its tensors pass."""
    buffers = [plan.buffer[piece.buffer] for piece in (step.out, *step.ins)]
    arena = (each.extent[1] for each in buffers if each.role != "constant")
    if step.kernel.startswith("int4.") and max(arena) > NIBBLES:
        return OUT_OF_REACH
    arrays = [graph.tensors[each.tensor].bytes for each in buffers if each.role == "constant"]
    near = hardware.flash_bytes <= LPM_BYTES or not step.kernel.startswith("avr.")
    if hardware.core == "avr" and near and max(arrays, default=0) > LARGEST_ON_AVR:
        return f"an array on an AVR has at most {LARGEST_ON_AVR:,} B, its weights are more"
    return ""
