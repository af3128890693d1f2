"""Effect of each step of a plan on cells, unit by unit and element by element.

Part of the reference verifier (``reference.py``). A cell holds (token, atoms): the token says which
part of which element it is, in which form; the atoms are those that an accumulator got so far, and
None for a final element.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.graph.access import Operand
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Box
from pipeline.plan.vocabulary import Buffer, Clear, Compute, Finish, Move, Plan, Slice
from tests.plan.reference_places import (
    Cell,
    Env,
    Place,
    Wrong,
    atoms,
    box_of,
    has,
    nibbles,
    number,
    ordinal,
    places,
    units,
    window,
)

Atoms = frozenset[tuple[int, int]] | None
"""(term, atom of the term) each; None: a final element."""
Token = tuple[str, str, int, int, int, int, int]
"""Tensor, form, bits, step, frame, element, which of its nibbles."""
Held = tuple[Token, Atoms]


class Element(NamedTuple):
    """One element in a buffer: a token for each of its cells."""

    cells: tuple[Cell, ...]
    tokens: tuple[Token, ...]


class Result(NamedTuple):
    """An element that is written; ``change`` makes its atoms from those of ``source``."""

    source: Element | None
    target: Element
    change: Callable[[Atoms], Atoms]


@dataclass
class Unit:
    """Unit of work: all of it is read before any of ``results`` is written.

    ``taken`` lists the nibbles that are read of each stream, as often as they are.
    """

    reads: set[tuple[Cell, Token]] = field(default_factory=set)
    results: list[Result] = field(default_factory=list)
    taken: dict[str, list[int]] = field(default_factory=dict)

    def touched(self) -> Iterator[tuple[Cell, bool]]:
        """Every cell, and whether it is written."""
        for cell, _ in self.reads:
            yield cell, False
        for result in self.results:
            for cell in result.source.cells if result.source else ():
                yield cell, False
            for cell in result.target.cells:
                yield cell, True


@dataclass
class Deed:
    """A step's units in order, the scratch cells it destroys, and how many elements it makes."""

    op: str
    units: list[Unit] = field(default_factory=list)
    scratch: set[Cell] = field(default_factory=set)
    computed: int = 0

    def touched(self) -> Iterator[tuple[Cell, bool]]:
        for unit in self.units:
            yield from unit.touched()


PASSING = ("scratch", "aside")
"""Roles of what holds nothing from one step to the next."""
Action = Compute | Clear | Finish | Move
Sources = dict[str, tuple[Buffer, int, Box]]
"""By tensor: the buffer, the number of its copy, and the elements that a step may read there."""


class Deeds:
    """The steps of one plan, one after the other."""

    def __init__(self, plan: Plan, graph: Graph) -> None:
        self.plan, self.graph = plan, graph
        self.buffers = {buffer.name: buffer for buffer in plan.buffers}
        self.memories = {memory.name: memory for memory in plan.memories}
        self.operators = {op.name: op for op in graph.operators}
        self.terms = {op.name: op.terms(graph.tensors) for op in graph.operators}
        self.ends = {op.name: op.completion(graph.tensors) for op in graph.operators}
        self.everything = {name: whole(tensor.shape) for name, tensor in graph.tensors.items()}
        self.tokens: dict[Token, Token] = {}

    def of(self, step: Action, env: Env) -> Deed:
        frame = number(step.frame, env)
        if not 0 <= frame < self.plan.frames:
            raise Wrong(f"frame {frame} of {self.plan.frames}")
        match step:
            case Compute():
                deed = self.compute(step, env, frame)
            case Clear():
                deed = self.clear(step, env, frame)
            case Finish():
                deed = self.finish(step, env, frame)
            case Move():
                deed = self.move(step, env, frame)
        written = [cell for cell, writes in deed.touched() if writes]
        if len(set(written)) < len(written):
            raise Wrong(f"{deed.op} writes two elements into one cell")
        if any(self.memories[name].kind in ("rom", "stream", "frame") for name, _ in written):
            raise Wrong(f"{deed.op} writes to a memory that is only read")
        if any(cell in deed.scratch for cell, _ in deed.touched()):
            raise Wrong(f"{deed.op} has scratch in cells that it reads or writes")
        return deed

    # --- steps

    def compute(self, step: Compute, env: Env, frame: int) -> Deed:
        op = self.operator(step.op)
        role = "accumulator" if step.partial else "activation"
        out, copy, box = self.expected(step.out, env, op.output, role)
        deed, scratch = Deed(op.name), self.scratches(step)
        self.kernel_inputs(step.ins)
        if not any(places(box)):
            return deed
        deed.scratch = scratch
        if step.partial:
            self.divisible(op)
        read = [operand for term in self.terms[op.name] for operand in term.operands]
        ends = () if step.partial else self.ends[op.name]
        sources = self.sources(step.ins, env, [*read, *ends])
        given = {tensor: box for tensor, (_, _, box) in sources.items()}
        for block in units(box, step.unit, step.order):
            unit = Unit()
            for place in block:
                had = atoms(self.terms[op.name], place, given)
                target = self.element(out, copy, frame, place)
                if step.partial:
                    unit.results.append(Result(target, target, _adding(had, op.name)))
                elif had == atoms(self.terms[op.name], place, self.everything):
                    unit.results.append(Result(None, target, lambda _: None))
                else:
                    raise Wrong(f"compute {op.name} lacks some of what it needs")
            self.read(unit, read, block, sources, frame)
            self.end(unit, ends, block, sources, frame)
            deed.units.append(unit)
            deed.computed += 0 if step.partial else len(block)
        deed.units = _later(deed.units, step.delay)
        return deed

    def clear(self, step: Clear, env: Env, frame: int) -> Deed:
        op = self.operator(step.op)
        acc, copy, box = self.expected(step.acc, env, op.output, "accumulator")
        self.divisible(op)
        low, high = op.partial_sums(self.graph.tensors, self.graph.constants)
        half = 2 ** (acc.bits - 1)
        if acc.step == 0 or (acc.step > 1 and op.combine != "add"):
            raise Wrong(f"accumulators of {op.name} cannot have steps of {acc.step}")
        if acc.step == 1 and not -half <= low <= high < half:
            raise Wrong(f"sums of {op.name} do not fit {acc.bits} bits")
        unit = Unit()
        for place in places(box):
            target = self.element(acc, copy, frame, place)
            unit.results.append(Result(None, target, lambda _: frozenset()))
        return Deed(op.name, [unit])

    def finish(self, step: Finish, env: Env, frame: int) -> Deed:
        op = self.operator(step.op)
        acc, held_in, held = self.expected(step.acc, env, op.output, "accumulator")
        out, made_in, box = self.expected(step.out, env, op.output, "activation")
        if list(places(box)) != list(places(held)):
            raise Wrong(f"finish {op.name} writes other elements than it reads")
        deed = Deed(op.name)
        self.kernel_inputs(step.ins)
        if not any(places(box)):
            return deed
        sources = self.sources(step.ins, env, self.ends[op.name])
        for block in units(box, step.unit, ()):
            unit = Unit()
            for place in block:
                full = atoms(self.terms[op.name], place, self.everything)
                source = self.element(acc, held_in, frame, place)
                target = self.element(out, made_in, frame, place)
                unit.results.append(Result(source, target, _ending(full, op.name)))
            self.end(unit, self.ends[op.name], block, sources, frame)
            deed.units.append(unit)
            deed.computed += len(block)
        return deed

    def move(self, step: Move, env: Env, frame: int) -> Deed:
        source, target = self.buffer(step.src.buffer), self.buffer(step.dst.buffer)
        kinds = [(b.tensor, b.bits, b.step, b.role == "accumulator") for b in (source, target)]
        if kinds[0] != kinds[1]:
            raise Wrong(f"{source.name} and {target.name} are of different kinds")
        moved = list(places(box_of(step.src, source.shape, env)))
        if moved and target.role == "constant":
            raise Wrong(f"a move writes the constant buffer {target.name}")
        if moved != list(places(box_of(step.dst, target.shape, env))):
            raise Wrong(f"a move reads other elements of {source.tensor} than it writes")
        copies = number(step.src.copy, env), number(step.dst.copy, env)
        unit = Unit()
        for place in moved:
            read = self.element(source, copies[0], frame, place)
            written = self.element(target, copies[1], frame, place)
            unit.results.append(Result(read, written, lambda held: held))
            self.take(unit, read)
        return Deed(f"move {source.tensor}", [unit])

    # --- buffers and their elements

    def buffer(self, name: str) -> Buffer:
        """A buffer of elements or accumulators of a tensor of the graph."""
        if name not in self.buffers:
            raise Wrong(f"there is no buffer {name}")
        buffer = self.buffers[name]
        tensor = self.graph.tensors.get(buffer.tensor)
        if buffer.role in PASSING or tensor is None or tensor.shape != buffer.shape:
            raise Wrong(f"buffer {name} is not of a tensor and its shape")
        if buffer.role != "accumulator" and buffer.bits != tensor.dtype.bits:
            raise Wrong(f"buffer {name} has elements of another width than its tensor")
        return buffer

    def near(self, name: str) -> Buffer:
        """A buffer that a kernel may use: only moves touch a card."""
        buffer = self.buffer(name)
        if self.memories[buffer.memory].kind == "block":
            raise Wrong(f"a kernel uses {name} on a card")
        return buffer

    def kernel_inputs(self, ins: tuple[Slice, ...]) -> None:
        for piece in ins:
            self.near(piece.buffer)

    def expected(self, piece: Slice, env: Env, tensor: str, role: str) -> tuple[Buffer, int, Box]:
        buffer = self.near(piece.buffer)
        if (buffer.tensor, buffer.role) != (tensor, role):
            raise Wrong(f"{buffer.name} is no {role} buffer of {tensor}")
        return buffer, number(piece.copy, env), box_of(piece, buffer.shape, env)

    def sources(self, ins: tuple[Slice, ...], env: Env, read: Iterable[Operand]) -> Sources:
        result: Sources = {}
        for piece in ins:
            buffer = self.buffer(piece.buffer)
            box = box_of(piece, buffer.shape, env)
            if buffer.role == "accumulator":
                raise Wrong(f"{buffer.name} holds sums that are not finished")
            if buffer.tensor in result:
                raise Wrong(f"two slices of {buffer.tensor}")
            if buffer.tensor not in {operand.tensor for operand in read}:
                raise Wrong(f"a slice of {buffer.tensor}, which is not read")
            if any(size and a == b for size, (a, b) in zip(piece.size, box, strict=True)):
                raise Wrong(f"a slice of {buffer.name} lies outside of its tensor")
            result[buffer.tensor] = buffer, number(piece.copy, env), box
        return result

    def element(self, buffer: Buffer, copy: int, frame: int, place: Place) -> Element:
        summing = buffer.role == "accumulator"
        form, step = ("sum", buffer.step) if summing else ("final", 1)
        frame = 0 if buffer.tensor in self.graph.constants else frame
        kind = (buffer.tensor, form, buffer.bits, step, frame, ordinal(place, buffer.shape))
        cells = tuple((buffer.memory, n) for n in nibbles(buffer, copy, place))
        tokens = tuple((*kind, part) for part in range(len(cells)))
        return Element(cells, tuple(self.tokens.setdefault(t, t) for t in tokens))

    def all_of(self, buffer: Buffer, frame: int) -> Iterator[Element]:
        """All elements of the copy that is this frame's."""
        for place in places(whole(buffer.shape)):
            yield self.element(buffer, frame, frame, place)

    def scratch(self, name: str) -> set[Cell]:
        buffer = self.buffers.get(name)
        if buffer is None or buffer.role not in PASSING or buffer.tensor:
            raise Wrong(f"{name} is no scratch buffer")
        if self.memories[buffer.memory].kind != "ram":
            raise Wrong(f"scratch {name} is in no RAM")
        spots = places(whole(buffer.shape))
        cells = [(buffer.memory, n) for place in spots for n in nibbles(buffer, 0, place)]
        if len(set(cells)) < len(cells):
            raise Wrong(f"elements of scratch {name} share cells")
        return set(cells)

    def scratches(self, step: Compute) -> set[Cell]:
        """The cells of all scratch of a step."""
        found: set[Cell] = set()
        for name in step.scratch:
            cells = self.scratch(name)
            if cells & found:
                raise Wrong(f"{step.op} has two scratches in one place")
            found |= cells
        return found

    # --- operators

    def operator(self, name: str) -> Operator:
        if name not in self.operators:
            raise Wrong(f"there is no operator {name}")
        return self.operators[name]

    def divisible(self, op: Operator) -> None:
        if op.combine == "whole":
            raise Wrong(f"{op.name} has no partial sums")

    def end(
        self, unit: Unit, ends: Iterable[Operand], block: list[Place], sources: Sources, frame: int
    ) -> None:
        """Read what ends a sum, such as the bias: all of it has to be given."""
        given = {tensor: box for tensor, (_, _, box) in sources.items()}
        for operand in ends:
            for element in (e for place in block for e in window(operand, place)):
                there = has(self.everything, operand.tensor, element)
                if there and not has(given, operand.tensor, element):
                    raise Wrong(f"a sum is ended without all of {operand.tensor}")
        self.read(unit, ends, block, sources, frame)

    def read(
        self, unit: Unit, operands: Iterable[Operand], block: list[Place], sources: Sources,
        frame: int,
    ) -> None:  # fmt: skip
        """Every operand's elements in its slice that an output of the unit reads."""
        for operand in operands:
            if operand.tensor not in sources:
                continue
            buffer, copy, box = sources[operand.tensor]
            for place in {e for made in block for e in window(operand, made)}:
                if has({operand.tensor: box}, operand.tensor, place):
                    element = self.element(buffer, copy, frame, place)
                    unit.reads.update(zip(*element, strict=True))
                    self.take(unit, element)

    def take(self, unit: Unit, element: Element) -> None:
        for memory, nibble in element.cells:
            if self.memories[memory].kind == "stream":
                unit.taken.setdefault(memory, []).append(nibble)


def whole(shape: Place) -> Box:
    return tuple((0, extent) for extent in shape)


def _adding(more: frozenset[tuple[int, int]], op: str) -> Callable[[Atoms], Atoms]:
    def change(held: Atoms) -> Atoms:
        assert held is not None
        if held & more:
            raise Wrong(f"a contribution is added to {op} twice")
        return held | more

    return change


def _ending(full: frozenset[tuple[int, int]], op: str) -> Callable[[Atoms], Atoms]:
    def change(held: Atoms) -> Atoms:
        if held != full:
            raise Wrong(f"a sum of {op} is finished that is not complete")
        return None

    return change


def _later(units: list[Unit], delay: int) -> list[Unit]:
    """Each unit's results once the next ``delay`` ones have been read."""
    delay = min(delay, len(units))
    reads = [*(Unit(unit.reads, [], unit.taken) for unit in units), *(Unit() for _ in range(delay))]
    for unit, late in zip(units, reads[delay:], strict=True):
        late.results = unit.results
    return reads
