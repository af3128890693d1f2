"""Networks with a card that are used as they should not be: a status, and no answer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeline.sealed_image import seal
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets.card import CHIP_KEY, NAME
from tests.codegen.card.faulty import FAULTS
from tests.codegen.card.sealing import KEY, board, given
from tests.codegen.card.test_swapped import elements
from tests.strategies.swap.nets import random_chain
from tests.targets.cortex_m import generated

MISUSE = FAULTS.with_name("misuse.c")
HOLE = ["NN_OK", "NN_CARD_FAILED", "NN_OK", "NN_INCOMPLETE", "NN_OK", "NN_INCOMPLETE"]
DRAWN = ["NN_NO_KEY", "NN_NO_KEY", "NN_OK", "NN_OK", "NN_OK", "NN_NO_KEY", "NN_OK", "NN_OK"]
"""First the input gets no number of a frame any more, then what is computed."""


@pytest.mark.parametrize(
    "security",
    ("encrypted", *(pytest.param(s, marks=pytest.mark.ci) for s in ("none", "unchecked"))),
)
def test_frames_with_a_hole_and_used_up_numbers_are_refused(
    tmp_path: Path, security: Security
) -> None:
    """Whoever finds the card again; the next frame is right."""
    graph = random_chain(1)
    hardware = board(security, elements(graph) // 3)
    sources = generated(tmp_path, graph, hardware, Swap().plan(graph, hardware))
    if hardware.card.keyed:
        seal(sources, KEY, tmp_path / NAME)
        (tmp_path / CHIP_KEY).write_bytes(KEY)
    else:
        (sources / NAME).rename(tmp_path / NAME)
    others = [str(path) for path in sources.glob("*.c") if path.name not in ("main.c", "model.c")]
    command = ["cc", "-std=gnu99", f"-I{sources}", str(MISUSE), *others]
    command += ["-Wl,--wrap=block_device_start", "-o", "misuse"]
    subprocess.run(command, cwd=tmp_path, check=True)
    frame = given(graph, 1)
    done = subprocess.run(
        ["./misuse"],
        input=frame.astype(np.int8).tobytes(),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        check=True,
    )
    found = [int(word) for word in done.stdout.split()]
    names = statuses((sources / "model.h").read_text())
    expected = [*HOLE, *(DRAWN if hardware.card.keyed else ()), "NN_OK"]
    assert [names[n] for n in found[: len(expected)]] == expected
    assert found[len(expected) :] == graph.outputs(frame).reshape(-1).tolist()


def statuses(header: str) -> list[str]:
    """List the names of nn_status_t, by number."""
    listed = header[: header.index("} nn_status_t")].rpartition("enum {")[2]
    return [line.split(",")[0].split()[0] for line in listed.splitlines() if "NN_" in line]
