"""Rewrites of a float graph that change no real result: batch norms into convolutions,
activations into what they follow, neighbouring functions into one.

What the source has quantized (``given``) stays as it is, so that its roundings stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph, Interval, Node, Shape, node_fields
from pipeline.importers.float_nodes import Floats
from pipeline.importers.functions import Composed

LONGEST = 50
"""Steps of a composed function."""


@dataclass(frozen=True)
class Draft:
    """A graph between two rewrites."""

    nodes: tuple[Node, ...]
    shapes: Mapping[str, Shape]
    given: Mapping[str, Affine]
    ends: tuple[str, ...]

    @cached_property
    def producers(self) -> dict[str, Node]:
        return {node.output: node for node in self.nodes}

    @cached_property
    def reading(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found.setdefault(name, []).append(node)
        return found

    def edited(self, edit: Mapping[str, list[Node]]) -> Draft:
        """Replace the nodes with these outputs by others, and leave out what is dead then."""
        made = [each for node in self.nodes for each in edit.get(node.output, [node])]
        needed, alive = set(self.ends), []
        for node in reversed(made):
            if node.output in needed:
                alive.append(node)
                needed.update(node.inputs)
        alive.reverse()
        shapes = dict(self.shapes)
        fresh = {node.output for part in edit.values() for node in part}
        for node in alive:
            if node.output in fresh:
                shapes[node.output] = node.infer([shapes[name] for name in node.inputs])
        return Draft(tuple(alive), shapes, self.given, self.ends)


Rule = Callable[[Draft, Node], dict[str, list[Node]] | None]
"""Replacements by the outputs of the nodes replaced, or None where the rule does not apply."""


def simplified(graph: FloatGraph) -> FloatGraph:
    """Return all passes, in the order in which they help each other."""
    for rule in (fold_scale_back, merge_scales, fold_scale_ahead, clip_before_pool, fuse_clip,
                 fuse_functions, merge_functions, scale_to_convolution, merge_slices):  # fmt: skip
        graph = exhausted(graph, rule)
    return graph


def exhausted(graph: FloatGraph, rule: Rule) -> FloatGraph:
    """``rule`` applied until it applies nowhere."""
    draft = Draft(graph.nodes, graph.shapes, graph.given, graph.ends)
    index = 0
    while index < len(draft.nodes):
        edit = rule(draft, draft.nodes[index])
        if edit is None:
            index += 1
        else:
            draft = draft.edited(edit)
            index = max(0, index - len(edit))
    return rebuilt(graph, draft.nodes)


def rebuilt(graph: FloatGraph, made: Sequence[Node]) -> FloatGraph:
    """Return the graph of these nodes, shapes inferred anew."""
    shapes = {name: graph.shapes[name] for name in graph.starts}
    for node in made:
        shapes[node.output] = node.infer([shapes[name] for name in node.inputs])
    given = {name: affine for name, affine in graph.given.items() if name in shapes}
    return replace(graph, shapes=shapes, nodes=tuple(made), given=given)


def without(graph: FloatGraph, gone: Node) -> list[Node]:
    """Return the nodes but for ``gone``; who read its output reads its input."""
    names = {gone.output: gone.inputs[0]}
    return [
        replace(node, inputs=tuple(names.get(name, name) for name in node.inputs))
        for node in graph.nodes
        if node is not gone
    ]


def private(graph: Draft, tensor: str, reader: Node) -> bool:
    """Check whether ``reader`` alone sees ``tensor``: no one else, no rounding of the source's."""
    same = graph.given.get(tensor) == graph.given.get(reader.output)
    free = tensor not in graph.given or same
    return tensor not in graph.ends and free and graph.reading.get(tensor) == [reader]


def before(graph: Draft, node: Node, *, rounded: bool = False) -> Node | None:
    """The producer of its input, if ``node`` alone sees that; ``rounded``: by the source, too."""
    found = graph.producers.get(node.inputs[0])
    if found is None or not private(graph, found.output, node):
        return None
    return found if rounded or found.output not in graph.given else None


def as_scale(graph: Draft, node: Node) -> tuple[Floats, Floats] | None:
    """(factor, offset), (c,) each, of a node that only scales."""
    if isinstance(node, nodes.Scale):
        return node.factor, node.offset
    if isinstance(node, nodes.Function) and len(node.body.steps) == 1:
        step, channels = node.body.steps[0], graph.shapes[node.output][-1]
        if step.function == "affine":
            return np.full(channels, step.constants[0]), np.full(channels, step.constants[1])
    return None


def fold_scale_back(graph: Draft, node: Node) -> dict[str, list[Node]] | None:
    """Convolution or linear layer, then a scale: scaled weights and biases."""
    scale, first = as_scale(graph, node), before(graph, node)
    if scale is None or not isinstance(first, nodes.Weighted) or first.clip:
        return None
    folded = replace(first.scaled(*scale), output=node.output, clip=node.clip)
    return {first.output: [], node.output: [folded]}


def merge_scales(graph: Draft, node: Node) -> dict[str, list[Node]] | None:
    """A scale of a scale is one; functions are fused by themselves."""
    first = before(graph, node)
    if first is None or first.clip:
        return None
    inner, outer = as_scale(graph, first), as_scale(graph, node)
    both = isinstance(node, nodes.Function) and isinstance(first, nodes.Function)
    if inner is None or outer is None or both:
        return None
    fields = {**node_fields(node), "inputs": first.inputs, "clip": node.clip}
    factor, offset = outer[0] * inner[0], outer[0] * inner[1] + outer[1]
    return {first.output: [], node.output: [nodes.Scale(**fields, factor=factor, offset=offset)]}


def fold_scale_ahead(graph: Draft, node: Node) -> dict[str, list[Node]] | None:
    """A scale, then a convolution of one group: into the weights; offsets only without padding."""
    if not isinstance(node, nodes.Convolution) or node.groups != 1 or node.steps is not None:
        return None
    first = before(graph, node)
    scale = as_scale(graph, first) if first else None
    if first is None or scale is None or (any(node.padding) and (scale[1] != 0).any()):
        return None
    bias = node.bias + (node.weights * scale[1]).sum((1, 2, 3))
    folded = replace(node, inputs=first.inputs, weights=node.weights * scale[0], bias=bias)
    return {first.output: [], node.output: [folded]}


def as_clip(node: Node) -> Interval | None:
    """Return the limits of a node that only clips."""
    if not isinstance(node, nodes.Function) or not node.body.steps:
        return None
    low, high = -np.inf, np.inf
    for index, step in enumerate(node.body.steps):
        if step.function != "clip" or step.arguments != (index,):
            return None
        below, above = step.constants
        low, high = min(max(low, below), above), min(max(high, below), above)
    return float(low), float(high)


def clip_before_pool(graph: Draft, node: Node) -> dict[str, list[Node]] | None:
    """Maximum pooling, then a clip: the other way round is the same, and the clip can be fused."""
    pool = before(graph, node) if as_clip(node) and not graph.given else None
    if not isinstance(pool, nodes.MaxPool) or pool.clip:
        return None
    clip = replace(node, inputs=pool.inputs, output=pool.output)
    return {pool.output: [clip], node.output: [replace(pool, inputs=(clip.output,),
                                                       output=node.output)]}  # fmt: skip


def fuse_clip(graph: Draft, node: Node) -> dict[str, list[Node]] | None:
    """ReLU, ReLU6 and the like: limits of what they follow."""
    limits = as_clip(node)
    first = before(graph, node, rounded=True) if limits else None
    if first is None or not first.clips or first.clip:
        return None
    return {first.output: [], node.output: [replace(first, output=node.output, clip=limits)]}


def fuse_functions(graph: Draft, node: Node) -> dict[str, list[Node]] | None:
    """A function of a function is one function."""
    first = before(graph, node) if isinstance(node, nodes.Function) else None
    if not isinstance(node, nodes.Function) or not isinstance(first, nodes.Function):
        return None
    if len(first.body.steps) > LONGEST:
        return None
    fused = replace(node, inputs=first.inputs, body=node.body.after(first.body))
    return {first.output: [], node.output: [fused]}


def merge_functions(graph: Draft, node: Node) -> dict[str, list[Node]] | None:
    """A sum, product, … of functions of one tensor is a function: x * sigmoid(x), x + x."""
    if not isinstance(node, nodes.Binary) or not node.joins or node.constant is not None:
        return None
    origins = [_origins(graph, name) for name in node.inputs]
    shared = [(a, f, g) for a, f in origins[0] for b, g in origins[1] if a == b]
    if not shared:
        return None
    tensor, f, g = shared[0]
    if len(f.steps) + len(g.steps) > LONGEST:
        return None
    body = f.beside(g, node.joins)
    if node.clip:
        body = Composed.of("clip", *node.clip).after(body)
    return {node.output: [nodes.Function(**{**node_fields(node), "inputs": (tensor,)}, body=body)]}


def _origins(graph: Draft, tensor: str) -> list[tuple[str, Composed]]:
    """``tensor`` itself, and what it is a function of, if it is one, with the function."""
    found = [(tensor, Composed.of("identity"))]
    made = graph.producers.get(tensor)
    if isinstance(made, nodes.Function) and tensor not in graph.given:
        found.append((made.inputs[0], made.body))
    return found


def merge_slices(graph: Draft, node: Node) -> dict[str, list[Node]] | None:
    """Merge a choice of elements with the one before it; not where elements are repeated."""
    first = before(graph, node, rounded=True) if isinstance(node, nodes.Rearranged) else None
    if not isinstance(node, nodes.Rearranged) or not isinstance(first, nodes.Rearranged):
        return None
    if max(*node.repeats, *first.repeats) > 1:
        return None
    runs = list(zip(first.starts, first.steps, first.axes, strict=True))
    merged = replace(
        node,
        inputs=first.inputs,
        axes=tuple(node.axes[axis] for axis in first.axes),
        starts=tuple(node.starts[axis] * step + start for start, step, axis in runs),
        steps=tuple(node.steps[axis] * step for _, step, axis in runs),
    )
    return {first.output: [], node.output: [merged]}


def scale_to_convolution(graph: Draft, node: Node) -> dict[str, list[Node]] | None:
    """A scale that is left: a depthwise convolution of 1x1."""
    if not isinstance(node, nodes.Scale):
        return None
    shape = graph.shapes[node.output]
    channels = shape[-1]
    fields = node_fields(node)
    image = nodes.Convolution(
        **fields, weights=node.factor.reshape(channels, 1, 1, 1), bias=node.offset, groups=channels
    )
    if len(shape) == 3:
        return {node.output: [image]}
    before, after = f"{node.output}.image", f"{node.output}.scaled"
    wide = (1, *shape) if len(shape) == 2 else (1, 1, *shape)
    return {
        node.output: [
            nodes.Reshaped(**{**fields, "output": before, "name": before}, shape=wide),
            replace(image, inputs=(before,), output=after, name=after),
            nodes.Reshaped(**{**fields, "inputs": (after,)}, shape=shape),
        ]
    }
