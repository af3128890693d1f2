"""Neighbouring windows of one long input as one graph, in which nothing is computed twice where
that is exact.

A window begins ``rows`` rows of the input after the one before. An operator that goes along time
without padding gives the same rows for both where they overlap: it has one output for all windows,
as long as they are together. A dense layer, which reads all of a window, is a convolution with a
kernel of that size. From the first operator on that pads along time, or knows where in a window it
is, each window has operators of its own, which read its rows: those are computed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.placing import Concat, Rearrange
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.tensor import IntArray, Tensor


@dataclass(frozen=True)
class Windows:
    """Windows of one run: ``windows`` of them, each ``rows`` input rows after the one before.

    One window is the network as it is.
    """

    windows: int = 1
    rows: int = 1

    def __post_init__(self) -> None:
        if self.windows < 1 or self.rows < 1:
            raise ThimbleError(
                f"sliding.windows={self.windows}, sliding.rows={self.rows}: 1 at least"
            )

    @property
    def more(self) -> int:
        """Rows of the input besides those of one window."""
        return self.rows * (self.windows - 1)

    def graph(self, one: Graph) -> Graph:
        """The graph of all windows: (rows, …) of the input and ``more`` in; of an output vector of
        c values (windows, 1, c) or, where each window has an end of its own, (windows * c,)."""
        return one if self.windows == 1 else _Longer(self, one).graph()

    def data(self, one: Arrays, frontend: Any) -> Arrays:
        """The data set ``one`` with test images, and sounds, as long as all windows are together:
        each followed by the next one. What a window of it is has no label."""
        images = one["test_images"]
        if self.windows == 1 or not len(images):
            return one
        if "test_sounds" in one:
            ear = frontend.longer(self.more)
            sounds = _followed(one["test_sounds"], ear.samples)
            longer = {"test_sounds": sounds, "test_images": ear.spectrograms(sounds)}
        else:
            longer = {"test_images": self.longer(images)}
        return {**one, **longer, "test_labels": one["test_labels"][:0]}

    def longer(self, images: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(n, rows, …) -> (n, rows of all windows, …), each followed by the next one."""
        return _followed(images, images.shape[1] + self.more)

    def first_bytes(self, data: Arrays, frontend: Any) -> int:
        """Return the bytes of ``data`` that have come when the first of several windows is whole;
        0 where there is one."""
        if self.windows == 1:
            return 0
        if "test_sounds" in data:
            return 2 * int(frontend.samples)
        rows, *others = data["test_images"].shape[1:]
        return int((rows - self.more) * prod(others))

    def measured(
        self, found: Mapping[str, Any], all_macs: int, one_macs: int, row_us: float, clock_hz: int
    ) -> dict[str, Any]:
        """Return what a new window costs beside a whole one; nothing where there is just one.

        ``macs_new`` and ``cycles_new`` are of a window behind another, ``macs_window`` and
        ``cycles_window`` of the first one, which computes all; ``new_us`` is the time from one to
        the next, ``cycles_new_10ms`` what 10 ms of it take, ``realtime_factor_new`` the share of it
        that the CPU computes. Cycles have listening in them, where there is a front end.

        Args:
            found: ``device.json``, for cycles.
            all_macs, one_macs: of all windows, and of the network itself.
            row_us: of sound, a row of the input; 0: its rows have no time.
        """
        if self.windows == 1:
            return {}
        says: dict[str, Any] = {
            "windows": self.windows,
            "macs_window": one_macs,
            "macs_new": (all_macs - one_macs) / (self.windows - 1),
        }
        new_us = self.rows * row_us
        if new_us:
            says["new_us"] = new_us
        if "first_cycles" in found:
            first, every = (found[name]["median"] for name in ("first_cycles", "compute_cycles"))
            says["cycles_window"] = first
            says["cycles_new"] = (every - first) / (self.windows - 1)
            if new_us:
                says["cycles_new_10ms"] = says["cycles_new"] * 10_000 / new_us
                says["realtime_factor_new"] = says["cycles_new"] / clock_hz * 1e6 / new_us
        return says


def _followed(pieces: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """(n, m, …) -> (n, size, …)."""
    times = -(-size // pieces.shape[1])
    return np.concatenate([np.roll(pieces, -n, axis=0) for n in range(times)], axis=1)[:, :size]


@dataclass
class _Longer:
    """
    Attributes:
        step: by tensor, as ``one`` calls it: rows from a window to the next, of those that all
            windows share.
        mine: by tensor what it is called in each window that has its own.
    """

    of: Windows
    one: Graph
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, IntArray] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    step: dict[str, int] = field(default_factory=dict)
    mine: dict[str, list[str]] = field(default_factory=dict)

    def graph(self) -> Graph:
        one = self.one
        if one.states:
            raise ThimbleError(
                f"sliding.windows: {one.name} keeps state, and computes only what is new already: "
                "leave sliding.windows out"
            )
        image = one.tensors[one.input]
        if len(image.shape) != 3:
            raise ThimbleError(
                f"sliding.windows: {one.name} takes {image.shape}, windows slide over rows of an "
                "image: leave sliding.windows out"
            )
        self.constants = dict(one.constants)
        self.tensors = {name: one.tensors[name] for name in one.constants}
        self.tensors[image.name] = replace(
            image, shape=(image.shape[0] + self.of.more, *image.shape[1:])
        )
        self.step[image.name] = self.of.rows
        for op in one.operators:
            shared = self._shared(op)
            if shared is None:
                self._each(op)
            else:
                self.operators.append(shared)
                shape = shared.infer({**one.tensors, **self.tensors})
                self.tensors[op.output] = replace(one.tensors[op.output], shape=shape)
        end = one.output if one.output in self.step else self._joined()
        used = {name for op in self.operators for name in (*op.parameters, *op.inputs)}
        kept = {name: array for name, array in self.constants.items() if name in used}
        tensors = {n: t for n, t in self.tensors.items() if n in kept or n not in self.constants}
        return Graph(one.name, tensors, tuple(self.operators), kept, (image.name,), (end,))

    def _shared(self, op: Operator) -> Operator | None:
        """``op`` for all windows at once; None where it cannot be exact."""
        if not op.inputs or any(name not in self.step for name in op.inputs):
            return None
        crops = isinstance(op, Rearrange) and op.whole_pixels(self.one.tensors[op.inputs[0]].shape)
        if op.fixed_shape and not crops:
            return None
        if isinstance(op, Dense):
            op = self._as_convolution(op)
        tensors = self._of_one()
        rows, *_ = op.infer(tensors)
        steps = {
            self._advance(operand, tensors, rows)
            for operand in op.reads(tensors)
            if operand.tensor in self.step
        }
        if op.element_wise and set(op.same_sized(tensors)) == set(op.inputs):
            steps = {self.step[name] for name in op.inputs}  # of one row, too
        moving = any(
            window.axis == 0
            for operand in op.reads(tensors)
            for window in operand.windows[operand.tensor in self.step :]
        )
        if moving or len(steps) != 1 or 0 in steps:
            return None
        (step,) = steps
        if rows == 1 and isinstance(op, Conv2d | Pool2d):  # one row a window, whatever its stride
            op = replace(op, stride=(self.step[op.inputs[0]], op.stride[1]))
            step = 1
            if op.infer(self.tensors)[0] != self.of.windows:
                return None
        if isinstance(op, Rearrange):
            if rows == 1:
                op, step = replace(op, steps=(step, *op.steps[1:])), 1
            op = replace(op, shape=(rows + step * (self.of.windows - 1), *op.shape[1:]))
        self.step[op.output] = step
        return op

    def _of_one(self) -> dict[str, Tensor]:
        """Tensors of one window; vectors that all windows share are images of one pixel."""
        images = {
            name: replace(self.one.tensors[name], shape=(1, 1, *self.one.tensors[name].shape))
            for name in self.step
            if len(self.one.tensors[name].shape) == 1
        }
        constants = {name: self.tensors[name] for name in self.constants}
        return {**self.one.tensors, **constants, **images}

    def _advance(self, operand: Operand, tensors: Mapping[str, Tensor], rows: int) -> int:
        """Rows of the output, of which a window has ``rows``, from a window to the next; 0 where
        ``operand`` is not read alike in each."""
        window, step = operand.windows[0], self.step[operand.tensor]
        low, stop = window.span(0, rows)
        inside = low >= 0 and stop <= tensors[operand.tensor].shape[0]
        if window.axis != 0 or window.divide != 1 or not inside:
            return 0
        if rows == 1:
            return step
        return 0 if step % window.stride else step // window.stride

    def _as_convolution(self, op: Dense) -> Conv2d:
        """A dense layer's output is one pixel that sees all of a window."""
        shape, weight = self.one.tensors[op.inputs[0]].shape, op.parameters[0]
        height, width, depth = shape if len(shape) == 3 else (1, 1, *shape)
        sides = (self.one.tensors[weight].shape[0], height, width, depth)
        self.tensors[weight] = replace(self.one.tensors[weight], shape=sides)
        self.constants[weight] = self.one.constants[weight].reshape(sides)
        return Conv2d(
            op.name, op.inputs, op.output, op.parameters, stride=(1, 1), clip=op.clip,
            requant=op.requant,
        )  # fmt: skip

    def _each(self, op: Operator) -> None:
        """``op`` once for each window, of its own rows."""
        names = [f"{op.output}.{number}" for number in range(self.of.windows)]
        inputs = {name: self._own(name) for name in op.inputs}
        for number, output in enumerate(names):
            renamed = op.renamed({name: each[number] for name, each in inputs.items()})
            self.operators.append(replace(renamed, name=f"{op.name}.{number}", output=output))
            self.tensors[output] = replace(self.one.tensors[op.output], name=output)
        self.mine[op.output] = names

    def _own(self, name: str) -> list[str]:
        """Return what is called ``name`` in one window, by its name in each."""
        if name not in self.mine:
            self.mine[name] = [self._cut(name, number) for number in range(self.of.windows)]
        return self.mine[name]

    def _cut(self, name: str, number: int) -> str:
        """Rows of window ``number`` of a tensor that all share."""
        tensor, output = self.one.tensors[name], f"{name}.{number}"
        if len(tensor.shape) != 3:
            raise ThimbleError(
                f"sliding.windows: {name}, of which each window has its own from here on, is no "
                "image: leave sliding.windows out"
            )
        ones = (1,) * 3
        self.operators.append(
            Rearrange(
                output, (name,), output, shape=tensor.shape, axes=(0, 1, 2),
                starts=(number * self.step[name], 0, 0), steps=ones, repeats=ones,
            )
        )  # fmt: skip
        self.tensors[output] = replace(tensor, name=output)
        return output

    def _joined(self) -> str:
        """The outputs of all windows, one after the other."""
        name, each = self.one.output, self.mine[self.one.output]
        op = Concat(name, tuple(each), name, axis=0)
        shape = op.infer(self.tensors)
        self.tensors[name] = replace(self.one.tensors[name], shape=shape)
        self.operators.append(op)
        return name
