"""The small configurations whose generated C is kept as golden files.

``python -m tests.codegen.int4.configurations`` writes them anew, after a change that is meant.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.artifacts import write_text
from pipeline.codegen import generate
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from tests.codegen.support import uno
from tests.strategies.chains import Chain

GOLDEN = Path(__file__).parent / "golden"
PROVENANCE = {"graph": "0123456789abcdef", "plan": "fedcba9876543210"}


def _chain() -> Chain:
    return Chain((12, 12, 1), "uint8").average("pooled").conv("conv", 3).maximum("pool")


CONFIGURATIONS: dict[str, tuple[Chain, Strategy, str]] = {
    "slots_sram": (_chain().dense("logits", 2), Herringbone("slots"), "sram"),
    "slots_stream": (_chain().dense("logits", 2), Herringbone("slots"), "stream"),
    "contiguous_flash": (_chain().dense("logits", 2), Herringbone("contiguous"), "flash"),
    "bytes": (
        Chain((4, 4, 2), "int8").conv("conv", 2, padding=(1, 1, 1, 1), dtype="int8"),
        Herringbone("slots"),
        "sram",
    ),
}


def generated(name: str) -> dict[str, str]:
    chain, strategy, weights_in = CONFIGURATIONS[name]
    graph, hardware = chain.graph(), uno(weights_in)
    return generate(graph, strategy.plan(graph, hardware), hardware, PROVENANCE)


if __name__ == "__main__":
    for name in CONFIGURATIONS:
        for file, content in generated(name).items():
            if not file.startswith("nn_"):
                write_text(GOLDEN / name / file, content)
