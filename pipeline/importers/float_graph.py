"""A network with float weights, as PyTorch and ONNX give it, in the layout of the integer graph.

Tensors have no batch axis and images are (h, w, c), so that what remains is arithmetic: a
quantization for each tensor, and ``lower`` makes the integer graph of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from pipeline.errors import ThimbleError
from pipeline.graph.ends import OneEach
from pipeline.graph.state import State
from pipeline.graph.tensor import DType
from pipeline.importers.deferred import F, torch

Shape = tuple[int, ...]
Interval = tuple[float, float]
Evaluate = Callable[[int, "list[torch.Tensor]"], "torch.Tensor"]
"""Function of a node's number and its inputs (n, *shape) that returns the node's output."""

LARGEST = 1 << 22
"""Elements of an activation: VGG16 has 3,211,264 in its largest, a damaged file may claim more."""


@dataclass(frozen=True)
class Affine:
    """The signed integer q of so many bits stands for ``scale * (q - zero_point)``."""

    scale: float
    zero_point: int
    bits: int = 8

    @property
    def dtype(self) -> DType:
        return DType.parse(f"int{self.bits}")

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        return self.dtype.minimum, self.dtype.maximum

    @property
    def steps(self) -> float:
        """From the least integer to the greatest."""
        return float((1 << self.bits) - 1)

    @property
    def reach(self) -> float:
        """What bounds the difference to the zero point; whatever that is, of 8 bits."""
        most = float(max(abs(end - self.zero_point) for end in self.ends))
        return self.steps if self.bits == 8 else most


@dataclass(frozen=True, eq=False, kw_only=True)
class Node(ABC):
    """An operator on real numbers.

    Attributes:
        where: of the source, for messages, such as ``features.3.conv``.
        clip: limits of a fused activation; only where ``clips``.
    """

    name: str
    inputs: tuple[str, ...]
    output: str
    where: str = ""
    clip: Interval | None = None

    clips: ClassVar[bool] = False
    """True if an activation can be fused."""
    keeps: ClassVar[bool] = False
    """True if the integer operator needs one quantization for its inputs and its output."""

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        """Return the output's shape; raises ThimbleError when the inputs' do not go together."""
        return shapes[0]

    @abstractmethod
    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """(n, *input shape) each -> (n, *output shape), before ``clip``."""

    def evaluate(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return self.clipped(self.compute(values))

    def clipped(self, result: torch.Tensor) -> torch.Tensor:
        # As clamp, and its gradient takes a third of the time.
        return result if self.clip is None else F.hardtanh(result, *self.clip)

    def refuse(self, reason: str) -> ThimbleError:
        return ThimbleError(f"{self.where or self.name}: {reason}")


def node_fields(node: Node) -> dict[str, Any]:
    """Return the fields that every node has, to make another in its place."""
    return {"name": node.name, "inputs": node.inputs, "output": node.output, "where": node.where}


@dataclass(frozen=True)
class FloatGraph(OneEach):
    """Nodes in topological order.

    Attributes:
        shapes: of every activation.
        given: quantizations that the source itself brings (QDQ models); empty for float networks.
        limits: the real values that a user gives for 0 and 255 of the input; None: see ``given``.
        states: what lives from one call to the next; the first one reads zeros.
    """

    name: str
    shapes: Mapping[str, Shape]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    given: Mapping[str, Affine] = field(default_factory=dict)
    limits: Interval | None = None
    states: tuple[State, ...] = ()

    def __post_init__(self) -> None:
        known = set(self.starts)
        for node in self.nodes:
            if missing := [name for name in node.inputs if name not in known]:
                raise node.refuse(f"reads {missing[0]}, which nothing before it produces")
            shape = node.infer([self.shapes[name] for name in node.inputs])
            if shape != self.shapes[node.output] or node.output in known:
                raise node.refuse(f"makes {shape}, expected {self.shapes[node.output]} once")
            known.add(node.output)
        if missing := [name for name in self.ends if name not in known]:
            raise ThimbleError(f"{self.name}: nothing produces the output {missing[0]}")

    def readers(self, tensor: str) -> list[Node]:
        return [node for node in self.nodes if tensor in node.inputs]

    def each(self, frames: torch.Tensor, evaluate: Evaluate) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield every activation (n, *shape) by name, in order, for frames (n, *input shape), of
        several inputs (n, elements), one after the other. With states, each frame is a call by
        itself: (1, *shape) of all activations of one call, then of the next.

        An activation is dropped after its last reader.
        """
        kept = {of.read: frames.new_zeros(1, *self.shapes[of.read]) for of in self.states}
        for part in torch.split(frames, 1) if self.states else (frames,):
            values = self._apart(part) | kept
            yield from self._call(values, evaluate)
            kept = {of.read: values[of.made] for of in self.states}

    def _apart(self, frames: torch.Tensor) -> dict[str, torch.Tensor]:
        shapes = [self.shapes[name] for name in self.inputs]
        each = torch.split(frames.flatten(1), [prod(shape) for shape in shapes], 1)
        parts = zip(self.inputs, each, shapes, strict=True)
        return {name: part.reshape(len(frames), *shape) for name, part, shape in parts}

    def _call(
        self, values: dict[str, torch.Tensor], evaluate: Evaluate
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield and add to ``values``, of which what states become is left."""
        last = {name: index for index, node in enumerate(self.nodes) for name in node.inputs}
        last |= {of.made: len(self.nodes) for of in self.states}
        yield from list(values.items())
        for index, node in enumerate(self.nodes):
            values[node.output] = evaluate(index, [values[name] for name in node.inputs])
            yield node.output, values[node.output]
            for name in {*node.inputs, node.output}:
                if last.get(name, -1) <= index:
                    del values[name]

    def activation(self, name: str, frames: torch.Tensor, evaluate: Evaluate) -> torch.Tensor:
        """(n, *shape) of ``name`` for frames (n, *input shape); nothing behind it is computed."""
        return next(values for each, values in self.each(frames, evaluate) if each == name)

    def walk(self, frames: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        """Return every activation as the nodes compute them, without gradients."""

        def evaluate(index: int, inputs: list[torch.Tensor]) -> torch.Tensor:
            with torch.no_grad():
                return self.nodes[index].evaluate(inputs)

        return self.each(frames, evaluate)

    def run(self, frames: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return every activation (n, *shape) by name, all at once."""
        found: dict[str, list[torch.Tensor]] = {}
        for name, values in self.walk(frames):
            found.setdefault(name, []).append(values)
        return {name: torch.cat(parts) for name, parts in found.items()}

    def evaluate(self, frames: torch.Tensor, batch: int = 64) -> torch.Tensor:
        """(n, *input shape) -> (n, *output shape); of several (n, elements) one after the other."""
        found: dict[str, list[torch.Tensor]] = {name: [] for name in self.outputs}
        for part in torch.split(frames, len(frames) if self.states else batch):
            for name, values in self.walk(part):
                if name in found:
                    found[name].append(values)
        results = [torch.cat(parts) for parts in found.values()]
        return results[0] if len(results) == 1 else torch.cat([v.flatten(1) for v in results], 1)


def checked_size(what: str, shape: Shape) -> Shape:
    """``shape``, refused when a dimension is below 1 or the whole is larger than any real one."""
    if any(extent < 1 for extent in shape):
        raise ThimbleError(f"{what}: the shape {list(shape)} has an extent below 1")
    if prod(shape) > LARGEST:
        raise ThimbleError(f"{what}: the shape {list(shape)} has more than {LARGEST:,} elements")
    return shape
