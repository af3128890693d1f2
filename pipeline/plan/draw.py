"""A plan for people: indented pseudo-code."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.plan.vocabulary import (
    Affine,
    Blocks,
    Buffer,
    Clear,
    Compute,
    Finish,
    Index,
    Lin,
    Loop,
    Move,
    Plan,
    Rows,
    Signal,
    Slice,
    Step,
    Table,
    Wait,
)


def pseudocode(plan: Plan) -> str:
    """The plan as text: memories, buffers with their addresses, and the steps of each track."""
    lines = [f"plan of {plan.graph} by {plan.strategy}", ""]
    lines += [f"memory {m.name}: {m.bytes} B, {m.kind}" for m in plan.memories]
    lines += ["", "addresses in bytes, .5 is the second half of one"]
    lines += ["a:+n: n indices from a on, as far as the tensor has them", ""]
    lines += [_buffer(buffer) for buffer in plan.buffers]
    for track in plan.tracks:
        lines += ["", f"{track.name}:", *_steps(track.steps, "  ")]
    return "\n".join(lines) + "\n"


def _buffer(buffer: Buffer) -> str:
    shape = "x".join(map(str, buffer.shape))
    role = "" if buffer.role == "activation" else f" ({buffer.role})"
    if isinstance(buffer.map, Affine):
        terms = [
            f"{_bytes(stride)}*({name} mod {ring})" if ring else f"{_bytes(stride)}*{name}"
            for name, stride, ring in zip(
                "ijkl", buffer.map.strides, buffer.map.wrap or (0,) * 4, strict=False
            )
        ]
        place = "byte " + " + ".join([_bytes(buffer.map.base), *terms])
        if buffer.map.held:
            place += " for " + ", ".join(f"{low}:{high}" for low, high in buffer.map.held)
    else:
        low, stop = buffer.map.extent(buffer.shape, buffer.nibbles)
        kind = _kind(buffer.map)
        place = f"{kind}, bytes {_bytes(low)}…{_bytes(stop - 1)}"
    return f"{buffer.name}: {shape} x {buffer.bits} bit{role} in {buffer.memory} at {place}"


def _kind(place: Rows | Blocks | Table) -> str:
    match place:
        case Rows():
            return "rows"
        case Blocks(pixels=pixels):
            return f"rows in blocks of {pixels} pixels"
    return "a table"


def _bytes(nibbles: int) -> str:
    """Return an address or a stride of nibbles, in bytes."""
    return f"{nibbles / 2:.1f}".removesuffix(".0")


def _index(index: Index) -> str:
    if isinstance(index, Lin):
        terms = [name if factor == 1 else f"{factor}*{name}" for name, factor in index.coef]
        return " + ".join([*terms, *([str(index.const)] if index.const else [])])
    return str(index)


def _slice(piece: Slice) -> str:
    ranges = [
        _index(low) if extent == 1 else f"{_index(low)}:+{extent}"
        for low, extent in zip(piece.lo, piece.size, strict=True)
    ]
    return f"{piece.buffer}[{', '.join(ranges)}]"


def _steps(steps: tuple[Step, ...], indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Loop(var=var, count=count, body=body):
                yield f"{indent}for {var} in 0…{count - 1}:"
                yield from _steps(body, indent + "  ")
            case Compute():
                ins = ", ".join(_slice(piece) for piece in step.ins)
                notes = f" by {'x'.join(map(str, step.unit))} units" if step.unit else ""
                notes += f" in a given order of {len(step.order)}" if step.order else ""
                sign = "+=" if step.partial else "="
                yield f"{indent}{_slice(step.out)} {sign} {step.op}({ins}){notes}"
            case Clear(op=op, acc=acc):
                yield f"{indent}clear {_slice(acc)} for {op}"
            case Finish():
                yield f"{indent}{_slice(step.out)} = requantize {step.op} from {_slice(step.acc)}"
            case Move(src=src, dst=dst):
                yield f"{indent}{_slice(dst)} = move {_slice(src)}"
            case Signal(counter=counter):
                yield f"{indent}signal {counter}"
            case Wait(counter=counter, at_least=level):
                yield f"{indent}wait until {counter} >= {_index(level)}"
