"""Arrival of the input: ``nn_feed`` takes it in pieces of any size, ``nn_input`` shows its place.

An input that a caller may fill lies in the arena in one piece. One that streams in is put into its
place, or pooled on the way, or the program waits for it piece by piece (``streamed``). One that
lies outside is pointed at: nothing is fed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.codegen import pooled, streamed
from pipeline.codegen.bound import bound
from pipeline.codegen.c.views import FRAME
from pipeline.codegen.int4.views import grid
from pipeline.codegen.program import Program
from pipeline.codegen.render import render
from pipeline.errors import ThimbleError
from pipeline.graph.tensor import Tensor
from pipeline.kernels.feeding import feeds
from pipeline.plan.unrolled import repeated, unroll
from pipeline.plan.vocabulary import Buffer, Move, Step, packed

ARRIVAL = "input"
"""Name in a report for taking the input as it is."""


@dataclass(frozen=True)
class Arrival:
    """
    Attributes:
        source: C of the variables and of ``nn_feed``; empty until the program is known.
        complete: C expression: the input is whole.
        rewind: C statements: nothing has arrived.
        step: the operator that is done on the way, or ``ARRIVAL``.
        begun: C expression: part of a frame has arrived.
        at: the bytes of the arena where inputs are, if a caller may fill them; else empty.
    """

    source: str
    complete: str
    rewind: tuple[str, ...]
    step: str = ARRIVAL
    begun: str = "nn_fed"
    at: tuple[int, ...] = ()


WHOLE = "nn_fed == NN_INPUT_BYTES", ("nn_fed = 0;",)


def split(program: Program, steps: Sequence[Step]) -> tuple[Arrival, Sequence[Step]]:
    """Return how the input comes in, and the steps left for the program.

    Raises:
        ThimbleError: for a way of taking the input that ``nn_feed`` does not know.
    """
    if len(program.graph.inputs) > 1:
        return _several(program), steps
    image = program.graph.tensors[program.graph.input]
    resident = program.input_buffer
    kind = program.plan.memory[resident.memory].kind
    if kind == "frame":
        return Arrival(render("frame/input_at.c.j2"), FRAME, (), begun="0"), steps
    if kind != "stream":
        return _held(program, image, resident, fillable=True), steps
    _check_order(image, resident)
    reads = [any(feeds(each, program.plan) for each, _ in repeated((step,))) for step in steps]
    last = max((n for n, streams in enumerate(reads) if streams), default=-1)
    events = [bound(step, env) for step, env in unroll(tuple(steps[: last + 1]), {})]
    for way in (_moved, _pooled):
        found = way(program, image, resident, events)
        if found is not None:
            return found[0], (*found[1], *steps[last + 1 :])
    return Arrival("", *streamed.STATE), steps


def finished(program: Program, arrival: Arrival) -> Arrival:
    """Add its source, now that the program is known."""
    if arrival.source:
        return arrival
    return replace(arrival, source=streamed.source(program, counters(program)))


def _check_order(image: Tensor, buffer: Buffer) -> None:
    """A stream's order is fixed: the image row by row, a pixel's channels side by side."""
    row_major = replace(buffer, map=packed(buffer.shape, buffer.bits))
    if (buffer.addresses(buffer.box) != row_major.addresses(buffer.box)).any():
        raise ThimbleError(
            f"generated code takes {image.name} row by row as it arrives; the plan's buffer "
            f"{buffer.name} expects another order"
        )


def _held(program: Program, image: Tensor, buffer: Buffer, *, fillable: bool) -> Arrival:
    """All of it in one buffer: in one piece of bytes, or wherever its elements are."""
    at = in_one_piece(buffer)
    if at is not None:
        return _fed(program, [(at, input_bytes(image))], fillable)
    if image.dtype.bits > 8:
        raise ThimbleError(
            f"{image.name}: generated code takes one byte an element, not {image.dtype}, where its "
            "elements do not lie in one piece"
        )
    program.headers.add("nn_cells.h")
    source = render(
        "frame/feed_store.c.j2", view=program.windows.tables.view(buffer), grid=grid(image.shape),
        bits=image.dtype.bits, **counters(program),
    )  # fmt: skip
    return Arrival(source, *WHOLE)


def _several(program: Program) -> Arrival:
    """Inputs that are fed one after the other, or filled each where it is."""
    parts = list[tuple[int, int]]()
    for buffer in program.input_buffers:
        at = in_one_piece(buffer)
        if at is None:
            raise ThimbleError(
                f"{buffer.tensor}, one of several inputs, does not lie in one piece of bytes: "
                "try strategy=joint or ordinary"
            )
        parts.append((at, input_bytes(program.graph.tensors[buffer.tensor])))
    return _fed(program, parts, fillable=True)


def in_one_piece(buffer: Buffer) -> int | None:
    """The first byte of a buffer of bytes that lies in one piece, on a multiple of an element."""
    at, width = buffer.run(buffer.box), buffer.bits // 8
    return at // 2 if width and at is not None and at // 2 % width == 0 else None


def _fed(program: Program, parts: Sequence[tuple[int, int]], fillable: bool) -> Arrival:
    """Take ``parts``, (first byte in the arena, bytes), one after the other."""
    source = render("frame/feed_bytes.c.j2", parts=parts, **counters(program))
    complete, rewind = WHOLE
    if not fillable:
        return Arrival(source, complete, rewind)
    return Arrival(source, f"nn_fed == 0 || {complete}", rewind, at=tuple(at for at, _ in parts))


def _moved(
    program: Program, image: Tensor, resident: Buffer, events: Sequence[Step]
) -> tuple[Arrival, Sequence[Step]] | None:
    """Moves from the stream that cover the image row by row, into one buffer."""
    expected, targets, index = 0, set(), 0
    for step in events:
        if not isinstance(step, Move) or step.src.buffer != resident.name:
            break
        box, target = step.src.box(resident.shape, {}), program.buffer(step.dst)
        whole = all(r == (0, extent) for r, extent in zip(box[1:], image.shape[1:], strict=True))
        if box[0][0] != expected or not whole or step.dst.box(target.shape, {}) != box:
            return None
        expected, index = box[0][1], index + 1
        targets.add(target.name)
    if expected != image.shape[0] or len(targets) != 1:
        return None
    buffer = program.plan.buffer[targets.pop()]
    if len(set(buffer.addresses(buffer.box).reshape(-1).tolist())) < image.size:
        return None  # a ring: the first rows have to be used before the last ones arrive
    return _held(program, image, buffer, fillable=False), events[index:]


def _pooled(
    program: Program, image: Tensor, resident: Buffer, events: Sequence[Step]
) -> tuple[Arrival, Sequence[Step]] | None:
    found = pooled.pooling(program, image, events)
    if found is None:
        return None
    source = pooled.source(program, image, found, counters(program))
    rewind = ("nn_fed_rows = 0;", "nn_fed_column = 0;")
    whole, begun = f"nn_fed_rows == {image.shape[0]}", "nn_fed_rows || nn_fed_column"
    return Arrival(source, whole, rewind, found.op.name, begun), events[found.events :]


def counters(program: Program) -> dict[str, str]:
    """Give templates the C types of a number of bytes in one call and in a frame."""
    count = "uint16_t" if program.hardware.core == "avr" else "uint32_t"
    graph = program.graph
    fed_bytes = program.plan.frames * sum(input_bytes(graph.tensors[n]) for n in graph.inputs)
    return {"count": count, "fed": count if fed_bytes < 1 << 16 else "uint32_t"}


def input_bytes(image: Tensor) -> int:
    """Count them as they are fed: an element smaller than a byte takes one."""
    return image.size * max(image.dtype.bits // 8, 1)
