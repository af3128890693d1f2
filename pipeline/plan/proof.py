"""A plan is proved once; later stages compare hashes.

Stage schedule writes what it proved, of which plan and which graph. A stage that reads a plan
believes the proof if it is of that very plan, and proves a plan that somebody edited anew.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.artifacts import read_json, write_json
from pipeline.errors import PlanError
from pipeline.graph.graph import Graph
from pipeline.plan.fit import roomy
from pipeline.plan.repair import REPAIR, Repair
from pipeline.plan.serialize import plan_hash
from pipeline.plan.verify import Report, verify
from pipeline.plan.vocabulary import Plan


def prove(plan: Plan, graph: Graph) -> Report:
    """Prove it, and what runs from each place of repair on.

    Raises:
        PlanError: the plan is wrong, even if every memory were large enough for it.
    """
    whole = roomy(plan)
    repair, report = Repair.noted(whole, graph), verify(whole, graph)
    if repair.places and not repair.stores_in_order:
        raise PlanError(
            f"the plan's note {REPAIR}: results are stored in another order than the graph's"
        )
    for place in repair.places:
        try:
            verify(*repair.onward(place))
        except PlanError as error:
            name = graph.operators[place].name
            raise PlanError(f"an inference cannot go on from {name}: {error}") from error
    return report


def save(path: Path, report: Report, plan: Plan, graph: Graph) -> None:
    """Save the proof of a plan whose memories are the board's (``fit.of_board``)."""
    proof = {"of": _of(plan, graph), "memories": _memories(plan), "report": asdict(report)}
    write_json(path, proof)


def proved(path: Path, plan: Plan, graph: Graph) -> Report:
    """Return what ``path`` proves of ``plan``; verify it now if that is of another plan.

    Raises:
        PlanError: the plan is not the one that was proved, and is wrong or of another board.
    """
    proof = read_json(path)
    if not isinstance(proof, dict) or proof.get("memories") != _memories(plan):
        raise PlanError(f"{path} speaks of other memories than the plan: run stage schedule again")
    if proof.get("of") == _of(plan, graph):
        return Report(**proof["report"])
    return prove(plan, graph)


def _memories(plan: Plan) -> list[list[str | int]]:
    return [[memory.name, memory.kind, memory.granule_bytes] for memory in plan.memories]


def _of(plan: Plan, graph: Graph) -> dict[str, Any]:
    ends = [list(graph.inputs), list(graph.outputs)]
    return {"plan": plan_hash(plan), "graph": graph.hash, "ends": ends}
