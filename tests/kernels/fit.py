"""``python -m tests.kernels.fit``: the costs that kernels declare, from the cycles of layers that
``bench.py`` recorded: those with the least sum of squared relative errors, none below 0."""

from __future__ import annotations

import json
import sys
from functools import cache

import numpy as np
from scipy.optimize import nnls

from pipeline.kernels import Form, named
from pipeline.kernels.cortex_m import Fast
from pipeline.kernels.int8 import counted
from pipeline.kernels.work import Counts
from tests.codegen.cortex_m.support import core
from tests.kernels.layers import RECORDED, Layer, step_of

Measured = list[tuple[Counts, int]]


@cache
def measured() -> dict[str, Measured]:
    """What layers do and take, by the kernel, or by the C of a portable one."""
    found: dict[str, Measured] = {}
    for row in json.loads(RECORDED.read_text()):
        cycles = row.pop("cycles")
        layer = Layer.of(row)
        graph = layer.graph()
        plan = layer.plan(graph, core())
        form = Form.of(step_of(plan, layer.kernel), plan.buffer, graph)
        kernel = named(layer.kernel, form, core())
        fast = isinstance(kernel, Fast)
        owner, counts = (kernel.name, kernel.counts(form)) if fast else counted(form)
        found.setdefault(owner, []).append((counts, cycles))
    return found


def fitted(rows: Measured) -> dict[str, float]:
    words = list(dict.fromkeys(word for counts, _ in rows for word in counts))
    does = np.array([[counts.get(word, 0) / cycles for word in words] for counts, cycles in rows])
    costs, _ = nnls(does, np.ones(len(rows)))
    return {word: float(f"{cost:.3g}") for word, cost in zip(words, costs, strict=True)}


def main() -> int:
    for owner, rows in measured().items():
        print(owner, json.dumps(fitted(rows), indent=4))
    return 0


if __name__ == "__main__":
    sys.exit(main())
