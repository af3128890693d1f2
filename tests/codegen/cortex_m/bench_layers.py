"""``python -m tests.codegen.cortex_m.bench_layers [limit] [network …] [M4 | M7 | L4R5]``: modelled
kilocycles of each layer, of the networks and cores that are named or of MLPerf Tiny's on an M4
without flash waits.

What still separates the joint schedule at its least memory, and at its fastest, from whole tensors
one after the other, with the kernels that the layer has there. Where flash has waits, what these
are of all, too: weights, code and what ends sums.

``limit``: how far each layer is from what its core can. SMLAD adds two products a cycle: 0.5 cycles
a product are the limit. "Share" is that limit in relation to the layer's cycles: above 100 % where
Winograd's filtering leaves products out. "Spent on": what takes the most of them, in the words of
the kernel's declaration (``pipeline/kernels``), loads and widening included: a word of a pixel and
a pair of channels is 8 products, a step of Winograd's is 16.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import Form, cycles_by_operator, modelled_cycles
from pipeline.kernels.choose import named
from pipeline.kernels.cortex_m.fast import Fast
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from tests.codegen.cortex_m.bench import FASTEST, LIMIT, without_waits
from tests.codegen.cortex_m.bench_rows import CORES, FORMS, TFLITE, boards, network

SHOWN = ("ordinary", "rows", "fastest")


def kernels_of(plan: Plan) -> Mapping[str, str]:
    """Of each operator those that run it, without the name of their set."""
    found: dict[str, list[str]] = {}
    for step in statements(plan):
        if isinstance(step, Compute):
            found.setdefault(step.op, []).append(step.kernel.rpartition(".")[2])
    return {op: ", ".join(dict.fromkeys(names)) for op, names in found.items()}


def beside_whole(graph: Graph, hardware: Hardware) -> list[str]:
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


def parts(plan: Plan, graph: Graph, hardware: Hardware) -> Mapping[str, Mapping[str, float]]:
    """Of each operator the cycles of what its kernels do, by their words for it; of a kernel that
    declares no words its name."""
    found: dict[str, dict[str, float]] = {}
    for step in statements(plan):
        if isinstance(step, Compute):
            form = Form.of(step, plan.buffer, graph)
            kernel, here = named(step.kernel, form, hardware), found.setdefault(step.op, {})
            priced = {kernel.name: kernel.cycles(form)}
            if isinstance(kernel, Fast):
                prices = kernel.prices()
                priced = {word: n * prices.get(word, 0) for word, n in kernel.counts(form).items()}
            for word, cycles in priced.items():
                here[word] = here.get(word, 0.0) + cycles
    return found


def share(products: int, cycles: float) -> str:
    return f"{cycles / products:8.2f} {LIMIT * products / cycles:6.1%}" if products else " " * 15


def spent_on(of: Mapping[str, float], cycles: float) -> str:
    largest = sorted(of.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{word} {part / cycles:.0%}" for word, part in largest if part)


def of_limit(graph: Graph, hardware: Hardware) -> list[str]:
    """A line for each layer, and one for all of them."""
    plan = FASTEST.plan(graph, hardware)
    taken, doing = cycles_by_operator(plan, graph, hardware), parts(plan, graph, hardware)
    lines = []
    for op in graph.operators:
        if cycles := taken.get(op.name):
            products = op.macs(graph.tensors)
            said = f"{products / 1e3:10,.0f} {cycles / 1e3:10,.1f} {share(products, cycles)}"
            lines.append(f"{op.name:24} {said}  {spent_on(doing[op.name], cycles)}")
    all_cycles = sum(taken.values())
    said = f"{graph.macs / 1e3:10,.0f} {all_cycles / 1e3:10,.1f} {share(graph.macs, all_cycles)}"
    return [*lines, f"{'all':24} {said}"]


def main(arguments: Sequence[str]) -> int:
    shown, heads = beside_whole, [f"{form:>10} {'ratio':>6}" for form in SHOWN[1:]]
    head = f"{SHOWN[0]:>10} {' '.join(heads)}  {' | '.join(SHOWN)}"
    if "limit" in arguments:
        shown = of_limit
        head = f"{'kMACs':>10} {'kcycles':>10} {'per MAC':>8} {'share':>6}  spent on"
    cores = [name for name in arguments if name in CORES] or ["M4"]
    for name in [name for name in arguments if name not in (*CORES, "limit")] or TFLITE:
        graph = network(name)
        for core, hardware in boards(name).items():
            if core in cores:
                print(f"{name + ', ' + core:24} {head}")
                print("\n".join(shown(graph, hardware)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
