"""Quantizations of all activations of a network whose source brings those of some."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.errors import ThimbleError
from pipeline.importers.float_graph import Affine, FloatGraph
from pipeline.importers.scales import FIXED


def completed(graph: FloatGraph) -> Mapping[str, Affine]:
    """All quantizations.

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


def quantizations(graph: FloatGraph) -> dict[str, Affine]:
    """The file's, and those that follow from them: pools, padding and reshaping keep theirs;
    probabilities have 1/256."""
    found = dict(graph.given)
    for node in reversed(graph.nodes):
        if type(node) in FIXED:
            found.setdefault(node.output, FIXED[type(node)])
        if node.keeps and node.output in found:
            for name in node.inputs:
                found.setdefault(name, found[node.output])
    for node in graph.nodes:
        if node.keeps and node.inputs[0] in found:
            found.setdefault(node.output, found[node.inputs[0]])
    return found
