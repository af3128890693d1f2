"""``python -m tests.codegen.cortex_m.bench_rows``: what the joint schedule takes at its least
memory, in twice the arena of that and at its fastest, what patches take, and what pixels in place
do, on simulated cores, as a ratio to whole tensors one after the other; "model": what kernels say,
as a ratio to what is simulated. Of all networks, cores and forms, or of those that are named, and
whole tensors. Ends with 1 where a ratio is more than 3 % worse than the one in ``ratios.json``, the
arena is too large for its tensors, or kernels say something else than what is simulated;
``--record`` writes ratios.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np

from pipeline import passes
from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.graph.operators.softmax import Softmax
from pipeline.hardware import Hardware
from pipeline.importers.tflite import TFLite
from pipeline.kernels import modelled_cycles
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.patch import Patch
from tests.codegen.cortex_m.bench import PLAIN, run, without_waits
from tests.public_models import MODELS, required
from tests.strategies import bench_joint, nets
from tests.strategies.bench_joint import ROOM
from tests.targets.cortex_m import board_named

RATIOS = Path(__file__).parent / "ratios.json"
WORSE = 1.03
MODELLED = 0.05
"""By which what kernels say may differ from what is simulated, of whole networks, not by
the forms of ``ONLY``."""
RAM_BYTES, FLASH_BYTES = 2 << 20, 3 << 20
"""Of boards that hold any of these networks; the simulated machines have as much."""

TFLITE = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8", "ad01_int8")
MADE: dict[str, Callable[[], Graph]] = {
    "res15": nets.res15,
    "micronet_kws_l": nets.micronet_kws_l,
}
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
        graph = replace(graph, operators=tuple(operators), output=last.inputs[0])
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
    """Of the median inference."""
    with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
        return run(graph, hardware, plan, Path(folder), 1)[0].cycles


def alike(plan: Plan, other: Plan) -> bool:
    """Whether they are one program: nothing but what they are called differs."""
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
    """Of "network, form, core"."""
    return key.split(", ", 1)[1].rpartition(", ")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
