"""Stage schedule: the graph -> plan.json, proof.json, schedule.json. What does not fit is kept."""

from dataclasses import replace
from pathlib import Path

from pipeline import board, budget, config, verdict
from pipeline.anytime import CUT_SHORT
from pipeline.artifacts import read_json, write_json
from pipeline.graph.graph import Graph
from pipeline.kernels import formed, modelled, skips, zero_shares
from pipeline.plan import pieces, proof, serialize
from pipeline.plan.calibrate import calibrated
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.profile import profile
from pipeline.quantize.samples import calibration_frames
from pipeline.report import page
from pipeline.report.memory_map.thumbnail import thumbnail
from pipeline.report.peak import WITHOUT
from pipeline.sliding import Windows
from pipeline.strategies import coded
from pipeline.strategies.lacking import lacking
from pipeline.strategies.others import figures, others, quick_planners
from pipeline.timing.repair import with_places
from stages._main import LOG, Config, stage

DATA = Path("data/dataset.npz")


@stage
def main(cfg: Config) -> None:
    graph, hardware = Graph.load(Path()), board.hardware(cfg["hardware"])
    windows = Windows(**cfg["sliding"])
    if kept := config.instantiate(cfg["frontend"]).state_bytes:
        # beside the arena as long as sound comes in, like the stack
        hardware = replace(hardware, stack_reserve_bytes=hardware.stack_reserve_bytes + kept)
    strategy = config.instantiate(cfg["strategy"])
    plan = strategy.plan(graph, hardware)
    pieces.check(plan, hardware)
    coded.check(plan, graph, hardware)
    plan = calibrated(plan, graph, calibration_frames(graph, DATA, windows))
    plan = with_places(plan, graph, hardware)
    found = proof.prove(plan, graph)
    costs = cost(roomy(plan), graph, hardware, found)
    report = verdict.check(plan, graph, hardware, found, costs)
    if CUT_SHORT in plan.notes:
        report["warnings"] = ["the search was cut short: the same command searches again"]
        if LOG.is_dir():
            (LOG / "schedule.once").touch()  # run.py keeps the plan for this run only
    report["profile"] = [
        {"number": number, "layer": name, "bytes": size}
        for number, (name, size) in enumerate(profile(plan))
    ]
    if not plan.on_card:
        frames = calibration_frames(graph, DATA, windows)
        zeros = zero_shares(graph, frames) if skips(plan, graph, hardware) else {}
        report |= modelled(plan, graph, hardware, zeros)
    report["forms"] = formed(plan, graph, hardware)
    report |= lacking(report, plan, graph, hardware)
    if report["status"] == "ok" and budget.limits(cfg["prune"]):
        report |= budget.unmet(cfg["prune"], report, read_json(Path("pruning.json"))["steps"])
    report["others"] = others(plan, graph, hardware)
    quick = {each.name for each in quick_planners(graph.macs)}
    scratch = any(each.role == "scratch" for each in plan.buffers)
    if scratch and plan.strategy.partition("/")[0] in quick:
        portable = replace(hardware, kernels="portable")
        report["others"].append({"strategy": WITHOUT, **figures(strategy, graph, portable)})
    serialize.save(plan, Path("plan.json"))
    proof.save(Path("proof.json"), found, plan, graph)
    passes = read_json(Path("passes.json"))
    origin = {"board": hardware.title, "graph": graph.hash, "plan": serialize.plan_hash(plan)}
    drawn = page.write(
        Path("plan.html"), graph, plan, hardware, costs, report, provenance=origin, passes=passes
    )
    report["thumbnail"] = thumbnail(drawn)
    write_json(Path("schedule.json"), report)
