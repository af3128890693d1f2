"""``python -m tests.kernels.fit``: the costs that kernels declare, from the cycles of layers that
``bench.py`` recorded: those with the least sum of squared relative errors, none below 0. Those of
``cortex_m`` are written to their table, others printed."""

import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import mean

import numpy as np
from scipy.optimize import nnls

from pipeline.kernels import named
from pipeline.kernels.cortex_m import RATES, costs
from pipeline.kernels.cortex_m.costs import CORES
from pipeline.kernels.fast import Fast
from pipeline.kernels.int8 import counted
from pipeline.kernels.work import Counts
from tests.codegen.cortex_m.support import core
from tests.kernels.layers import cores, form_of, recorded

Measured = list[tuple[Counts, list[int]]]
"""Counts of what layers do, and the cycles that they take on each core."""

TABLE = Path(str(costs.__file__))
FAST = "cortex_m."


def costly(kernel: Fast) -> str:
    """Whose costs it has: some kernels share them."""
    return f"{kernel.core}.{getattr(kernel, 'priced', '') or kernel.word}"


@cache
def measured() -> dict[str, Measured]:
    """By the kernel's name in the set, or by the C of a portable one."""
    found: dict[str, Measured] = {}
    for layer, (cycles, _) in recorded():
        form = form_of(layer)
        kernel = named(layer.kernel, form, core(cores(layer)[0]))
        fast = isinstance(kernel, Fast)
        owner, counts = (costly(kernel), kernel.counts(form)) if fast else counted(form)
        found.setdefault(owner, []).append((counts, cycles))
    return found


def code_bytes() -> dict[str, int]:
    """The mean of layers, of kernels that make rows."""
    found: dict[str, list[int]] = {}
    for layer, (_, code) in recorded():
        if code:
            found.setdefault(layer.kernel.removeprefix(FAST), []).append(code)
    return {word: round(mean(each)) for word, each in sorted(found.items())}


def fitted(rows: Measured) -> dict[str, tuple[float, ...]]:
    """Fit each core's costs, by what is counted; those without a measurement by their rates."""
    words = list(dict.fromkeys(word for counts, _ in rows for word in counts))
    does = np.array([[counts.get(word, 0) for word in words] for counts, _ in rows])
    taken = np.array([cycles for _, cycles in rows])  # (layers, cores)
    costs = [nnls(does / cycles[:, None], np.ones(len(rows)))[0] for cycles in taken.T]
    costs += [costs[0] * RATES[cpu] for cpu in CORES[len(costs) :]]
    found = zip(words, np.array(costs).T, strict=True)
    return {word: tuple(float(f"{n:.3g}") for n in each) for word, each in found if each.any()}


def written(table: Mapping[str, Mapping[str, tuple[float, ...]]]) -> str:
    """The file of the table."""
    sizes = "".join(f'    "{word}": {size},\n' for word, size in code_bytes().items())
    kernels = [
        f'    "{kernel}": {{\n'
        + "".join(f'        "{w}": ({", ".join(map(str, n))}),\n' for w, n in words.items())
        + "    },\n"
        for kernel, words in sorted(table.items())
    ]
    head, _, _ = TABLE.read_text().partition("CODE_BYTES = ")
    return f"{head}CODE_BYTES = {{\n{sizes}}}\n\nCOSTS = {{\n{''.join(kernels)}}}\n"


def main() -> int:
    fast = dict(costs.COSTS)
    for owner, rows in measured().items():
        found = fitted(rows)
        if owner.startswith(FAST):
            fast[owner.removeprefix(FAST)] = found
        else:
            print(owner, json.dumps({word: each[0] for word, each in found.items()}, indent=4))
    TABLE.write_text(written(fast))
    return 0


if __name__ == "__main__":
    sys.exit(main())
