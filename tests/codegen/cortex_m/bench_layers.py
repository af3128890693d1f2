"""``python -m tests.codegen.cortex_m.bench_layers``: what still separates the joint schedule at its
least memory, and at its fastest, from whole tensors one after the other: modelled kilocycles of
each layer, of the networks and cores that are named or of MLPerf Tiny's on an M4 without flash
waits, with the kernels that the layer has there. Where flash has waits, what these are of all, too:
weights, code and what ends sums.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import cycles_by_operator, modelled_cycles
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from tests.codegen.cortex_m.bench import without_waits
from tests.codegen.cortex_m.bench_rows import CORES, FORMS, TFLITE, boards, network

SHOWN = ("ordinary", "rows", "fastest")


def kernels_of(plan: Plan) -> Mapping[str, str]:
    """Of each operator those that run it, without the name of their set."""
    found: dict[str, list[str]] = {}
    for step in statements(plan):
        if isinstance(step, Compute):
            found.setdefault(step.op, []).append(step.kernel.rpartition(".")[2])
    return {op: ", ".join(dict.fromkeys(names)) for op, names in found.items()}


def layers(graph: Graph, hardware: Hardware) -> list[str]:
    """A line for each layer, one for all of them, and one for what is waited for."""
    plans = [FORMS[form].plan(graph, hardware) for form in SHOWN]
    taken = [cycles_by_operator(plan, graph, hardware) for plan in plans]
    names = [kernels_of(plan) for plan in plans]
    lines = [
        line(op.name, [each[op.name] for each in taken], [each[op.name] for each in names])
        for op in graph.operators
        if op.name in taken[0]
    ]
    lines.append(line("all", [sum(each.values()) for each in taken]))
    quick = without_waits(hardware)
    if hardware != quick:
        waits = [
            sum(each.values()) - modelled_cycles(plan, graph, quick)
            for each, plan in zip(taken, plans, strict=True)
        ]
        lines.append(line("of which waits", waits))
    return lines


def line(name: str, taken: Sequence[float], kernels: Sequence[str] = ()) -> str:
    whole, *others = (cycles / 1e3 for cycles in taken)
    beside = " ".join(f"{each:10,.1f} {each / whole:6.3f}" for each in others)
    return f"{name:24} {whole:10,.1f} {beside}  {' | '.join(kernels)}".rstrip()


def main(arguments: Sequence[str]) -> int:
    cores = [name for name in arguments if name in CORES] or ["M4"]
    for name in [name for name in arguments if name not in CORES] or TFLITE:
        graph = network(name)
        for core, hardware in boards(name).items():
            if core in cores:
                beside = " ".join(f"{form:>10} {'ratio':>6}" for form in SHOWN[1:])
                print(f"{name + ', ' + core:24} {SHOWN[0]:>10} {beside}  {' | '.join(SHOWN)}")
                print("\n".join(layers(graph, hardware)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
