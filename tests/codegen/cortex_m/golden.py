"""The small network's generated C for a core with the DSP extension, kept as golden files.

``python -m tests.codegen.cortex_m.golden`` writes them anew, after a change that is meant.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.artifacts import write_text
from pipeline.codegen import generate
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.support import core
from tests.codegen.int8.configurations import PROVENANCE, network

GOLDEN = Path(__file__).parent / "golden"


def generated() -> dict[str, str]:
    graph = network()
    files = generate(graph, Ordinary().plan(graph, core()), core(), PROVENANCE)
    return {name: text for name, text in files.items() if name.startswith("model")}


if __name__ == "__main__":
    for file, content in generated().items():
        write_text(GOLDEN / file, content)
