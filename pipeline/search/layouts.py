"""The layout of each tensor's rows, channels last or in blocks of pixels, whichever takes its
kernels less time.

Tensors, one by one or all of an operator, are turned over where that saves cycles of the operators
that make and read them, until none is left that does: from all in blocks on, which is best for
most; from none on where that leaves rows in blocks to portable code. What is made element by
element lies as what it is made of, and is turned over with that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.kernels import Form, Part, block_pixels, cycles_of_step, offers
from pipeline.plan.vocabulary import packed
from pipeline.schedules.bounds import Needs, Range, all_of
from pipeline.schedules.rows import rows_of
from pipeline.search.view.rows import adds_rows

NONE = 1e12
"""Cycles of what no kernel computes but by tables of where each element is, which can be larger
than all weights: a finite number, so that fewer of these are better."""

MANY = 256
"""Operators; what more of them touch is turned over tensor by tensor only."""

Layout = Mapping[str, int]
"""Pixels of a block, by the tensors whose rows lie in blocks."""


def in_blocks(
    graph: Graph, operators: Sequence[Operator], hardware: Hardware, whole: frozenset[str]
) -> dict[str, int]:
    """Choose tensors with rows in blocks, and pixels of a block; ``whole`` lie in one piece."""
    images = (op.output for op in operators if rows_of(graph, op.output) > 1)
    free = {n: block_pixels(hardware, graph.tensors[n].shape[1]) for n in images if n not in whole}
    able = {name: pixels for name, pixels in free.items() if pixels}
    alike = lying_alike(operators, able)
    lie = [[alike[name] for name in (*op.inputs, op.output) if name in alike] for op in operators]
    users: dict[str, list[int]] = {name: [] for name in dict.fromkeys(alike.values())}
    for number, names in enumerate(lie):
        for name in set(names):
            users[name].append(number)

    plain = lru_cache(64)(lambda number: form_of_a_row(operators[number], graph, {}))

    @cache
    def taken(number: int, blocked: frozenset[str]) -> float:
        form = plain(number)
        layout = {n: able[n] for n in form.parts if alike.get(n) in blocked}
        return cycles_of_rows(laid(form, layout), hardware)

    def cycles(number: int, chosen: Mapping[str, bool]) -> float:
        return taken(number, frozenset(name for name in lie[number] if chosen[name]))

    # what lies alike the other way, or all that an operator reads and makes either way
    turns: list[tuple[tuple[str, ...], bool | None]] = [
        *(((name,), None) for name in users),
        *((tuple(dict.fromkeys(names)), way) for names in lie for way in (False, True)),
    ]

    def settled(chosen: dict[str, bool]) -> dict[str, bool]:
        """After all turns that save, until none does."""
        saves = True
        while saves:
            saves = False
            for names, way in dict.fromkeys(turns):
                before = {name: chosen[name] for name in names}
                after = {n: not lies if way is None else way for n, lies in before.items()}
                touched = {number for name in names for number in users[name]}
                if before == after or (way is not None and len(touched) > MANY):
                    continue
                least = sum(cycles(number, chosen) for number in touched)
                chosen |= after
                if sum(cycles(number, chosen) for number in touched) < least:
                    saves = True
                else:
                    chosen |= before
        return chosen

    best = settled(dict.fromkeys(users, True))
    if any(cycles(number, best) >= NONE for number in range(len(operators))):
        best = settled(dict.fromkeys(users, False))
    return {name: pixels for name, pixels in able.items() if best[alike[name]]}


def lying_alike(operators: Sequence[Operator], tensors: Iterable[str]) -> dict[str, str]:
    """Return for each of ``tensors`` one that stands for all that are made of it element by
    element, or that it is made of so."""
    found = {name: name for name in tensors}
    for op in operators:
        names = [found[n] for n in (op.output, *op.inputs) if op.element_wise and n in found]
        if names[1:]:
            found |= {name: names[0] for name, other in found.items() if other in names}
    return found


def cycles_of_rows(form: Form, hardware: Hardware) -> float:
    """Add up all rows of an output, or all that are added to it, each in this form."""
    able = [each for each in offers(form, hardware) if not each.looks_up(form)]
    rows = rows_of(form.graph, form.op.inputs[0] if form.partial else form.op.output)
    return rows * cycles_of_step(able[0], form, hardware) if able else NONE


def form_of_a_row(op: Operator, graph: Graph, layout: Layout) -> Form:
    """Return a row in the middle of ``op``'s output, or what a row adds to that."""

    def part(tensor: str, rows: int) -> Part:
        shape, bits = graph.tensors[tensor].shape, graph.tensors[tensor].dtype.bits
        if len(shape) < 3:
            return Part.packed(shape, bits)
        return Part((rows, *shape[1:]), packed(shape, bits).strides[1:], bits, "rows")

    out = graph.tensors[op.output].shape
    if adds_rows(op, graph):
        parts = {op.inputs[0]: part(op.inputs[0], 1), op.output: Part.packed(out, 32)}
        return laid(Form(op, graph, parts, partial=True), layout)
    box = (Range(out[0] // 2, 1), *all_of(out[1:])) if len(out) == 3 else all_of(out)
    read = Needs(op, graph.tensors)(box)
    parts = {name: part(name, read[name][0].size) for name in op.inputs}
    return laid(Form(op, graph, {**parts, op.output: part(op.output, 1)}), layout)


def laid(form: Form, layout: Layout) -> Form:
    """Return it with rows in blocks, of as many pixels as ``layout`` says."""
    blocks = {
        name: replace(part, strides=(), spread="blocks", pixels=min(pixels, part.extents[1]))
        for name, part in form.parts.items()
        if (pixels := layout.get(name)) and part.spread == "rows"
    }
    return replace(form, parts={**form.parts, **blocks})
