"""A window that slides along time as a network with states: each call takes the rows that are new,
and gives the output of the window that ends with them.

An operator that goes along time without padding makes rows of the next window, too: of those each
call makes the new ones alone, and keeps what later calls read of what they are made of. An operator
that pads along time, or knows where in a window it is, reads all of its window again. Until
a whole window has come, what a call finds of it are zeros, in each tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.graph.access import Window
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.placing import Concat, Rearrange
from pipeline.graph.state import State
from pipeline.graph.tensor import IntArray, Tensor, beside


@dataclass(frozen=True)
class Windows:
    """``rows`` of the input from a window to the next; 0: each frame is a window. Rows that nothing
    reads at a window's end are not waited for."""

    rows: int = 0

    def graph(self, one: Graph) -> Graph:
        """``one`` window's network -> the stream's."""
        return _Stream(self.rows, one).graph() if self.rows else one

    def frontend(self, of_one: Any) -> Any:
        """Return what gives the stream's network its rows, where that ``of_one`` window does."""
        heard = self.rows and hasattr(of_one, "frames")
        return replace(of_one, frames=self.rows) if heard else of_one

    def data(self, one: Arrays, frontend: Any, graph: Graph) -> Arrays:
        """Return the data set ``one`` with test images, and sounds, one after the other, as many
        calls of ``graph`` as there were images; sounds where it has states of its own, too. What
        ends in one of these windows has no label."""
        streams = graph.states and "test_sounds" in one
        rows = self.rows or (frontend.shape[0] if streams else 0)
        if not rows or not len(one["test_images"]):
            return one
        heard, count = {}, len(one["test_images"])
        if "test_sounds" in one:
            samples = rows * frontend.hop
            count = min(count, one["test_sounds"].size // samples)
            stream = one["test_sounds"].reshape(1, -1)[:, : count * samples]
            heard = {"test_sounds": stream.reshape(count, samples)}
            images = frontend.features(np.pad(stream, ((0, 0), (frontend.early, 0))))
        else:
            images = one["test_images"]
        images = replace(self, rows=rows).calls(images)[:count]
        return {**one, **heard, "test_images": images, "test_labels": one["test_labels"][:0]}

    def calls(self, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(n, rows, …), one after the other -> (calls, rows of a call, …)."""
        if not self.rows:
            return images
        stream = images.reshape(-1, *images.shape[2:])
        count = len(stream) // self.rows
        return stream[: count * self.rows].reshape(count, self.rows, *stream.shape[1:])


@dataclass
class _Stream:
    """
    Attributes:
        end: of each tensor the rows of a window that are read; at the window's end may be others.
        new: of each tensor how many of these, the last ones, a call makes.
        low: of each tensor the first row that a call reads.
    """

    rows: int
    one: Graph
    end: dict[str, int] = field(default_factory=dict)
    new: dict[str, int] = field(default_factory=dict)
    low: dict[str, int] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    initial: dict[str, IntArray] = field(default_factory=dict)

    def graph(self) -> Graph:
        one = self.one
        if one.states:
            raise ThimbleError(
                f"sliding.rows: {one.name} keeps state, and computes only what is new already: "
                "leave sliding.rows out"
            )
        self.end = {name: one.tensors[name].shape[0] for name in one.outputs}
        for op in reversed(one.operators):
            end = self.end.setdefault(op.output, one.tensors[op.output].shape[0])
            for name, (_, stop) in self._read(op, 0, end).items():
                self.end[name] = max(self.end.get(name, 0), stop)
        image = one.tensors[one.input]
        if len(image.shape) != 3 or self.rows >= self.end[image.name]:
            raise ThimbleError(
                f"sliding.rows={self.rows}: {one.name} takes {image.shape}, and windows slide "
                "by some of the rows of an image: give fewer, or leave sliding.rows out"
            )
        self._plan()
        self.tensors = {name: one.tensors[name] for name in one.constants}
        given = self._kept(image.name)
        for op in one.operators:
            called, at = self._called(op), len(self.operators)
            self.operators.insert(at, replace(called, output=self._kept(op.output)))
        return replace(
            one, tensors=self.tensors, operators=tuple(self.operators), inputs=(given,),
            states=tuple(self.states), initial=self.initial,
        )  # fmt: skip

    def _plan(self) -> None:
        one = self.one
        self.new[one.input], self.low[one.input] = self.rows, self.end[one.input] - self.rows
        for op in one.operators:
            self.new[op.output] = self._new(op)
            self.low[op.output] = self.end[op.output] - self.new[op.output]
            for name, (low, _) in self._called_for(op).items():
                self.low[name] = min(self.low[name], low)
        self.low |= dict.fromkeys(one.outputs, 0)

    def _moves(self, op: Operator) -> bool:
        """Check whether its rows are made of rows of its inputs, alike in each window."""
        tensors = self.one.tensors
        if not op.inputs or (op.fixed_shape and not self._crops(op)):
            return False
        for each in op.reads(tensors):
            rows, given = each.windows[0], each.tensor in op.inputs
            low, stop = rows.span(0, tensors[op.output].shape[0])
            inside = low >= 0 and stop <= tensors[each.tensor].shape[0]
            if given and (rows.axis != 0 or rows.divide != 1 or not inside):
                return False
            if any(window.axis == 0 for window in each.windows[given:]):
                return False
        return True

    def _windows(self, op: Operator) -> dict[str, Window]:
        """Say of each input that ``op`` moves along how its rows are read."""
        reads = op.reads(self.one.tensors) if self._moves(op) else ()
        return {each.tensor: each.windows[0] for each in reads if each.tensor in op.inputs}

    def _read(self, op: Operator, first: int, stop: int) -> dict[str, tuple[int, int]]:
        """Say of each input the rows that rows ``first`` to ``stop`` of the output are made of."""
        every = {name: (0, self.one.tensors[name].shape[0]) for name in op.inputs}
        return every | {name: each.span(first, stop) for name, each in self._windows(op).items()}

    def _new(self, op: Operator) -> int:
        """Name the rows of its output that a call makes: all, where no earlier call makes some."""
        every, windows = self.end[op.output], self._windows(op)
        steps = [(self.new[name], each.stride) for name, each in windows.items()] or [(every, 1)]
        return min(every, max(every if new % by else new // by for new, by in steps))

    def _crops(self, op: Operator) -> bool:
        source = self.one.tensors[op.inputs[0]].shape
        return isinstance(op, Rearrange) and op.whole_pixels(source)

    def _called_for(self, op: Operator) -> dict[str, tuple[int, int]]:
        end = self.end[op.output]
        return self._read(op, end - self.new[op.output], end)

    def _called(self, op: Operator) -> Operator:
        """Make ``op`` for the new rows of its output, of the rows of its inputs that there are."""
        read, names = self._called_for(op), {}
        if isinstance(op, Rearrange) and self._crops(op):
            (name,) = op.inputs
            starts = (read[name][0] - self.low[name], *op.starts[1:])
            return replace(op, shape=(self.new[op.output], *op.shape[1:]), starts=starts)
        for name, window in self._windows(op).items():
            low, stop = read[name]
            if low > self.low[name] or self.end[name] - stop >= window.stride:
                first = low - self.low[name]
                names[name] = self._cut(name, f"{op.name}.rows", first, stop - low)
        return op.renamed(names)

    def _kept(self, name: str) -> str:
        """Join what a call makes of ``name`` to what is there of it; return what the former is
        called."""
        tensor, new = self.one.tensors[name], self.new[name]
        kept = self.end[name] - new - self.low[name]
        self.tensors[name] = replace(tensor, shape=(kept + new, *tensor.shape[1:]))
        if not kept:
            return name
        read, made = (self._rows(name, word, n) for word, n in (("old", kept), ("new", new)))
        self.operators.append(Concat(self._fresh(name, "joined"), (read, made), name, axis=0))
        self.states.append(State(read, self._cut(name, "next", new, kept)))
        self.initial[read] = np.full(self.tensors[read].shape, tensor.zero_point)
        return made

    def _cut(self, name: str, word: str, first: int, rows: int) -> str:
        """Take ``rows`` of ``name`` from row ``first`` on."""
        output, shape = self._rows(name, word, rows), self.tensors[name].shape
        ones, starts = (1,) * len(shape), (first, *[0] * (len(shape) - 1))
        self.operators.append(
            Rearrange(
                output, (name,), output, shape=(rows, *shape[1:]), axes=tuple(range(len(shape))),
                starts=starts, steps=ones, repeats=ones,
            )
        )  # fmt: skip
        return output

    def _rows(self, name: str, word: str, rows: int) -> str:
        """Declare a tensor of ``rows`` of ``name``."""
        tensor, made = self.one.tensors[name], self._fresh(name, word)
        self.tensors[made] = replace(tensor, name=made, shape=(rows, *tensor.shape[1:]))
        return made

    def _fresh(self, name: str, word: str) -> str:
        taken = {op.name for op in (*self.one.operators, *self.operators)}
        return beside({*self.one.tensors, *self.tensors, *taken}, name, word)
