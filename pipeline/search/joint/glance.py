"""What a network will hold row by row, by the order of its rows: nothing is placed."""

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.schedules.lower import needed
from pipeline.search.joint.least import cuts_of


def at_peak(graph: Graph, hardware: Hardware) -> tuple[int, set[frozenset[str]]]:
    """Nibbles at the peak, and the tensors of which rows are there each time that is reached."""
    cuts = cuts_of(graph, hardware, needed(graph))
    units, (peak, pieces) = cuts.units, cuts.least()
    order = [number for piece in pieces for number in cuts.order(piece)]
    view, given = units.view(order, [graph.output])
    state, full, used = view.first, list[int](), {graph.input: [0]}
    for task in range(len(view.tasks)):
        during, state = view.run(state, task)
        full += [task] * (during >= peak)
    names = {block: name for name, blocks in units.blocks.items() for block in blocks}
    for task, number in enumerate(order, given):
        unit = units.units[number]
        for block in (unit.writes, *(block for block, _ in unit.reads)):
            if block in names:  # no sums
                used.setdefault(names[block], []).append(task)
    ends = [(name, at[0], at[-1]) for name, at in used.items()]
    return peak, {frozenset(n for n, low, high in ends if low <= t <= high) for t in full}
