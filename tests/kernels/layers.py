"""Layers by themselves, by one kernel each, to measure cycles, which ``cycles.json`` has."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operators.along import Normalize
from pipeline.graph.operators.resize import Resize
from pipeline.graph.requant import FixedPoint
from pipeline.hardware import FlashTiming, Hardware
from pipeline.kernels import Form, named
from pipeline.kernels.cortex_m import best_pixels
from pipeline.kernels.cortex_m.costs import CORES
from pipeline.plan import vocabulary as v
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.support import by_rows, core, kernels
from tests.graphs import Net

STEP = 512
"""Units of the whole sum that one of a narrow sum stands for."""

RECORDED = Path(__file__).parent / "cycles.json"


class Taken(NamedTuple):
    """Cycles of a layer on each core, and code of a row on the first; 0: if it makes more rows."""

    cycles: list[int]
    code_bytes: int


@dataclass(frozen=True)
class Layer:
    """
    Attributes:
        kernel: by name.
        shape: of the input; ``channels`` of the output.
        kind: of operator: a method of ``Net``.
        window, stride: of convolutions and pooling; ``same``: padded so that strides of 1 keep
            the size.
        at_once: channels of the output in a pass; 0: all.
        adding: channels of the input that a pass adds to sums of ``bits``; 0: none.
        twice, once: how often sums are rounded: as in TFLite's networks, or in those made here.
        dilation: of convolutions, both ways.
        scattered: pixels of its input lie by a table, as those of its output.
        anywhere: pixels of its output lie by a table, in no order; ``rows``: it is made row by row,
            as by kernels that say so.
        clip: of gates, counted from the zero point.
    """

    kernel: str
    shape: tuple[int, ...]
    channels: int = 0
    kind: str = "conv"
    window: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    same: bool = True
    at_once: int = 0
    adding: int = 0
    bits: int = 32
    twice: bool = False
    once: bool = False
    dilation: int = 1
    scattered: bool = False
    anywhere: bool = False
    rows: bool = False
    clip: tuple[int, ...] = ()

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        return cls(
            **{n: tuple(value) if isinstance(value, list) else value for n, value in fields.items()}
        )

    def fields(self) -> dict[str, Any]:
        """Those that are not as usual."""
        usual = asdict(Layer("", ()))
        return {n: value for n, value in asdict(self).items() if value != usual[n]}

    @property
    def by_row(self) -> bool:
        """Check whether the kernel makes, or adds, one row: in blocks, unless of an image."""
        return self.rows or self.kernel.startswith("cortex_m.row_")

    def graph(self) -> Graph:
        net = Net(self.shape, np.random.default_rng(1), name="layer")
        if self.by_row or self.scattered or self.anywhere or self.once:
            net.lookup()
        sides = [(k - 1) // 2 * self.dilation if self.same else 0 for k in self.window]
        padding = (sides[0], sides[0], sides[1], sides[1])
        options: dict[str, object] = {"stride": self.stride, "padding": padding}
        if self.dilation > 1:
            options["dilation"] = (self.dilation, self.dilation)
        if self.twice:
            channels = self.channels or self.shape[-1]
            options["requant"] = FixedPoint.of(np.linspace(0.5, 2, channels) / 1000)
        match self.kind:
            case "conv":
                net.conv(self.channels, self.window, **options)  # type: ignore[arg-type]
            case "depthwise":
                net.depthwise(self.window, **options)
            case "dense":
                net.dense(self.channels)
            case "mean" | "maximum":
                getattr(net, self.kind)(self.window, **options)
            case "plus" | "times":
                getattr(net, self.kind)(net.last, net.lookup())
            case "gate":
                given = net.last
                net.rescaled_mean()
                net.times(given, net.lookup())
                zero = net.tensors[net.last].zero_point
                clip = tuple(min(max(zero + end, -128), 127) for end in self.clip)
                object.__setattr__(net.operators[-1], "clip", clip or None)
            case "concat":
                net.concat((net.last, net.lookup(like=net.last)))
            case "pad":
                net.pad(((1, 1), (1, 1), (0, 0)))
            case "rearrange":
                rows, columns, channels = self.shape
                net.rearrange((columns, rows, channels), (1, 0, 2))
            case "resize":
                sides = [_bilinear(extent) for extent in self.shape[:2]]
                (top, down), (left, along) = sides
                weighed = {"firsts": (top, left), "weights": (down, along)}
                net.add(Resize("r", (net.last,), "r", **weighed), like=net.last)
            case "normalize":
                scale = FixedPoint.of(np.array([16.0]))
                net.add(Normalize("n", (net.last,), "n", epsilon=1, requant=scale))
            case _:
                getattr(net, self.kind)()
        if self.by_row:
            net.lookup()
        return net.graph()

    def plan(self, graph: Graph, hardware: Hardware, runs: bool = True) -> v.Plan:
        if self.by_row:
            return plan_of_rows(self.kernel, graph, hardware, runs=runs)
        return plan_by(
            self.kernel, graph, hardware, self.at_once, self.adding, self.bits,
            scattered=self.scattered, anywhere=self.anywhere, runs=runs,
        )  # fmt: skip

    def step(self, plan: v.Plan) -> v.Compute:
        """Return the one that is measured."""
        return step_of(plan, self.kernel if self.by_row else "")

    def passes(self) -> int:
        if self.by_row:
            graph = self.graph()
            made = graph.tensors[graph.operators[-2].output].shape
            return made[0] if len(made) == 3 and made[0] > 1 else self.shape[0]
        if self.adding:
            return self.shape[-1] // self.adding
        return -(-(self.channels or self.shape[-1]) // self.at_once) if self.at_once else 1


def _bilinear(extent: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The first neighbours of twice as many pixels, and the weights of two each."""
    places = np.clip((np.arange(2 * extent) - 0.5) / 2, 0, extent - 1)
    firsts = np.minimum(places.astype(int), extent - 2)
    second = np.rint((places - firsts) * 1024).astype(int)
    return tuple(firsts.tolist()), tuple(np.stack([1024 - second, second], 1).reshape(-1).tolist())


def recorded() -> list[tuple[Layer, Taken]]:
    rows: list[dict[str, Any]] = json.loads(RECORDED.read_text())
    return [
        (layer, taken)
        for row in rows
        for taken in [Taken(row.pop("cycles", []), row.pop("code_bytes", 0))]
        for layer in [Layer.of(row)]
    ]


def cores(layer: Layer) -> tuple[str, ...]:
    """List the cores it is measured on; portable C, of which less is asked, has one."""
    sets = {"cortex_m": CORES, "thumb": ("cortex-m0plus",)}
    return sets.get(layer.kernel.partition(".")[0], CORES[:1])


@cache
def form_of(layer: Layer) -> Form:
    """Return the form that the kernel is asked for."""
    graph = layer.graph()
    plan = layer.plan(graph, core(cores(layer)[0]))
    return Form.of(layer.step(plan), plan.buffer, graph)


def plan_by(
    kernel: str,
    graph: Graph,
    hardware: Hardware,
    at_once: int = 0,
    adding: int = 0,
    bits: int = 32,
    *,
    scattered: bool = False,
    anywhere: bool = False,
    runs: bool = True,
) -> v.Plan:
    """The last operator of ``graph`` runs by ``kernel``, with scratch at the end of the arena.

    Args:
        at_once, adding, bits, scattered, anywhere: see ``Layer``: a loop runs passes.
        runs: or all but that.
    """
    plan = Ordinary(preserve_input=True).plan(graph, hardware)
    *before, last = plan.tracks[0].steps
    assert isinstance(last, v.Compute)
    op, out = graph.operator(last.op), plan.buffer[last.out.buffer]
    buffers = {b.name: b for b in plan.buffers if b.name not in last.scratch}
    if anywhere or kernel.startswith("cortex_m.gathered"):
        out = buffers[out.name] = _by_table(out, mixed=anywhere)
        for name in (piece.buffer for piece in last.ins[:1] if scattered):
            buffers[name] = _by_table(buffers[name])
    steps, ends = list[v.Step](), list[v.Step]()
    step, passes = replace(last, kernel=kernel, scratch=()), 0
    read = {plan.buffer[piece.buffer].tensor: piece.buffer for piece in step.ins}
    if adding:
        place = v.packed(out.shape, bits, _top(buffers, out.memory))
        unit = 1 if bits == 32 else STEP
        acc = v.Buffer("sums", out.tensor, out.memory, out.shape, bits, place, "accumulator", unit)
        buffers[acc.name] = acc
        bias = v.whole(plan.buffer[op.parameters[1]])
        steps = [v.Clear(op.name, v.whole(acc))]
        ends = [v.Finish(op.name, v.whole(acc), last.out, (bias,))]
        names = (op.inputs[0], op.parameters[0])
        ins = tuple(_some(plan.buffer[read[name]], adding) for name in names)
        step = replace(step, out=v.whole(acc), ins=ins, partial=True)
        passes = -(-graph.tensors[op.inputs[0]].shape[-1] // adding)
    elif at_once:
        step, passes = replace(step, out=_some(out, at_once)), -(-out.shape[-1] // at_once)
        if op.channel_wise(graph.tensors):
            first = _some(plan.buffer[read[op.inputs[0]]], at_once)
            step = replace(step, ins=(first, *step.ins[1:]))
    form = Form.of(step, buffers, graph)
    if needed := named(kernel, form, hardware).scratch_bytes(form):
        place = v.packed((needed,), 8, _top(buffers, out.memory))
        buffers["beside"] = v.Buffer("beside", "", out.memory, (needed,), 8, place, "scratch")
        step = replace(step, scratch=("beside",))
    one: v.Step = v.Loop("c", passes, (step,)) if passes else step
    run = (one,) if runs else ()
    track = v.Track(plan.tracks[0].name, (*before, *steps, *run, *ends))
    return replace(plan, buffers=tuple(buffers.values()), tracks=(track,))


def _by_table(buffer: v.Buffer, mixed: bool = False) -> v.Buffer:
    """At the same place, element by element; ``mixed``: pixels in no order."""
    cells = buffer.addresses(buffer.box).reshape(-1, buffer.shape[-1])
    cells = np.random.default_rng(1).permutation(cells) if mixed else cells
    return replace(buffer, map=v.Table(tuple(cells.reshape(-1).tolist())))


def plan_of_rows(kernel: str, graph: Graph, hardware: Hardware, *, runs: bool = True) -> v.Plan:
    """The last operator but one runs row by row, in blocks; ``runs``: or all but that."""
    *before, op, _ = graph.operators
    image = kernel == "cortex_m.row_conv2d" and graph.tensors[op.inputs[0]].shape[2] < 6
    names = [each.output for each in (op, *before[: 0 if image else None])]
    shapes = {name: graph.tensors[name].shape for name in names}
    pixels = {name: best_pixels(shape[1]) for name, shape in shapes.items() if len(shape) == 3}
    if kernel == "cortex_m.row_fused":  # for the slowest flash, or another is faster
        hardware = replace(hardware, flash_timing=FlashTiming(99, 8, 32, 1, 24))
    plan = by_rows(graph, hardware, pixels)
    assert kernel in kernels(plan).values(), f"{kernel} does not take it"
    if runs:
        return plan
    track = plan.tracks[0]
    others = (step for step in track.steps if getattr(step, "kernel", "") != kernel)
    return replace(plan, tracks=(replace(track, steps=tuple(others)),))


def _top(buffers: Mapping[str, v.Buffer], memory: str) -> int:
    """The first nibble at a word above all."""
    ends = [b.extent[1] for b in buffers.values() if b.memory == memory and b.role != "constant"]
    return -(-max(ends) // 8) * 8


def _some(buffer: v.Buffer, channels: int) -> v.Slice:
    zeros, rest = (0,) * (len(buffer.shape) - 1), buffer.shape[:-1]
    return v.Slice(buffer.name, (*zeros, v.Lin(0, (("c", channels),))), (*rest, channels))


def step_of(plan: v.Plan, kernel: str = "") -> v.Compute:
    """The last, or of rows by ``kernel`` the one in the middle."""
    found = [
        step.body[0] if isinstance(step, v.Loop) else step
        for step in plan.tracks[0].steps
        if isinstance(step, v.Loop | v.Compute)
    ]
    if kernel:
        found = [step for step in found if isinstance(step, v.Compute) and step.kernel == kernel]
        found = found[: len(found) // 2 + 1]
    assert isinstance(found[-1], v.Compute)
    return found[-1]
