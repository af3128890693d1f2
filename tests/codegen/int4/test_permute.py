"""Permutations in place, compiled natively with sanitizers: pieces of any width at any nibble."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.cycles import decompose
from pipeline.codegen.generate import HEADERS
from pipeline.codegen.render import render, static_source
from tests.codegen.support import SANITIZERS, WARNINGS, write
from tests.comparing import equal

PROGRAM = """
#include "nn_cells.h"
#include <stdio.h>

static uint8_t nn_arena[%(bytes)d];
static const uint16_t nn_cycles[] = {%(places)s};
%(permute)s
int main(void) {
    if (fread(nn_arena, 1, sizeof nn_arena, stdin) != sizeof nn_arena) return 2;
    nn_permute_%(unit)d(nn_cycles, %(cycles)d, %(chains)d, %(base)d);
    return fwrite(nn_arena, 1, sizeof nn_arena, stdout) != sizeof nn_arena;
}
"""
PIECES = 9


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("unit", [1, 2, 3, 4, 5, 8, 11, 16, 17, 18, 19])
def test_pieces_change_places(unit: int, base: int, tmp_path: Path) -> None:
    """Cycles and chains; cells around the pieces, down to the nibble, stay what they are."""
    rng = np.random.default_rng(unit)
    sources = list(range(PIECES - 1))
    targets = [*rng.permutation(PIECES - 3).tolist(), PIECES - 2, PIECES - 1]
    cycles, chains = decompose(sources, targets)
    assert cycles and chains
    size = (base + PIECES * unit + 2) // 2
    places = ", ".join(str(n) for cycle in (*cycles, *chains) for n in (len(cycle), *cycle))
    permute = render("int4/permute.c.j2", type="uint16_t", read="nn_flash16", unit=unit, first=True)
    known = {"bytes": size, "places": places, "permute": permute, "unit": unit, "base": base}
    counts = {"cycles": len(cycles), "chains": len(chains)}
    headers = {name: static_source(HEADERS[name]) for name in ("nn_cells.h", "nn_memory.h")}
    files = {"main.c": PROGRAM % (known | counts), **headers}
    write(tmp_path, files)
    command = ["cc", *WARNINGS, *SANITIZERS, "main.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    before = rng.integers(0, 16, 2 * size)
    wanted = before.copy()
    pieces = before[base : base + PIECES * unit].reshape(PIECES, unit)
    wanted[base : base + PIECES * unit].reshape(PIECES, unit)[targets] = pieces[sources]
    sent = (before[::2] | before[1::2] << 4).astype(np.uint8).tobytes()
    done = subprocess.run([tmp_path / "program"], input=sent, capture_output=True, check=True)
    after = np.frombuffer(done.stdout, np.uint8)
    equal(np.stack([after & 15, after >> 4], 1).reshape(-1), wanted)
