"""Quantizations of all activations of a network whose source brings those of some."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.errors import ThimbleError
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.float_nodes import AveragePool
from pipeline.importers.scales import FIXED


def completed(graph: FloatGraph) -> Mapping[str, Affine]:
    """Return all quantizations.

    Raises:
        ThimbleError: an activation that nothing quantizes.
    """
    found = quantizations(graph)
    for name in graph.shapes:
        if name not in found:
            made = next((node.where for node in graph.nodes if node.output == name), "the input")
            raise ThimbleError(
                f"{made}: no QuantizeLinear follows it: quantize the whole network, or export it "
                "as float, and it is quantized here"
            )
    return found


def quantizations(graph: FloatGraph, guessed: bool = True) -> dict[str, Affine]:
    """Return the file's, and those that follow from them: pools, padding and reshaping keep theirs;
    probabilities have 1/256.

    Args:
        guessed: also of what a mean is taken of or others read besides, whose range may be wider.
    """
    found = dict(graph.given)
    states = [(of.read, of.made) for of in graph.states]
    for name, other in (*states, *((made, read) for read, made in states)):
        if name in found:
            found.setdefault(other, found[name])
    for node in graph.nodes:  # what is known goes first: a mean may have a smaller range
        known = {found.get(name) for name in node.inputs}
        if node.keeps and len(known) == 1 and (one := known.pop()):
            found.setdefault(node.output, one)
    for node in reversed(graph.nodes):
        if type(node) in FIXED:
            found.setdefault(node.output, FIXED[type(node)])
        if node.keeps and node.output in found:
            for name in node.inputs:
                alone = len(graph.readers(name)) == 1 and name not in graph.ends
                if guessed or (alone and not isinstance(node, AveragePool)):
                    found.setdefault(name, found[node.output])
    for node in graph.nodes:
        if node.keeps and node.inputs[0] in found:
            found.setdefault(node.output, found[node.inputs[0]])
    return found
