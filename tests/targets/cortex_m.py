"""Boards with a Cortex-M, and networks or stand-ins built for them."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.card import sealed
from pipeline.frames import answers, fed
from pipeline.frontends.frontend import Frontend
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, qemu
from pipeline.targets.harness import harness_sources
from pipeline.targets.runs import Runs
from pipeline.targets.toolchain import Size
from tests import boards
from tests.programs import written
from tests.targets.conftest import model

ONE_A_CORE = ("nucleo_g0b1re", "nucleo_f446re", "nucleo_f767zi", "nucleo_u575zi")
"""Cortex-M0+, M4, M7 and M33."""

board_named = boards.load_hardware

needs_arm = pytest.mark.skipif(
    not all(map(shutil.which, ("arm-none-eabi-gcc", "arm-none-eabi-objdump", "qemu-system-arm"))),
    reason="the Arm compiler or QEMU is not installed: make setup",
)


def built(
    folder: Path,
    graph: Graph,
    hardware: Hardware,
    plan: Plan | None = None,
    frontend: Frontend | None = None,
) -> Size:
    """``graph``, by ``plan`` or the ordinary one, as generate and build leave it in ``folder``."""
    plan = plan or Ordinary().plan(graph, hardware)
    sources = generated(folder, graph, hardware, plan, frontend)
    return builds.build(sources, folder / "build", hardware)


def generated(
    folder: Path, graph: Graph, hardware: Hardware, plan: Plan, frontend: Frontend | None = None
) -> Path:
    """Write what stage generate leaves in ``folder``; the path of it."""
    swaps = bool(plan.on_card)
    made = generate(graph, plan, hardware, {}, frontend=frontend)
    files = {**made, **harness_sources(hardware, swaps)}
    written(folder / "generated", files)
    if swaps:
        sealed.write(graph, plan, hardware, folder / "generated")
    return folder / "generated"


def built_stand_in(folder: Path, hardware: Hardware, *, header: str = "", **parts: str) -> Size:
    """A model whose functions do what is given, see ``tests.targets.conftest.model``."""
    text = (Path(__file__).parent / "fixture" / "model.h").read_text()
    files = {
        **harness_sources(hardware),
        "model.h": text.replace("uint16_t count", "uint32_t count") + header,
        "model.c": model(**parts).replace("uint16_t count", "uint32_t count"),
    }
    return builds.build(written(folder / "generated", files), folder / "build", hardware)


def simulated(folder: Path, graph: Graph, hardware: Hardware, size: Size, given: IntArray) -> Runs:
    """``given`` (n, *input shape) through the firmware in ``folder``."""
    images = np.ascontiguousarray(fed(graph, given)).view(np.uint8)
    return qemu.run(folder / "build", vars(size), hardware, images)


def outputs(graph: Graph, runs: Runs) -> IntArray:
    found = answers(graph, runs.outputs).astype(np.int64)
    one = graph.tensors[graph.outputs[0]].shape if len(graph.outputs) == 1 else (found.shape[-1],)
    return found.reshape(-1, *one)
