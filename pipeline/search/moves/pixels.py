"""In place, pixel by pixel: one operator after the other, each overwriting what it has used up, and
blocks with branches together. What follows the last layer, such as a softmax, lies beside."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Literal

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.placement.blocks import WORD, round_up
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.arriving import Arriving
from pipeline.schedules.lower import Region, laid_at, needed, room
from pipeline.schedules.traversed import Traversed
from pipeline.schedules.whole import Whole
from pipeline.search.chains import contiguous, slots
from pipeline.search.chains.cells import Cells, at
from pipeline.search.chains.choose import chosen
from pipeline.search.chains.peeling import least, turned_after
from pipeline.search.chains.traversals import (
    Peels,
    columns,
    herringbone,
    ordered,
    rows,
    single_transpose,
)
from pipeline.search.view.pixels import Layer, Order, PixelView

Form = Literal["replace", "single_transpose", "herringbone"]
"""Orders of a convolution's outputs (sections 3.4.1 to 3.4.3 of the paper)."""


def in_place(
    graph: Graph, hardware: Hardware, form: Form, layout: str = "slots", convolve: bool = False
) -> Plan:
    """
    Args:
        convolve: as the image streams in, see ``Arriving.convolved``.

    Raises:
        ThimbleError: for a layout of chains where there is none, for tensors without pixels, for
            several inputs or outputs, and where nothing can be convolved as it arrives.
    """
    _ = graph.start, graph.end  # several are refused
    first = Arriving.of(graph, hardware)
    if convolve:
        first = first.convolved(graph, hardware)
    operators, after = _parts(graph, first.operators, form, layout)
    end = operators[-1].output if operators else first.start.name
    view = PixelView.of(graph.tensors, first.starts, operators, end)
    besides, nibbles = first.beside, sum(first.beside.values())
    if layout == "slots":
        orders = partial(_orders, form)
        in_order = not convolve or first.start.dtype.bits > 4
        best = slots.arrange(view, nibbles, chosen(view, orders), in_order)
        if best.nibbles > room(graph, hardware):
            tight = chosen(view, orders, tight=True)
            if max(order.peak for order in tight) < best.nibbles:
                ways = best, slots.arrange(view, nibbles, tight, in_order)
                best = min(ways, key=lambda found: found.nibbles)
        view.known.clear()  # of a long chain most of what is held
    else:
        found = (contiguous.arrange(first.start, nibbles, way) for way in _ways(form, view))
        best = min(found, key=lambda each: each.nibbles)
    if convolve:
        first = replace(first, place=best.buffers[0])
    regions: list[Region] = [first, best, *map(Whole, after)]
    places, nibbles = _beside(best, after, graph)
    places |= dict(zip(besides, accumulate(besides.values(), initial=best.beside), strict=False))
    return laid_at(regions, graph, hardware, nibbles, places).plan(f"{form}/{layout}")


def _parts(
    graph: Graph, arrived: Sequence[Operator], form: Form, layout: str
) -> tuple[Sequence[Operator], Sequence[Operator]]:
    """Split operators into those that run in place and those behind the last layer, such as a
    softmax of a few values, each of which reads what the one before it made."""
    operators = [op for op in needed(graph) if op not in arrived]
    behind = len(operators)
    while behind > 1 and not operators[behind - 1].slides:
        if set(operators[behind - 1].inputs) != {operators[behind - 2].output}:
            break
        behind -= 1
    tensor = operators[0].inputs[0] if operators[:behind] else graph.start
    for op in operators[:behind] if layout == "contiguous" else []:
        if not op.slides or set(op.inputs) != {tensor}:
            raise ThimbleError(
                f"strategy {form} cannot plan {op.name} ({type(op).__name__}) with "
                "strategy.layout=contiguous, which is for chains of convolutions, pooling and "
                "dense layers: try strategy.layout=slots"
            )
        tensor = op.output
    for op in operators[:behind]:
        for name in (*op.inputs, op.output):
            if len(graph.tensors[name].shape) not in (1, 3):
                raise ThimbleError(
                    f"strategy {form} cannot plan {op.name} ({type(op).__name__}): it "
                    f"plans vectors and images of pixels, and {name} is "
                    f"{graph.tensors[name].shape}; try strategy=joint"
                )
    return operators[:behind], operators[behind:]


def _orders(form: Form, view: PixelView, number: int, tight: bool) -> Iterator[Order]:
    """Yield orders in slots: row-major wherever that fits the arena that others need at least,
    since it is fastest, but the paper's order where peeling pays (``Layer.peelable``). Channel
    by channel, where each is made of one, only where memory is ``tight``: no fast kernel does that.
    """
    layer = view.layer(number)
    size, slides, turns = layer.outputs[:2], layer.op.slides, form == "single_transpose"
    if not (turns and slides and layer.peelable):
        yield ordered(view, number, next(_options(form, layer)) if slides else rows(*size))
    if form == "replace" or not slides or len(layer.target.shape) != 3:
        return
    if turns:
        # all are tried: eq. 4's r* holds only for layout ``contiguous``; the latest moves least
        turn = len(peaks := turned_after(layer)) - 1 - int(np.argmin(peaks[::-1]))
        yield ordered(view, number, single_transpose(*size, turn))
        return
    if not layer.peelable:
        yield ordered(view, number, least(layer))
    if layer.inputs.nibbles_per_element == 1 < layer.outputs.nibbles_per_element:
        yield from (ordered(view, number, least(layer, half=half)) for half in (0, 1))
    if tight and layer.groups > 1:
        yield ordered(view, number, least(layer, layer.groups), layer.groups)


def _ways(form: Form, view: PixelView) -> list[list[contiguous.Traversal]]:
    """Ways through a whole chain in one piece: the first with the smallest arena is planned.

    Columns, of what cannot be peeled, have to make the whole chain's arena smaller: permuting takes
    time.
    """
    first, best = list[contiguous.Traversal](), list[contiguous.Traversal]()
    for number in range(len(view.operators)):
        layer, mirrored = view.layer(number), (len(view.operators) - number) % 2 == 0
        options = [(layer, peels, mirrored) for peels in _options(form, layer)]
        first.append(options[0])
        best.append(min(options, key=lambda way: contiguous.needed_nibbles(*way)))
    return [first, best] if form == "herringbone" else [best]


def _options(form: Form, layer: Layer) -> Iterator[Peels]:
    size = layer.outputs[:2]
    if form == "single_transpose" and layer.peelable:
        yield from (single_transpose(*size, n) for n in range(max(size), -1, -1))
    elif form == "herringbone" and layer.peelable:
        yield herringbone(*size)
    else:
        yield rows(*size)
        if form == "herringbone":
            yield columns(*size)


def _beside(
    chain: Traversed, after: Sequence[Operator], graph: Graph
) -> tuple[dict[str, int], int]:
    """Place what ``after`` makes of the chain's output, each apart from what it is made of; also
    return the nibbles of all."""
    places, nibbles, before = dict[str, int](), chain.nibbles, chain.buffers[-1]
    for op in after:
        tensor = graph.tensors[op.output]
        cells = Cells(nibbles)
        cells.hold(before)
        place = cells.run(tensor.nibbles, WORD)
        places[tensor.name] = place = round_up(nibbles, WORD) if place is None else place
        nibbles = max(nibbles, place + tensor.nibbles)
        before = at(tensor, place)
    return places, nibbles
