"""Show a person one line a stage, bars for SRAM and flash, the main figures, the report."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline import words
from pipeline.metrics import NO_LIMIT
from pipeline.report import palette
from pipeline.runner.stage import Outcome
from pipeline.words import number, valued

BAR = 30
OPERATORS: Mapping[str, str] = {
    **{"layer": "left", "operator": "left", "reads": "left", "shape": "left", "type": "left"},
    **{"MACs": "right", "weights": "right", "of type": "left"},
}
"""Columns of a network's operators."""
FILE_WIDTH = 160
"""Columns of a table where there is no terminal to say how many it has."""
NEEDED = {
    "planned_flash_bytes": "flash with the program's code",
    "planned_sram_bytes": "SRAM with the stack",
}
"""What is estimated before a program is built."""
MOST_LAYERS = 6
"""Most layers that are named with their cycles."""


class Screen:
    """Text on standard output; with ``output=json`` it goes to standard error instead."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        file = sys.stderr if as_json else sys.stdout
        self.console = Console(file=file, highlight=False, markup=False, soft_wrap=True)

    def line(self, name: str, *said: str | tuple[str, str], end: str = "\n") -> None:
        """Print what is said of ``name``, in pieces, each with a style or without."""
        self.console.print(Text.assemble(f"  {name:<10} ", *said), end=end)

    def header(self, config: Mapping[str, Any], folder: Path, overrides: Sequence[str]) -> None:
        title = config["hardware"].get("title") or config["hardware"]["name"]
        model, strategy = config["model"]["name"], config["strategy"]["name"]
        about = f"  {model} on {title}, strategy {strategy}, in {shown(folder)}"
        self.console.print(Text.assemble(("Thimble", "bold"), plain(about)))
        if not overrides:
            data, last = config["data"]["name"], config["until"]
            self.console.print(f"  all defaults: trains on {data}, then goes on to {last}")
            self.console.print("  two minutes on two cores, seconds where it is cached; see --help")

    def start(self, stage: str) -> None:
        if self.console.is_terminal:
            self.line(stage, "…", end="\r")

    def waiting(self, stage: str) -> None:
        self.line(stage, "waiting: another run is at the same stage")

    def warn(self, line: str) -> None:
        self.console.print(Text(f"  {line}", style="bold"))

    def done(self, outcome: Outcome) -> None:
        found = "pulled" if outcome.pulled else "cached" if outcome.cached else ""
        took = f"{found or duration(outcome.seconds):<10}"  # over what ``start`` said
        self.line(outcome.stage, (took, "dim" if found else ""))

    def network(self, result: Mapping[str, Any]) -> None:
        """Show what ``until=import`` has read, a line an operator."""
        rows, before = [], list[str]()
        for row in result["network"]:
            reads = ", ".join(row["reads"]) if row["reads"] != before else ""
            work = [number(row[key]) if row[key] else "" for key in ("macs", "weights")]
            said = row["layer"], row["operator"], reads, "×".join(map(str, row["shape"]))
            rows.append((*said, row["type"], *work, row["weight_type"]))
            before = [row["layer"]]
        console(self.as_json).print(table(OPERATORS.items(), rows))
        macs, weights = (number(result[key]) for key in ("macs", "weights"))
        quantized = "" if result["quantized"] else "; float: to be quantized here"
        self.line("network", f"{len(result['network']) - 1} operators, {macs} MACs, "
                  f"{weights} weights and biases{quantized}")  # fmt: skip

    def result(self, result: Mapping[str, Any]) -> None:
        """The end of a single run: for a person, or as the JSON line."""
        if self.as_json:
            json_line(result)
            return
        if "network" in result:
            self.network(result)
        for name, said in replayed(result.get("replay", {})):
            self.line(name, said)
        if result["status"] == "failed" and "images_host" not in result:
            return
        if result["status"] == "infeasible":
            self.console.print(Text(infeasible(result), style=palette.PEAK.light))
        for memory, used, limit in memories(result):
            full = round(BAR * min(1.0, used / limit))
            style = palette.PEAK.light if used > limit else ""  # the rest is no colour's meaning
            said = f" {number(used)} of {number(limit)} B ({100 * used / limit:.0f} %)"
            self.line(memory, ("█" * full, style), ("░" * (BAR - full), "dim"), said)
        for name, said in summary(result):
            self.line(name, said)
        for line in published(result):
            self.console.print(line)
        folder = Path(result["run_dir"])
        if package := result.get("package"):
            self.line("zip", shown(folder / package["file"]))
        pages = (folder / name for name in ("report.html", "plan.html"))
        if page := next((page for page in pages if page.is_file()), None):
            self.line(page.stem, shown(page))


def console(stderr: bool = False) -> Console:
    """Return what prints tables, in a file as wide as ``FILE_WIDTH``."""
    found = Console(stderr=stderr, highlight=False, markup=False)
    if not found.is_terminal:
        found.width = FILE_WIDTH
    return found


def table(columns: Iterable[tuple[str, str]], rows: Iterable[Sequence[str]], gap: int = 2) -> Table:
    """Make a table without lines, ``gap`` apart, of columns with a side each; cells are no markup,
    nor anything else that a terminal obeys."""
    found = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for name, side in columns:
        found.add_column(plain(name), justify=side, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        found.add_row(*map(plain, row))
    return found


def memories(result: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yield each memory with a limit: its name, bytes used (measured, else planned) and limit."""
    found = [
        (each["name"], each["needed_bytes"], each["available_bytes"])
        for each in result.get("memories", ())
    ]
    if "flash_bytes" in result:
        kinds = ("sram", "flash")
        found = [(k, result.get(f"{k}_bytes"), result[f"{k}_limit_bytes"]) for k in kinds]
    for name, used, limit in found:
        if used is not None and limit < NO_LIMIT:
            yield words.memory(name), used, limit


def summary(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the handful of numbers a person asks for first."""
    get, said = result.get, {key: valued(key, value) for key, value in result.items()}
    if "auto" in result:
        yield "auto", said["auto"]
    if get("fits") and "flash_bytes" not in result:
        about = [f"about {said[key]} of {of}" for key, of in NEEDED.items() if key in said]
        about += [f"{said['modelled_us']} of computing"] if "modelled_us" in said else []
        yield "fits", ", ".join(["as planned", *about])
    if "accuracy_int" in result and get("random_weights"):
        yield "accuracy", "none to speak of: random weights, which have learnt nothing"
    elif "accuracy_int" in result:
        before = f" ({said['accuracy_float']} in float)" if get("accuracy_float") else ""
        yield "accuracy", f"{said['accuracy_int']} on the full test set, integer{before}"
    if "agreement_float" in result:
        of = f"{said['images_float']} images have the float network's label"
        yield "agreement", f"{said['agreement_float']} of {of}"
    for place in ("device", "host"):
        if images := get(f"images_{place}"):
            wrong = said.get(f"mismatches_{place}", "0")
            yield place, f"{number(images)} images, {wrong} differ from the reference"
    if "checked_elements" in result:
        yield "layers", f"{said['checked_elements']} written, each as the interpreter does"
    if "pmu_bytes" in result:
        above = get("above_bound_pct")
        least = "; proved least" if above == 0 else ""
        least = f"; no plan needs less than {said['lower_bound_bytes']}" if above else least
        yield "peak", f"{said['pmu_bytes']} of activations{least}"
    if get("latency_us"):
        yield "latency", latency(result, said)
    if flasher := get("flasher"):
        yield "writes", flasher["writes"]
        yield "would run" if flasher["dry_run"] else "ran", flasher["command"]  # to be copied
    yield from zip(("proof", ""), get("proof_said", "").splitlines(), strict=False)
    rates = {each["layer"]: each.get("cycles_per_mac") for each in get("layers", ())}
    text = [f"{layer} {rate:.1f}" for layer, rate in rates.items() if rate is not None]
    if 0 < len(text) <= MOST_LAYERS:  # of more the report has them
        yield "cycles/MAC", ", ".join(text)
    if "makespan_us" in result:
        yield from swapped(result, said)
    if package := get("package"):
        yield "package", f"{package['kind']}: {package['note']}"
    if get("energy_uj"):
        yield "energy", f"{said['energy_uj']} an inference (modelled)"


def latency(result: Mapping[str, Any], said: Mapping[str, str]) -> str:
    text = f"{said['latency_us']} after the last input byte"
    if "latency_low_us" in result:
        error = result.get("latency_error_pct")
        known = f"±{error:g} %" if error else "unvalidated"
        text += f" (modelled, {known}, {said['latency_low_us']} to {said['latency_high_us']})"
    if result.get("latency_max_us", 0) > result["latency_us"]:
        text += f", {said['latency_max_us']} for the slowest image"
    return text


def swapped(result: Mapping[str, Any], said: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield lines about a plan with a card: how long it takes, and how long the card lasts."""
    frames, over = result["frames"], result.get("overhead_pct", 0)
    time = f"{said['makespan_us']} for {frames} frame{'s' if frames > 1 else ''}"
    least = f"; at least {said['bound_us']}" if result.get("bound_us") else ""
    setting = f" ({result['card_timing']} setting)"
    yield "makespan", f"{time}, {over:.1f} % over unlimited SRAM{least}{setting}"
    years = result.get("wear_years_half")
    lasts = f"; half of its cells last {years:.3g} years" if years else ""
    moved = f"{said['card_read_bytes']} read, {said['card_write_bytes']} stored an inference"
    yield "card", moved + lasts


def published(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield a published table's numbers beside ours, a line each."""
    for row in result.get("rows", ()):
        ours, paper = ("–" if row[key] is None else number(row[key]) for key in ("ours", "paper"))
        more = difference(row)
        apart = "" if more is None else f", difference {number(more)}"
        yield f"  {row['name']} {row['metric']}: {ours}, published {paper}{apart}"
    for line in result.get("unpublished", ()):
        yield f"  {line} published, of a network that is not"


def difference(row: Mapping[str, Any]) -> Any:
    """Subtract the published figure from ours; None where either is missing."""
    ours, paper = row["ours"], row["paper"]
    return None if ours is None or paper is None else ours - paper


def replayed(replay: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what agrees with the recorded run, a line a stage, and what differs."""
    for stage, agrees in replay.get("stages", {}).items():
        if agrees:
            yield stage, "agrees"
        for item in replay["differs"]:
            if item["stage"] == stage:
                there, here = ((item[key] or "none")[:12] for key in ("recorded", "here"))
                yield stage, f"differs: {item['file']}, recorded {there}, here {here}"
    if replay.get("changed"):
        yield "changed", f"since it was recorded: {'; '.join(replay['changed'])}"
    if replay.get("agrees"):
        yield "replay", f"all {replay['files']} files agree with {replay['of']}"


def infeasible(result: Mapping[str, Any]) -> str:
    return f"does not fit: {needs(result)} ({result['where']}); {result['advice']}"


def needs(result: Mapping[str, Any]) -> str:
    """``SRAM needs 2,337 B of 2,048 B``"""
    unit, keys = result.get("unit", "B"), ("needed_bytes", "available_bytes")
    needed, available = (f"{number(result[key])} {unit}" for key in keys)
    return f"{result['resource']} needs {needed} of {available}"


def plain(text: str) -> str:
    """``text`` without characters that tell a terminal what to do: names come from files."""
    return "".join(c if c.isprintable() else "?" for c in text)


def json_line(content: Mapping[str, Any]) -> None:
    print(json.dumps(content, sort_keys=True), flush=True)


def fail(message: str) -> None:
    """One line on standard error."""
    print(plain(message), file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02} s" if minutes else f"{seconds:.1f} s"


def shown(path: Path) -> str:
    """Return a path as short as it can be typed from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
