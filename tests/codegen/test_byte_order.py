"""Programs that take the first byte of a number for its lowest say so to a compiler for cores that
have it the other way around; all others are free of that."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.codegen import generate
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.swap import Swap
from pipeline.targets.harness import harness_sources
from tests.codegen.card.sealing import board
from tests.codegen.card.support import planned, sources
from tests.codegen.card.test_swapped import elements
from tests.codegen.golden import whole
from tests.codegen.int8.support import apart, host
from tests.codegen.int8.test_operators import CASES
from tests.codegen.support import write
from tests.strategies.swap.nets import random_chain
from tests.targets.cortex_m import board_named

BIG = ("-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__")
"""As a compiler for such a core has it."""
Files = dict[str, str]


def bytes_alone(case: str) -> Files:
    graph = CASES[case]().graph()
    return generate(graph, apart(graph), host(), {}) | harness_sources(board_named("host"))


def cortex_m() -> Files:
    graph, hardware = random_chain(1), board_named("nucleo_f446re")
    return generate(graph, Ordinary().plan(graph, hardware), hardware, {})


def card(security: str) -> Files:
    graph = random_chain(1)
    if security == "unchecked":
        return sources(graph, planned(graph, 4000))
    hardware = board(security, elements(graph))  # type: ignore[arg-type]
    return generate(graph, Swap().plan(graph, hardware), hardware, {})


@pytest.mark.parametrize(
    ("made", "refuses"),
    [
        (lambda: bytes_alone("dense to 32 bits"), {"main.c"}),
        (lambda: bytes_alone("mean pool"), set()),
        (lambda: whole("int4/golden/slots_stream"), {"model.c"}),
        (lambda: whole("int4/golden/slots_sram"), {"model.c"}),  # outputs of 16 bits
        (lambda: whole("int4/golden/bytes"), set()),
        (cortex_m, {"model.c"}),
        (lambda: card("unchecked"), set()),
        (lambda: card("none"), {"model.c"}),
        (lambda: card("encrypted"), {"chacha20_poly1305.c"}),
    ],
)
def test_refuses_a_core_with_the_other_order_where_it_matters(
    tmp_path: Path, made: Callable[[], Files], refuses: set[str]
) -> None:
    files = made()
    write(tmp_path, files)

    def compiles(source: str, *options: str) -> bool:
        command = ["cc", "-std=gnu99", "-w", *options, "-fsyntax-only", source]
        return (
            subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
        )

    found = {name for name in files if name.endswith(".c")}
    assert all(map(compiles, found))
    assert refuses <= {source for source in found if not compiles(source, *BIG)}
    assert refuses or all(compiles(source, *BIG) for source in found)
