"""``python run.py compare RUN RUN …``: what differs between runs, the first cause first, as text,
JSON or a page; and ``best METRIC "filter"``: the best of all tracked runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from pipeline import config, home
from pipeline.artifacts import read_json, write_text
from pipeline.errors import ThimbleError
from pipeline.report import sweep_page
from pipeline.runner import replay, screen
from pipeline.runner.screen import json_line, shown
from pipeline.runner.table import flat
from pipeline.tracking.checkout import recorded
from pipeline.tracking.params import flat as dotted
from pipeline.words import METRICS, valued

AS_JSON, PAGE, BEST = "output=json", "page=", "best="
OPTIONS = ("output=", "tracking=", PAGE)
FILES = {
    "data": ("data/",),
    "weights": ("weights.npz", "pruned.npz", "graph.npz"),
    "graph": ("graph.json",),
    "plan": ("plan.json",),
    "program": ("generated/",),
}
"""What a run is made of, in the order in which one follows from another: files, by their hashes."""

UNTOLD = ("output", "tracking", "cache", "until", "threads", "files")
"""Keys of a config that make no other result."""

Values = list[Any]


def compare(*words: str) -> int:
    """Show what differs between the runs ``words``: folders, ids, beginnings of ids, or
    ``best=METRIC filter`` for the best of the tracked ones; with ``page=FILE`` also in a page."""
    runs = [word for word in words if not word.startswith(OPTIONS)]
    if len(runs) < 2:
        raise ThimbleError("compare needs two runs or more: folders, or ids of tracked runs")
    folders = [_folder(run) for run in runs]
    read = [_read(folder) for folder in folders]
    found = differences(read, runs)
    for path in (home.typed() / word.removeprefix(PAGE) for word in words if word.startswith(PAGE)):
        called = [Path(run).name for run in runs]
        told = {**found, "runs": called, "config": _told(found["config"])}
        jobs = [{"overrides": [], **each["result.json"], "run_dir": str(folder)}
                for each, folder in zip(read, folders, strict=True)]  # fmt: skip
        write_text(path, sweep_page.html(path.parent, jobs, flat(jobs), called, told))
    if AS_JSON in words:
        json_line(found)
    else:
        _show(found)
    return 0


def _folder(run: str) -> Path:
    if run.startswith(BEST):
        metric, _, query = run.removeprefix(BEST).partition(" ")
        run = next((each["id"] for each in _best(metric, query)), run)
    folder = replay.find(run)
    if not (folder / "params.yaml").is_file():
        raise ThimbleError(f"{run}: no run's folder, it has no params.yaml; a sweep's jobs have")
    return folder


def differences(read: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Return, as docs/compare.schema.json says, what differs; each list has a value a run."""
    results: list[Mapping[str, Any]] = [each["result.json"] for each in read]
    parts = {"config": _differing([each["config"] for each in read])}
    for part, files in FILES.items():
        made = [{k: v for k, v in each["made"].items() if k.startswith(files)} for each in read]
        parts[part] = _differing(made)
    if parts["graph"] or parts["plan"]:
        for key, what in (("graph.json", "operators"), ("plan.json", "buffers")):
            counts = [{what: len(each[key].get(what, ()))} for each in read]
            parts[key.removesuffix(".json")] |= _differing(counts)
    figures = _differing([{k: r[k] for k in ("status", *METRICS) if k in r} for r in results])
    first = next((part for part, found in parts.items() if found), None)
    maps = [each["schedule.json"].get("thumbnail", {}).get("rows", []) for each in read]
    return {
        "runs": list(names), "differs_first": first or ("figures" if figures else None), **parts,
        "layers": _layers(results, [each["schedule.json"] for each in read]),
        "figures": figures, "maps": maps if parts["plan"] else [],
    }  # fmt: skip


def _read(folder: Path) -> dict[str, Any]:
    """Read what a run left: reports, keys of its config that matter, hashes of what it made."""
    made = recorded(folder)["made"].values()
    told = dotted(config.load(folder / "params.yaml"))
    found: dict[str, Any] = {
        "made": {name: md5[:12] for files in made for name, md5 in files.items()},
        "config": {key: value for key, value in told if key.split(".")[0] not in UNTOLD},
    }
    for name in ("result.json", "schedule.json", "graph.json", "plan.json"):
        found[name] = read_json(folder / name) if (folder / name).is_file() else {}
    return found


def _differing(each: Sequence[Mapping[str, Any]]) -> dict[str, Values]:
    """Return the keys whose values differ, with all values; None is none."""
    keys = dict.fromkeys(key for one in each for key in one)
    found = {key: [one.get(key) for one in each] for key in keys}
    return {key: values for key, values in found.items() if any(v != values[0] for v in values)}


def _layers(results: Sequence[Mapping[str, Any]], plans: Sequence[Mapping[str, Any]]) -> Values:
    """List layers with the cycles of each run, counted ones or else modelled ones, and with the
    most bytes that are live while they are computed."""
    cycles: list[dict[str, Any]] = []
    for result, plan in zip(results, plans, strict=True):
        modelled = {f["layer"]: f.get("modelled_cycles") for f in plan.get("forms", ())}
        counted = {f["layer"]: f["cycles"] for f in result.get("layers", ()) if f.get("cycles")}
        cycles.append(modelled | counted)
    lives = [{f["layer"]: f["bytes"] for f in plan.get("profile", ())} for plan in plans]
    names = dict.fromkeys(name for each in (*cycles, *lives) for name in each)
    return [
        {"layer": n, "cycles": [c.get(n) for c in cycles], "live_bytes": [b.get(n) for b in lives]}
        for n in names
    ]


def _show(found: Mapping[str, Any]) -> None:
    console, runs = screen.console(), [Path(run).name for run in found["runs"]]
    console.print(f"differs first: {found['differs_first'] or 'nothing'}", style="bold")
    for part in ("config", *FILES, "figures"):
        _print(console, part, runs, _told(found[part]))
    times = found["figures"].get("compute_us") or found["figures"].get("modelled_us") or []
    longest = max((us for us in times if us), default=0)
    for number, rows in enumerate(found["maps"]):
        console.print(f"\nmemory of {runs[number]}: addresses upwards, time to the right; tensors "
                      "are t, u and v in turn, sums a, scratch x")  # fmt: skip
        share = times[number] / longest if longest and all(times) else 1.0
        for row in rows:
            wide = max(1, round(len(row) * share))
            console.print("".join(row[n * len(row) // wide] for n in range(wide)))
    for kind in ("cycles", "live_bytes"):
        each = {r["layer"]: r[kind] for r in found["layers"] if len(set(r[kind])) > 1}
        _print(console, f"layers, {kind.replace('_', ' ')}", runs, each)


def _told(keys: Mapping[str, Values]) -> Mapping[str, Values]:
    """Leave out what follows from the board's name, where that differs, and from others' names
    their classes."""
    follow = "hardware." if (board := "hardware.name") in keys else ()
    kept = (key for key in keys if key == board or not key.startswith(follow))
    return {k: keys[k] for k in kept if not ("_target_" in k and k[:-8] + "name" in keys)}


def _print(console: Console, title: str, runs: Sequence[str], rows: Mapping[str, Values]) -> None:
    if rows:
        cells = [(name, *(valued(name, value) for value in each)) for name, each in rows.items()]
        console.print()
        console.print(screen.table([(title, "left"), *((run, "right") for run in runs)], cells))


def best(metric: str, *words: str) -> int:
    """Show the best tracked runs by ``metric`` of those that MLflow's filter, the next of
    ``words``, leaves."""
    found = _best(metric, " and ".join(word for word in words if not word.startswith(OPTIONS)))
    if AS_JSON in words:
        json_line({"metric": metric, "runs": found})
        return 0 if found else 1
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not found:
        console.print(f"no tracked run has {metric} and is as the filter says")
    for run in found:
        place = shown(Path(run["run_dir"]))
        console.print(f"{valued(metric, run[metric]):>14}  {run['id'][:8]}  {run['name']}  {place}")
    return 0 if found else 1


def _best(metric: str, query: str) -> list[dict[str, Any]]:
    if metric not in METRICS:
        raise ThimbleError(f"best {metric}: no such metric; docs/metrics.md has them all")
    from pipeline.tracking.find import best_by  # with it MLflow

    return best_by(metric, query)
