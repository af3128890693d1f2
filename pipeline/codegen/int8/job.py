"""One Compute step of a plan, as the operators' modules look at it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, TypeVar

from pipeline.codegen.c.kernel import ASIDE, SCRATCH
from pipeline.codegen.c.order import Line, lines
from pipeline.codegen.c.values import Span, Value, atom, whole
from pipeline.codegen.c.views import View, view
from pipeline.codegen.constants import Array
from pipeline.codegen.int8.ending import Ending, ending
from pipeline.codegen.program import ARENA, Program
from pipeline.errors import ThimbleError
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.kernels.form import Form
from pipeline.plan.vocabulary import Affine, Buffer, Compute, Slice

Kind = TypeVar("Kind", bound=Operator)


KINDS = {Conv2d: "convolution", Dense: "dense"}


@dataclass(frozen=True)
class Part:
    """All pixels of some output channels: ``at_once`` from ``start`` on, in a last pass fewer."""

    at_once: int
    start: Value
    extent: Value

    def group(self, step: int) -> Value:
        """Return the number of the first group of ``step`` channels; see ``weights.passes``."""
        return self.start // self.at_once * -(-self.at_once // step)


@dataclass(frozen=True)
class Job:
    program: Program
    op: Operator
    step: Compute

    def operator(self, kind: type[Kind] | tuple[type[Kind], ...]) -> Kind:
        """Return ``op``, which the step's kernel says is of that kind."""
        assert isinstance(self.op, kind)
        return self.op

    def call(
        self,
        template: str,
        views: Mapping[str, View],
        ranges: Mapping[str, Value] = {},
        *,
        kind: str = "",
        about: str = "",
        **shared: Any,
    ) -> None:
        """Call a kernel that is named after the operator, see ``Program.call``; its template knows
        the first input's zero point, and as what its bytes are widened. ``about``: if not the
        job's."""
        source, kind = self.source, kind or "part" * self.partial
        known = {"zero": source.zero_point, "widen": "s8" if source.dtype.signed else "u8",
                 "channels": self.target.shape[-1]}  # fmt: skip
        self.program.call(
            self.op.name, template, about or self.about, views, ranges, apart=self.apart, kind=kind,
            **known | shared,
        )  # fmt: skip

    def rows_call(
        self, template: str, view: View, ranges: Mapping[str, Value] = {}, *,
        beside: Mapping[str, View] = {}, ring_axes: int = 0, **shared: Any,
    ) -> None:  # fmt: skip
        """Call a kernel of pixels that are made of ``view``, with the step's scratch and what is
        ``beside``; it knows the rows and columns that it makes, and where ``view`` begins."""
        rows, columns, _ = self.box
        known = {"y_start": rows.start, "y_stop": rows.stop, "y_count": rows.extent,
                 "x_start": columns.start, "x_stop": columns.stop,
                 "in_y": view.box[0].start}  # fmt: skip
        views = {"in": view, "out": self.out(ring_axes=ring_axes)}
        if self.step.scratch:
            views[SCRATCH] = self.scratch
        self.call(template, {**views, **beside}, {**known, **ranges}, **shared)

    def table(
        self, kind: str, type_: str, values: IntArray, about: str, *, weights: bool = False,
        align: int = 1,
    ) -> Array:  # fmt: skip
        """Add constants of the operator; ``weights``: they lie where the plan has these, else in
        flash."""
        in_flash = not weights or self.in_flash(self.op.parameters[0])
        text = f"{self.op.name}: {about}"
        return self.program.constants.add(
            self.op.name, kind, type_, values, text, in_flash, align
        )  # fmt: skip

    @cached_property
    def form(self) -> Form:
        """How the step computes the operator, where its buffers are."""
        program = self.program
        form = Form.of(self.step, program.plan.buffer, program.graph, self.overlaps)
        out = program.buffer(self.step.out)
        over = [program.buffer(self.given(name)) for name in self.overlaps]
        in_place = bool(over) and all(each.extent[0] == out.extent[0] for each in over)
        return replace(form, in_place=in_place)

    @property
    def about(self) -> str:
        """Say what a window that slides, or a dense layer, makes of what."""
        op, source = self.op, self.source
        kind = KINDS.get(type(op), op.reduction.pooling)
        words = [f"{kind} {shape_text(source.shape)} -> {shape_text(self.target.shape)}"]
        if not isinstance(op, Dense):
            size = getattr(op, "kernel", None) or self.tensor(op.parameters[0]).shape[1:3]
            words.append(f"kernel {size[0]}x{size[1]}")
        for name, plain in (("stride", (1, 1)), ("dilation", (1, 1)), ("padding", (0, 0, 0, 0))):
            if (value := getattr(op, name, plain)) != plain:
                words.append(f"{name} {' '.join(map(str, value))}")
        if (groups := getattr(op, "groups", 1)) > 1:
            words.append(f"{groups} groups")
        return f"{op.name}: {', '.join([*words, *['partial'] * self.partial])}"

    @property
    def partial(self) -> bool:
        return self.step.partial

    @cached_property
    def ending(self) -> Ending | None:
        """Return what ends the step's sums, if it does."""
        return None if self.partial else ending(self.program, self.op)

    @property
    def target(self) -> Tensor:
        return self.program.graph.tensors[self.op.output]

    @property
    def source(self) -> Tensor:
        """The first input."""
        return self.tensor(self.op.inputs[0])

    def tensor(self, name: str) -> Tensor:
        return self.program.graph.tensors[name]

    @cached_property
    def box(self) -> tuple[Span, ...]:
        """The output elements."""
        return self.program.box(self.step.out)

    @property
    def windowed(self) -> tuple[Span, Span]:
        """The rows and columns that code which finds a window's taps is for: steps that make some
        rows each have it in common."""
        rows, columns, _ = self.box
        some = not self.partial and rows.start.known and rows.extent.known
        return whole(self.target.shape[0]) if some else rows, columns

    def slice(self, tensor: str) -> Slice | None:
        """Return the part of ``tensor`` that the step names."""
        for piece in self.step.ins:
            if self.program.buffer(piece).tensor == tensor:
                return piece
        return None

    def given(self, tensor: str) -> Slice:
        piece = self.slice(tensor)
        if piece is None:
            raise ThimbleError(f"{self.op.name}: the plan's step does not read {tensor}")
        return piece

    def held(self, tensor: str) -> bool:
        """Check whether the step reads the constant ``tensor`` from a window of the arena."""
        return self.program.buffer(self.given(tensor)).role != "constant"

    def in_flash(self, tensor: str) -> bool:
        buffer = self.program.buffer(self.given(tensor))
        return self.program.plan.memory[buffer.memory].kind == "rom"

    def view(
        self, name: str, piece: Slice, box: Sequence[Span] | None = None, ring_axes: int = 0
    ) -> View:
        """Return a slice in the arena; ``box`` says which elements, if not those of the slice."""
        return arena_view(self.program, name, piece, box or self.program.box(piece), ring_axes)

    def out(self, box: Sequence[Span] | None = None, ring_axes: int = 0) -> View:
        return self.view("out", self.step.out, box or self.box, ring_axes)

    @property
    def part(self) -> Part:
        """Return what the step computes of an image's channels."""
        channels, count = self.box[-1], self.target.shape[-1]
        if channels.covers(whole(count)):
            return Part(count, Value(), Value(count))
        return Part(self.step.out.size[-1], channels.start, channels.extent)

    @property
    def source_view(self) -> View:
        """All of the first input, whatever part of it the windows reach."""
        name = self.op.inputs[0]
        return self.view("in", self.given(name), [whole(n) for n in self.tensor(name).shape])

    def rows_view(self, rows: Span | None = None) -> View:
        """Return the rows of the first input that the step reads, wherever they lie, all pixels of
        each, the channels that it takes; ``rows``: others."""
        piece = self.given(self.op.inputs[0])
        given, _, channels = self.program.box(piece)
        columns = whole(self.source.shape[1])
        return self.view("in", piece, (rows or given, columns, channels), ring_axes=1)

    @property
    def scratch(self) -> View:
        """All of the step's scratch: it begins at a word."""
        return scratch_view(self.program.plan.buffer[self.step.scratch[0]])

    @property
    def kept(self) -> Buffer | None:
        """Find where the step keeps outputs aside whose place is yet to be read."""
        buffers = (self.program.plan.buffer[name] for name in self.step.scratch)
        return next((buffer for buffer in buffers if buffer.role == ASIDE), None)

    @property
    def sources(self) -> Iterator[Slice]:
        """Parts of activations that the step reads."""
        for piece in self.step.ins:
            if self.program.buffer(piece).role != "constant":
                yield piece

    @cached_property
    def overlaps(self) -> frozenset[str]:
        """Tensors of which the step reads a byte that it writes."""
        out, program = self.step.out, self.program
        return frozenset(
            program.buffer(source).tensor
            for source in self.sources
            if not program.parts_apart(out, source)
        )

    @property
    def apart(self) -> bool:
        """Check whether the step writes no byte of what it reads."""
        return not self.overlaps

    @cached_property
    def in_place(self) -> bool:
        """Check whether each output element lies where the inputs have the same element."""
        out = self.program.buffer(self.step.out)
        return all(
            self.program.apart(out, source)
            or (source.shape, source.bits, source.map) == (out.shape, out.bits, out.map)
            for source in map(self.program.buffer, self.sources)
        )

    def unit(self) -> tuple[int, ...]:
        """Return the block of outputs whose inputs have to be read before any of it is written;
        ones where the order does not matter."""
        ones = (1,) * len(self.step.out.size)
        return ones if self.apart else self.step.unit or ones

    @cached_property
    def order(self) -> list[Line]:
        """The order of the output's pixels if it matters and is not row by row, else nothing.

        Raises:
            ThimbleError: when it is not one of pixels, or of a slice that may be cut off.
        """
        given = self.step.order
        if self.apart or list(given) == sorted(given):
            return []
        if any(part.fewest < size for part, size in zip(self.box, self.step.out.size, strict=True)):
            raise ThimbleError(
                f"{self.op.name}: code for this core takes an order of pixels that are all there"
            )
        return lines(self.step)

    @property
    def pixel_by_pixel(self) -> bool:
        """Check, for element-wise operators, whether all of a pixel has to be read before any of it
        is written, or pixels have an order.

        Raises:
            ThimbleError: for units of more than a pixel.
        """
        if self.apart or self.in_place:
            return False
        if max(self.unit()[:-1], default=1) > 1:
            self.refuse_overlap()
        return max(self.unit()) > 1 or bool(self.order)

    def refuse_overlap(self) -> None:
        """Refuse overlaps for a kernel that reads each element just before it writes it."""
        apart = self.apart or self.in_place
        if not (apart or (max(self.unit()) == 1 and not self.order)):
            raise ThimbleError(
                f"{self.op.name}: code for this core computes it in place or apart from its "
                "input; the plan has them overlap"
            )


def arena_view(
    program: Program, name: str, piece: Slice, box: Sequence[Span], ring_axes: int = 0
) -> View:
    """``box`` of the place that ``piece`` lies in."""
    buffer = program.buffer(piece)
    if buffer.role == "constant":
        raise ThimbleError(f"{buffer.name}: code for this core does not move constants")
    signed = buffer.role == "accumulator" or program.graph.tensors[buffer.tensor].dtype.signed
    layout = program.places.layout(buffer)
    found = view(name, buffer, layout, program.array(buffer), box, signed, ring_axes)
    found = replace(found, offset=found.offset + program.shift(piece))
    if found.lookup and found.lookup.axes == 1 and box[0].most <= 1:
        found = _one_row(found)
    # a box behind the last row might begin behind the arena
    return replace(found, offset=Value()) if found.empty else found


def scratch_view(buffer: Buffer, name: str = SCRATCH) -> View:
    assert isinstance(buffer.map, Affine)
    at, box = Value(buffer.map.base // 2), (whole(buffer.shape[0]),)
    return View(name, ARENA, at, (1,), (0,), box, bits=8, signed=False)


def _one_row(view: View) -> View:
    """Look up the row's place before the call."""
    assert view.lookup is not None
    row, cells = view.box[0].start, view.lookup.cells
    if row.known:
        place = Value(cells[min(row.const, len(cells) - 1)])
    else:
        entry = f"nn_place(&nn_row_places[{row + view.lookup.first}])"
        place = atom(entry, min(cells), max(cells))
    strides = (view.bytes * prod(part.most for part in view.box[1:]), *view.strides[1:])
    return replace(view, offset=view.offset + place, strides=strides, lookup=None)


def shape_text(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"
