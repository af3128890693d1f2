"""Plans that are proved, interpreted on random frames, and run as C on this computer."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.calibrate import rounds
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import Report, verify
from pipeline.plan.vocabulary import Plan
from tests.codegen.support import Native, frames
from tests.comparing import equal


class Exact(NamedTuple):
    """Report of the proof, and the bytes of SRAM that the plan took when it ran."""

    report: Report
    sram_bytes: float


def exact(plan: Plan, graph: Graph, seed: int = 1) -> Exact:
    """The plan is proved and gives what the graph gives of random frames."""
    report = verify(plan, graph)
    images = frames(graph, plan.frames + 2, seed)[2:]
    found = interpret(plan, graph, images if plan.frames > 1 else images[0])
    given = found.output.reshape(plan.frames, -1)
    expected = graph.evaluate(images).reshape(plan.frames, -1)
    equal(given, expected, strategy=plan.strategy, seed=seed)
    return Exact(report, found.high_water_bytes.get("sram", 0))


def as_c(
    folder: Path,
    graph: Graph,
    plan: Plan,
    board: Hardware | None = None,
    seed: int = 0,
    *,
    files: Mapping[str, str] | None = None,
    sanitize: bool = True,
) -> Native:
    """Check the plan's C for ``board``, or a host, against the graph, or the interpreter."""
    native = Native(folder, graph, plan, board, files=files, sanitize=sanitize)
    given = frames(graph, 3, seed)
    if rounds(plan):
        equal(
            native(given), [interpret(roomy(plan), graph, f).output for f in given], **native.about
        )
    else:
        equal(native(given), graph.evaluate(given), **native.about)
    return native
