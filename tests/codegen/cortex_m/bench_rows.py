"""``python -m tests.codegen.cortex_m.bench_rows``: what the joint schedule takes at its least
memory, in twice the arena of that and at its fastest, what patches take, and what pixels in place
do, on simulated cores, as a ratio to whole tensors one after the other; "model": what kernels say,
as a ratio to what is simulated. Of all networks, cores and forms, or of those that are named, and
whole tensors. Ends with 1 where a ratio is more than 3 % worse than the one in ``ratios.json``, the
arena is too large for its tensors, or kernels say something else than what is simulated;
``--record`` writes ratios.

``limit [network …] [M4 | M7 | L4R5]``: how far each layer of the networks and cores that are named,
or of MLPerf Tiny's on an M4 without flash waits, is from what its core can, in modelled kilocycles.
SMLAD adds two products a cycle: 0.5 cycles a product are the limit. "Share" is that limit in
relation to the layer's cycles: above 100 % where Winograd's filtering leaves products out. "Spent
on": what takes the most of them, in the words of the kernel's declaration (``pipeline/kernels``),
loads and widening included: a word of a pixel and a pair of channels is 8 products, a step of
Winograd's is 16.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np

from pipeline import passes
from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.graph.operators.along import Softmax
from pipeline.hardware import Hardware
from pipeline.importers.tflite import TFLite
from pipeline.kernels import Form, cycles_by_operator, modelled_cycles
from pipeline.kernels.choose import named
from pipeline.kernels.fast import Fast
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.patch import Patch
from tests.codegen.cortex_m.bench import FASTEST, LIMIT, PLAIN, run, without_waits
from tests.public_models import MODELS, required
from tests.strategies import bench_joint, nets
from tests.strategies.bench_joint import ROOM
from tests.targets.cortex_m import board_named

RATIOS = Path(__file__).parent / "ratios.json"
WORSE = 1.03
MODELLED = 0.05
"""How far kernels may be off what is simulated, of whole networks, not by forms of ``ONLY``."""
RAM_BYTES, FLASH_BYTES = 2 << 20, 3 << 20
"""Sizes of boards that hold any of these networks; the simulated machines have as much."""

TFLITE = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8", "ad01_int8")
MADE: dict[str, Callable[[], Graph]] = {"res15": nets.res15, "micronet_kws_l": nets.micronet_kws_l}
"""With random weights; none is -128, as in networks that are quantized."""
LARGE = ("mobilenet_v2_160", "mobilenet_v2_w035_144", "mobilenet_v3_small")
CORES = ("M4", "M7", "L4R5")


def network(name: str) -> Graph:
    if name in TFLITE:
        return passes.applied(TFLite(path=str(MODELS / f"{name}.tflite")).graph(), PLAIN)
    if name in LARGE:
        return bench_joint.network(name)
    graph = MADE[name]()
    *operators, last = graph.operators
    if isinstance(last, Softmax):  # of a tensor without a scale, which C takes for TFLite's
        graph = replace(graph, operators=tuple(operators), outputs=last.inputs[:1])
    weights = {op.parameters[0] for op in graph.operators if op.weighted}
    constants = {n: np.maximum(v, -127) if n in weights else v for n, v in graph.constants.items()}
    return replace(graph, constants=constants)


def boards(name: str) -> dict[str, Hardware]:
    """Cores without flash waits, and the L4R5 with its own, all with memory enough."""
    sizes = {"sram_bytes": RAM_BYTES, "flash_bytes": FLASH_BYTES}
    m4, m7 = board_named("nucleo_l4r5zi", **sizes), board_named("nucleo_f767zi", **sizes)
    found = {"M4": without_waits(m4), "M7": without_waits(m7)}
    return {**found, "L4R5": m4} if name in TFLITE else found


FORMS: dict[str, Strategy] = {
    "ordinary": Ordinary(),
    "rows": Joint(),
    "rows, twice": Joint(objective="latency", arena_limit_times_least=2),
    "fastest": Joint(objective="latency"),
    "patch": Patch(),
    "in place": Herringbone(),
}
PATCHED = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
"""Networks that begin with images that 4 x 4 patches are worth a try for."""

IN_PLACE = (*TFLITE, "micronet_kws_l", "mobilenet_v2_w035_144")
"""Networks that pixels in place are planned for in seconds."""

ONLY = {"patch": PATCHED, "in place": IN_PLACE}


def cycles(graph: Graph, hardware: Hardware, plan: Plan) -> int:
    """Count the cycles of the median inference."""
    with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
        return run(graph, hardware, plan, Path(folder), 1)[0].cycles


def alike(plan: Plan, other: Plan) -> bool:
    """Check whether they are one program: nothing but what they are called differs."""
    return replace(plan, strategy=other.strategy, notes=other.notes) == other


def rows(
    name: str, cores: Sequence[str], forms: Sequence[str]
) -> tuple[dict[str, float], list[str]]:
    """The ratio of each form on each board, of ``cores`` and ``forms`` or of all; and of which of
    them kernels say too much or too little."""
    graph, found, off = network(name), dict[str, float](), list[str]()
    for board, hardware in boards(name).items():
        whole, known = 0, list[tuple[Plan, int]]()
        for form, strategy in FORMS.items() if not cores or board in cores else ():
            if name not in ONLY.get(form, (name,)) or form not in (*forms, "ordinary"):
                continue
            plan = strategy.plan(graph, hardware)
            same = (taken for other, taken in known if alike(plan, other))
            taken = next(same, 0) or cycles(graph, hardware, plan)
            known.append((plan, taken))
            whole, pmu = whole or taken, cost(roomy(plan), graph, hardware).pmu_bytes
            found[f"{name}, {form}, {board}"] = round(taken / whole, 3)
            modelled = modelled_cycles(plan, graph, hardware) / taken
            if form == "rows" and arena_bytes(plan) > ROOM.get(name, inf) * pmu:
                sys.exit(f"{name} on {board}: an arena of {arena_bytes(plan)} B for {pmu:.0f} B")
            if form not in ONLY and abs(modelled - 1) > MODELLED:
                off.append(f"{name}, {form}, {board}")
            print(f"{name:24} {form:16} {board:6} {taken / 1e6:9.3f} {taken / whole:7.3f} "
                  f"{modelled:7.3f} {pmu:9,.0f} {arena_bytes(plan):9,}", flush=True)  # fmt: skip
    return found, off


def main(arguments: list[str]) -> int:
    if "limit" in arguments:
        return by_layer(arguments)
    cores = [name for name in arguments if name in CORES]
    forms = [name for name in arguments if name in FORMS]
    names = [name for name in arguments if name not in (*cores, *forms, "--record")]
    names = names or [*TFLITE, *MADE, *LARGE]
    if {*names} & {*TFLITE}:
        required()
    recorded: dict[str, float] = json.loads(RATIOS.read_text()) if RATIOS.is_file() else {}
    print(f"{'network':24} {'form':16} {'core':6} {'Mcycles':>9} {'ratio':>7} "
          f"{'model':>7} {'pmu B':>9} {'arena B':>9}")  # fmt: skip
    worse, off = [], []
    for name in names:
        found, differ = rows(name, cores, forms or list(FORMS))
        off += differ
        worse += [key for key, ratio in found.items() if ratio > WORSE * recorded.get(key, ratio)]
        recorded |= found
    if "--record" in arguments:
        kept = {key: recorded[key] for key in sorted(recorded) if _form(key) in FORMS}
        RATIOS.write_text(json.dumps(kept, indent=1) + "\n")
        return 0
    for key in worse:
        print(f"worse than recorded by more than 3 %: {key}")
    for key in off:
        print(f"modelled and simulated cycles differ by more than {MODELLED:.0%}: {key}")
    return int(bool(worse or off))


def _form(key: str) -> str:
    """Return the form of "network, form, core"."""
    return key.split(", ", 1)[1].rpartition(", ")[0]


def parts(plan: Plan, graph: Graph, hardware: Hardware) -> Mapping[str, Mapping[str, float]]:
    """Cycles by operator of what its kernels do, by their words for it, or by their names."""
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


def by_layer(arguments: Sequence[str]) -> int:
    head = f"{'kMACs':>10} {'kcycles':>10} {'per MAC':>8} {'share':>6}  spent on"
    cores = [name for name in arguments if name in CORES] or ["M4"]
    for name in [name for name in arguments if name not in (*CORES, "limit")] or TFLITE:
        graph = network(name)
        for core, hardware in boards(name).items():
            if core in cores:
                print(f"{name + ', ' + core:24} {head}")
                print("\n".join(of_limit(graph, hardware)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
