"""``python -m tests.codegen.cortex_m.bench_limit``: how far each layer is from what its core can,
of the networks and cores (M4, M7, L4R5) that are named, or of MLPerf Tiny's on an M4 without flash
waits. SMLAD adds two products a cycle: 0.5 cycles a product are the limit. "Share" is that limit in
relation to the layer's modelled cycles: above 100 % where Winograd's filtering leaves products out.
"Spent on": what takes the most of them, in the words of the kernel's declaration
(``pipeline/kernels``), loads and widening included: a word of a pixel and a pair of channels is 8
products, a step of Winograd's is 16.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import Form, cycles_by_operator
from pipeline.kernels.choose import named
from pipeline.kernels.cortex_m.fast import Fast
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from tests.codegen.cortex_m.bench import FASTEST, LIMIT
from tests.codegen.cortex_m.bench_rows import CORES, TFLITE, boards, network


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


def layers(graph: Graph, hardware: Hardware) -> list[str]:
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
    cores = [name for name in arguments if name in CORES] or ["M4"]
    for name in [name for name in arguments if name not in CORES] or TFLITE:
        graph = network(name)
        for core, hardware in boards(name).items():
            if core in cores:
                head = f"{'kMACs':>10} {'kcycles':>10} {'per MAC':>8} {'share':>6}  spent on"
                print(f"{name + ', ' + core:24} {head}")
                print("\n".join(layers(graph, hardware)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
