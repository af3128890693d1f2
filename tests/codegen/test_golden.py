"""Generated C of small configurations is what is kept of it, and plain.

``python -m tests.codegen.test_golden`` writes the golden files anew, after a change that is meant.
"""

from pathlib import Path

import pytest

from pipeline.artifacts import write_text
from pipeline.codegen import generate
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.support import core
from tests.codegen.int8.support import PLANS, network
from tests.codegen.support import host, uno
from tests.strategies.chains import Chain

FOLDER = Path(__file__).parent
PROVENANCE = {"graph": "0123456789abcdef", "plan": "fedcba9876543210"}


def _chain() -> Chain:
    return Chain((12, 12, 1), "uint8").average("pooled").conv("conv", 3).maximum("pool")


INT4: dict[str, tuple[Chain, Strategy, str]] = {
    "slots_sram": (_chain().dense("logits", 2), Herringbone("slots"), "sram"),
    "slots_stream": (_chain().dense("logits", 2), Herringbone("slots"), "stream"),
    "contiguous_flash": (_chain().dense("logits", 2), Herringbone("contiguous"), "flash"),
    "bytes": (
        Chain((4, 4, 2), "int8").conv("conv", 2, padding=(1, 1, 1, 1), dtype="int8"),
        Herringbone("slots"),
        "sram",
    ),
}
NAMES = (
    *(f"int4/golden/{name}" for name in INT4),
    *("int8/golden/ordinary", "int8/golden/channel_loop", "cortex_m/golden"),
)
"""Their folders."""


def whole(name: str) -> dict[str, str]:
    """Generate all files of ``name``."""
    case = name.rpartition("/")[2]
    if case in INT4:
        chain, strategy, weights_in = INT4[case]
        graph, hardware = chain.graph(), uno(weights_in)
        plan = strategy.plan(graph, hardware)
    elif case == "channel_loop":
        (graph, plan), hardware = PLANS["channel loop"](), host()
    else:
        graph, hardware = network(), core() if name.startswith("cortex_m") else host()
        plan = Ordinary().plan(graph, hardware)
    return generate(graph, plan, hardware, PROVENANCE)


def generated(name: str) -> dict[str, str]:
    """Generate what is kept: what is not the same in every program."""
    shared = ("nn_",) if name.startswith("int4") else ("nn_", "steps")
    return {file: text for file, text in whole(name).items() if not file.startswith(shared)}


@pytest.mark.parametrize("name", NAMES)
def test_golden_files(name: str) -> None:
    for file, content in generated(name).items():
        assert content == (FOLDER / name / file).read_text(), (
            f"{file} of {name} changed; if that is meant: python -m tests.codegen.test_golden"
        )


if __name__ == "__main__":
    for name in NAMES:
        for file, content in generated(name).items():
            write_text(FOLDER / name / file, content)
