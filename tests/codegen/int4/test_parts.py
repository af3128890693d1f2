"""The small pieces: lines, permutations, packed weights, views, and C text."""

import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.generate import HEADERS
from pipeline.codegen.int4.multiples import recipe
from pipeline.codegen.int4.stretches import stretches
from pipeline.codegen.permutations import Permutations, decompose
from pipeline.codegen.render import static_source
from pipeline.errors import ThimbleError
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import DType
from pipeline.kernels import Form, choose
from tests.codegen.support import SANITIZERS, WARNINGS, uno, write
from tests.comparing import equal
from tests.programs import said
from tests.strategies.chains import Chain


def test_recipes_are_as_cheap_as_can_be() -> None:
    assert recipe([1, -1, 0], 6).cycles == 4
    assert recipe([2], 6).cycles == 4  # a + a, twice an addition; a register would cost the same
    assert recipe([2, -2], 6).cycles == 6
    assert recipe([7, 7, 7, 8], 6).cycles == 2 * 4 + 2 * 3 + 4  # 2, 3, 4, 7; 8 = 1 + 7
    assert recipe([7, 7, 7, 8], 3).cycles == 2 * 3 + 4 * 3 + 2  # 2, 4, 8; 7 = 8 - 1
    assert recipe(list(range(-8, 8)), 6).cycles <= 2 * 6 + 2 * 15 + 4


ONCE = FixedPoint.of([2.0**-20])
"""Requantization of sums that are shifted left by 20."""


def test_what_would_be_overwritten_is_refused() -> None:
    cells = [np.array([[4, 5, 6], [0, 1, 2], [5, 6, 7]])]
    with pytest.raises(ThimbleError, match="before it reads the next"):
        stretches("sum", cells)
    assert stretches("sum", [cells[0][:2], cells[0][:2] + 3]) == [(4, 0, 6)]
    assert stretches("sum", [cells[0][:2], cells[0][:2] + 4]) == [(4, 0, 3), (8, 4, 3)]


def test_what_is_refused() -> None:
    graph = Chain((4, 4, 3)).conv("a", 3, 1).conv("b", 3, 1).plus("sum", "a").graph()
    wide = replace(graph.tensors["b"], dtype=DType(8, False))
    graph = replace(graph, tensors={**graph.tensors, "b": wide})
    with pytest.raises(ThimbleError, match=r"two activations of 4 bits and of one shape"):
        choose(Form.whole(graph.operators[-1], graph), uno("flash"))


UNITS = (1, 2, 3, 4, 5, 8, 11, 16, 17, 18, 19)
PIECES = 9
PROGRAM = """
#include "nn_cells.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint8_t nn_arena[%(bytes)d];
%(permutes)s
int main(int argc, char **argv) {
    const int bytes = atoi(argv[2]) + 0 * argc;
    if (fread(nn_arena, 1, bytes, stdin) != (size_t)bytes) return 2;
    switch (atoi(argv[1])) {%(cases)s}
    return fwrite(nn_arena, 1, bytes, stdout) != (size_t)bytes;
}
"""
RNG = np.random.default_rng(1)
SOURCES = list(range(PIECES - 1))
TARGETS = [*RNG.permutation(PIECES - 3).tolist(), PIECES - 2, PIECES - 1]
CYCLES, CHAINS = decompose(SOURCES, TARGETS)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("permute")
    permutes, cases = Permutations(), ""
    for unit, base in product(UNITS, range(2)):
        each = base + np.arange(unit)
        ends = (unit * np.array(side)[:, None] + each for side in (SOURCES, TARGETS))
        cases += f"case {2 * unit + base}: {permutes.call(next(ends), next(ends), 1)} break;"
    assert permutes.bytes and permutes.nibbles >= set(UNITS)
    size = PIECES * max(UNITS) // 2 + 2
    known = {"permutes": permutes.code(), "cases": cases, "bytes": size}
    headers = {name: static_source(HEADERS[name]) for name in ("nn_cells.h", "nn_memory.h")}
    write(folder, {"main.c": PROGRAM % known, **headers})
    said(["cc", *WARNINGS, *SANITIZERS, "main.c", "-o", "program"], folder)
    return folder / "program"


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("unit", UNITS)
def test_pieces_change_places(unit: int, base: int, program: Path) -> None:
    """Cycles and chains; cells around the pieces, down to the nibble, stay what they are."""
    assert CYCLES and CHAINS
    size = (base + PIECES * unit + 2) // 2
    before = np.random.default_rng(unit).integers(0, 16, 2 * size)
    wanted = before.copy()
    pieces = before[base : base + PIECES * unit].reshape(PIECES, unit)
    wanted[base : base + PIECES * unit].reshape(PIECES, unit)[TARGETS] = pieces[SOURCES]
    sent = (before[::2] | before[1::2] << 4).astype(np.uint8).tobytes()
    words = [program, str(2 * unit + base), str(size)]
    done = subprocess.run(words, input=sent, capture_output=True, check=True)
    after = np.frombuffer(done.stdout, np.uint8)
    equal(np.stack([after & 15, after >> 4], 1).reshape(-1), wanted)
