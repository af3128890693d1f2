"""Do a plan and a graph belong together? Looked at once by whoever follows a plan on a graph."""

from __future__ import annotations

from pipeline.errors import PlanError
from pipeline.graph.graph import Graph
from pipeline.plan.buffers import PASSING, Buffer
from pipeline.plan.steps import Clear, Compute, Finish
from pipeline.plan.vocabulary import Plan
from pipeline.plan.well_formed import statements


def check(plan: Plan, graph: Graph) -> None:
    """Each name is the graph's, each buffer has its tensor's shape and lies inside of its memory.

    Raises:
        PlanError: the first thing that the graph does not have, or has otherwise.
    """
    for buffer in plan.buffers:
        _tensor(buffer, graph)
        _inside(plan, buffer)
    operators = {op.name for op in graph.operators}
    for step in statements(plan):
        if isinstance(step, Compute | Clear | Finish) and step.op not in operators:
            raise PlanError(f"there is no operator {step.op}")
    for name in plan.resident:
        tensor = plan.buffer[name].tensor
        memory = plan.memory[plan.buffer[name].memory]
        if memory.kind in ("stream", "frame") and (tensor,) != graph.inputs:
            raise PlanError(f"{name} is in {memory.name}, which brings the input alone")
        if memory.kind == "rom" and tensor in graph.starts:
            raise PlanError(f"the input is in {memory.name}, where nothing can be written")
        if tensor not in graph.starts and tensor not in graph.constants:
            raise PlanError(f"{name} is resident, but {tensor} has to be computed")
        _whole(plan, plan.buffer[name], graph)
    resident = [plan.buffer[name].tensor for name in plan.resident]
    if twice := [name for name in graph.starts if resident.count(name) > 1]:
        raise PlanError(f"the input {twice[0]} arrives in two buffers")
    _states(plan, graph)
    outputs = [plan.buffer[name] for name in plan.outputs]
    roles = {each.role for each in outputs}
    if tuple(each.tensor for each in outputs) != graph.outputs or roles != {"activation"}:
        made = ", ".join(each.tensor for each in outputs)
        raise PlanError(f"the plan's output is {made}, not {', '.join(graph.outputs)}")
    for output in outputs:
        if plan.memory[output.memory].kind not in ("ram", "block"):
            raise PlanError(f"the output is in {output.memory}, where nothing can be written")
        _whole(plan, output, graph)


def _states(plan: Plan, graph: Graph) -> None:
    """Check that each state has one place, at the start and at the end."""
    places = {plan.buffer[name].tensor: plan.buffer[name] for name in plan.resident}
    ends = [plan.buffer[name] for name in plan.states]
    if [each.tensor for each in ends] != [each.made for each in graph.states]:
        raise PlanError(f"the plan's states are {', '.join(plan.states)}, not the graph's")
    for state, end in zip(graph.states, ends, strict=True):
        place = places.get(state.read)
        if place is None or (place.memory, place.map) != (end.memory, end.map):
            raise PlanError(f"{end.name} does not lie where the next call finds {state.read}")
        if plan.memory[end.memory].kind != "ram" or plan.frames > 1:
            raise PlanError(f"the state {state.read} is of one frame, in RAM")


def _tensor(buffer: Buffer, graph: Graph) -> None:
    if buffer.role in PASSING:
        return
    tensor = graph.tensors.get(buffer.tensor)
    if tensor is None or tensor.shape != buffer.shape:
        raise PlanError(
            f"buffer {buffer.name} does not have the shape of a tensor {buffer.tensor!r}"
        )
    if buffer.role != "accumulator" and buffer.bits != tensor.dtype.bits:
        raise PlanError(f"buffer {buffer.name} holds {buffer.bits}-bit elements of {tensor.dtype}")


def _inside(plan: Plan, buffer: Buffer) -> None:
    """Check that a buffer lies in its memory, and on bytes unless its elements are smaller."""
    limit, (low, high) = 2 * plan.memory[buffer.memory].bytes, buffer.extent
    if low < 0 or high > limit:
        raise PlanError(
            f"buffer {buffer.name} reaches nibbles {low}…{high - 1} of {buffer.memory}, "
            f"which has {limit}"
        )
    if buffer.bits >= 8 and not buffer.starts_on_bytes:
        raise PlanError(f"buffer {buffer.name} has {buffer.bits}-bit elements off a byte")


def _whole(plan: Plan, buffer: Buffer, graph: Graph) -> None:
    """Check that the input and the output have a copy for each frame, constants one."""
    frames = 1 if buffer.tensor in graph.constants else plan.frames
    if buffer.copies != frames:
        raise PlanError(f"buffer {buffer.name} has {buffer.copies} copies for {frames} frames")
