"""Norms that exporters of old opsets told in means, powers and quotients: one operator again, which
is exact where a variance in 8 bits would not be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pipeline.importers.onnx_file import Array, FileNode, OnnxFile

ONE = "factor of a norm"


@dataclass(frozen=True)
class _Told:
    """Finds what makes each tensor of ``file``."""

    file: OnnxFile
    made: dict[str, FileNode]

    def maker(self, name: str) -> FileNode | None:
        node = self.made.get(name)
        while node is not None and node.operator == "Identity" and node.inputs:
            node = self.made.get(node.inputs[0])
        return node

    def by(self, operator: str, name: str) -> tuple[str, ...]:
        """List the inputs of what makes ``name``, if it is an ``operator``."""
        node = self.maker(name)
        return node.inputs if node is not None and node.operator == operator else ()

    def number(self, name: str) -> float | None:
        """Read a constant of one number."""
        node = self.made.get(name)
        given = node and node.operator == "Constant" and node.attributes.get("value")
        values = self.file.constants.get(name, given)
        return float(values.item()) if isinstance(values, np.ndarray) and values.size == 1 else None

    def last(self, name: str) -> tuple[str, int] | None:
        """Find what the mean ``name`` is of, and the first of the last axes that it is over."""
        node = self.maker(name)
        if node is None or node.operator != "ReduceMean" or not node.inputs:
            return None
        held: Array | None = self.file.constants.get(node.inputs[-1])
        given = node.attributes.get("axes") if held is None else held.reshape(-1).tolist()
        if not isinstance(given, tuple | list) or not all(type(each) is int for each in given):
            return None
        rank = len(self.file.shapes().get(node.inputs[0], ())) if max(given, default=-1) >= 0 else 0
        axes = sorted(axis - rank for axis in given)
        whole = axes and axes == list(range(-len(axes), 0))
        return (node.inputs[0], axes[0]) if whole and node.attributes.get("keepdims", 1) else None

    def normed(self, node: FileNode) -> FileNode:
        """Make a LayerNormalization or a RMSNormalization, if ``node`` ends what is one."""
        for top, below in self.quotients(node):
            for mean, number in both(self.by("Add", next(iter(self.by("Sqrt", below)), ""))):
                epsilon, found = self.number(number), self.last(mean)
                if epsilon is None or found is None or not self.squares(found[0], top):
                    continue
                source, *centre = self.by("Sub", top) or ("",)
                centred = bool(centre) and self.last(centre[0]) == (source, found[1])
                kind = "LayerNormalization" if centred else "RMSNormalization"
                given = {"axis": found[1], "epsilon": epsilon}
                inputs = (source if centred else top, ONE)
                return replace(node, operator=kind, inputs=inputs, attributes=given)
        return node

    def quotients(self, node: FileNode) -> Iterator[tuple[str, str]]:
        """Find what ``node`` divides by what, as a product with a reciprocal, too."""
        if node.operator == "Div" and len(node.inputs) == 2:
            yield node.inputs[0], node.inputs[1]
        for x, other in both(node.inputs) if node.operator == "Mul" else ():
            one, *below = self.by("Div", other) or ("", *self.by("Reciprocal", other))
            if below and (not one or self.number(one) == 1):
                yield x, below[0]

    def squares(self, name: str, x: str) -> bool:
        base, *power = self.by("Pow", name) or ("",)
        two = len(power) == 1 and self.number(power[0]) == 2
        return (base == x and two) or self.by("Mul", name) == (x, x)


def both(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Order two names either way."""
    return [names, names[::-1]] if len(names) == 2 else []


def with_norms(file: OnnxFile) -> OnnxFile:
    """Return ``file`` with norms as operators, and without what was only for them."""
    told = _Told(file, {out: node for node in file.nodes for out in node.outputs})
    nodes = [told.normed(node) for node in file.nodes]
    if nodes == list(file.nodes):
        return file
    read, kept = {*file.outputs, *(made for _, made in file.states)}, list[FileNode]()
    for node in reversed(nodes):
        if not read.isdisjoint(node.outputs):
            kept.append(node)
            read.update(node.inputs)
    constants = {**file.constants, ONE: np.ones((), np.float32)}
    return replace(file, nodes=tuple(kept[::-1]), constants=constants)
