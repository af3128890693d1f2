"""Stage schedule: the graph -> plan.json, proof.json, schedule.json. What does not fit is kept."""

from dataclasses import replace
from pathlib import Path

from pipeline import artifacts, board, budget, config, verdict
from pipeline.graph.graph import Graph
from pipeline.kernels import modelled, skips, zero_shares
from pipeline.plan import pieces, proof, serialize
from pipeline.plan.calibrate import calibrated, needs_calibration
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.profile import profile
from pipeline.pruning.method import steps_of_csv
from pipeline.report import page
from pipeline.report.memory_map.thumbnail import thumbnail
from pipeline.strategies import coded
from stages._calibration import calibration_frames
from stages._lacking import lacking
from stages._main import run
from stages._modelled import formed
from stages._others import others


def main() -> None:
    cfg = config.load()
    graph = Graph.load(Path())
    hardware = board.hardware(cfg["hardware"])
    if kept := config.instantiate(cfg["frontend"]).state_bytes:
        # beside the arena as long as sound comes in, like the stack
        hardware = replace(hardware, stack_reserve_bytes=hardware.stack_reserve_bytes + kept)
    plan = config.instantiate(cfg["strategy"]).plan(graph, hardware)
    pieces.check(plan, hardware)
    coded.check(plan, graph, hardware)
    if needs_calibration(plan):
        data = artifacts.read_npz(Path("data/dataset.npz"))
        plan = calibrated(plan, graph, calibration_frames(graph, data))
    found = proof.prove(plan, graph)
    report = verdict.check(plan, graph, hardware, found)
    report["profile"] = [
        {"number": number, "layer": name, "bytes": size}
        for number, (name, size) in enumerate(profile(plan))
    ]
    if not plan.on_card:
        zeros = {}
        if skips(plan, graph, hardware):
            data = artifacts.read_npz(Path("data/dataset.npz"))
            zeros = zero_shares(graph, calibration_frames(graph, data))
        report |= modelled(plan, graph, hardware, zeros)
    report["forms"] = formed(plan, graph, hardware)
    report |= lacking(report, plan, graph, hardware)
    if report["status"] == "ok" and budget.limits(cfg["prune"]):
        steps = steps_of_csv(Path("pruning_steps.csv").read_text())
        report |= budget.unmet(cfg["prune"], report, steps)
    report["others"] = others(plan, graph, hardware)
    serialize.save(plan, Path("plan.json"))
    proof.save(Path("proof.json"), found, plan, graph)
    costs = cost(roomy(plan), graph, hardware, found)
    passes = artifacts.read_json(Path("passes.json"))
    origin = {"board": hardware.title, "graph": graph.hash, "plan": serialize.plan_hash(plan)}
    drawn = page.write(
        Path("plan.html"), graph, plan, hardware, costs, report, provenance=origin, passes=passes
    )
    report["thumbnail"] = thumbnail(drawn)
    artifacts.write_json(Path("schedule.json"), report)


if __name__ == "__main__":
    run(main)
