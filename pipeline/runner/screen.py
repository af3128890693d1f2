"""What a person sees: one line a stage, bars for SRAM and flash, a small table, the report."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.metrics import NO_LIMIT
from pipeline.report import palette
from pipeline.runner.stage import Outcome

BAR = 30
MOST_LAYERS = 6
"""That are named with their cycles."""
DIFFER = "differ from the reference"


DEFAULT_TIME = "minutes on two cores, seconds where it is cached"
"""How long the default composition takes."""


class Screen:
    """Text on standard output; with ``output=json`` it goes to standard error instead."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.console = Console(
            file=sys.stderr if as_json else sys.stdout, highlight=False, soft_wrap=True
        )

    def header(self, config: Mapping[str, Any], folder: Path, overrides: Sequence[str]) -> None:
        title = config["hardware"].get("title") or config["hardware"]["name"]
        model, strategy = config["model"]["name"], config["strategy"]["name"]
        about = f"  {model} on {title}, strategy {strategy}, in {shown(folder)}"
        self.console.print(Text("Thimble", "bold"), Text(plain(about)), sep="")
        if not overrides:
            data, last = config["data"]["name"], config["until"]
            self.console.print(f"  all defaults: trains on {data}, then goes on to {last}")
            self.console.print(f"  {DEFAULT_TIME}; --help lists what can be chosen")

    def start(self, stage: str) -> None:
        if self.console.is_terminal:
            self.console.print(f"  {stage:<10} …", end="\r")

    def waiting(self, stage: str) -> None:
        self.console.print(f"  {stage:<10} waiting: another run is at the same stage")

    def warn(self, line: str) -> None:
        self.console.print(Text(f"  {line}", style="bold"))

    def done(self, outcome: Outcome) -> None:
        took = "[dim]cached[/dim]" if outcome.cached else duration(outcome.seconds)
        took = "[dim]pulled[/dim]" if outcome.pulled else took
        self.console.print(f"  {outcome.stage:<10} {took:<10}")

    def result(self, result: Mapping[str, Any]) -> None:
        """The end of a single run: for a person, or as the JSON line."""
        if self.as_json:
            json_line(result)
            return
        for line in replayed(result.get("replay", {})):
            self.console.print(Text(line))
        if result["status"] == "failed" and "images_host" not in result:
            return
        if result["status"] == "infeasible":
            self.console.print(Text(infeasible(result), style=palette.PEAK.light))
        self._bar("SRAM", result, "sram_bytes", "sram_limit_bytes")
        self._bar("Flash", result, "flash_bytes", "flash_limit_bytes")
        self._table(result)
        if flasher := result.get("flasher"):  # whole, to be copied, however narrow the screen
            verb = "would run" if flasher["dry_run"] else "ran"
            self.console.print(Text(f"  {verb}: {flasher['command']}"), soft_wrap=True)
        for line in published(result):
            self.console.print(line)
        if package := result.get("package"):
            file = shown(Path(result["run_dir"]) / package["file"])
            self.console.print(f"  {'zip':<10} {file}")
        pages = [Path(result["run_dir"]) / name for name in ("report.html", "plan.html")]
        if page := next((page for page in pages if page.is_file()), None):
            self.console.print(f"  {page.stem:<10} {shown(page)}")

    def _bar(self, title: str, result: Mapping[str, Any], used: str, limit: str) -> None:
        has, of = result.get(used), result[limit]
        if of >= NO_LIMIT:
            return
        if has is None and result.get("resource", "").lower() == title.lower():
            has = result["needed_bytes"]
        if has is None:
            return
        share = min(1.0, has / of)
        full = round(BAR * share)
        style = palette.PEAK.light if has > of else "default"  # the rest is no colour's meaning
        self.console.print(
            f"  {title:<10} [{style}]{'█' * full}[/{style}][dim]{'░' * (BAR - full)}[/dim] "
            f"{number(has)} of {number(of)} B ({100 * has / of:.0f} %)"
        )

    def _table(self, result: Mapping[str, Any]) -> None:
        lines = list(summary(result))
        if lines:
            table = Table(box=None, show_header=False, padding=(0, 1, 0, 2))
            for name, value in lines:
                table.add_row(name, value)
            self.console.print(table)


def summary(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The handful of numbers a person asks for first."""
    found: list[tuple[str, str]] = []
    if "auto" in result:
        found.append(("auto", result["auto"]))
    if result.get("fits") and "flash_bytes" not in result:  # no firmware yet, only its plan
        found += [("fits", text) for text in planned(result)]
    if "accuracy_int" in result and result.get("random_weights"):
        found.append(("accuracy", "none to speak of: random weights, which have learnt nothing"))
    elif "accuracy_int" in result:
        text = f"{100 * result['accuracy_int']:.2f} % on the full test set, integer"
        if result.get("accuracy_float") is not None:
            text += f" ({100 * result['accuracy_float']:.2f} % in float)"
        found.append(("accuracy", text))
        if "agreement_float" in result:
            of = f"{number(result['images_float'])} images have the float network's label"
            found.append(("agreement", f"{100 * result['agreement_float']:.2f} % of {of}"))
    if result.get("images_device"):
        wrong = result.get("mismatches_device", 0)
        found.append(
            ("device", f"{number(result['images_device'])} images, {number(wrong)} {DIFFER}")
        )
    if result.get("images_host"):
        wrong = result["mismatches_host"]
        found.append(("host", f"{number(result['images_host'])} images, {number(wrong)} {DIFFER}"))
    if "pmu_bytes" in result:
        found.append(("peak", f"{number(result['pmu_bytes'])} B of activations"))
    if result.get("instructions"):
        found.append(("instructions", f"{number(result['instructions'])} an inference"))
    if result.get("latency_us"):
        text = f"{result['latency_us'] / 1000:.1f} ms after the last input byte"
        if "latency_low_us" in result:
            low, high = (result[f"latency_{end}_us"] / 1000 for end in ("low", "high"))
            error = result.get("latency_error_pct")
            known = f"±{error:g} %" if error else "unvalidated"
            text += f" (modelled, {known}, {low:.1f} to {high:.1f})"
        if result.get("latency_max_us", 0) > result["latency_us"]:
            text += f", {result['latency_max_us'] / 1000:.1f} ms for the slowest image"
        found.append(("latency", text))
    if flasher := result.get("flasher"):
        found.append(("writes", flasher["writes"]))
    if each := [layer for layer in result.get("layers", ()) if "cycles_per_mac" in layer]:
        text = ", ".join(f"{layer['layer']} {layer['cycles_per_mac']:.1f}" for layer in each)
        if len(each) > MOST_LAYERS:
            least, most = (find(layer["cycles_per_mac"] for layer in each) for find in (min, max))
            text = f"{least:.1f} to {most:.1f} in {len(each)} layers"
        found.append(("cycles/MAC", text))
    if "makespan_us" in result:
        found += swapped(result)
    if package := result.get("package"):
        found.append(("package", f"{package['kind']}: {package['note']}"))
    if result.get("energy_uj"):
        found.append(("energy", f"{result['energy_uj'] / 1000:.2f} mJ an inference (modelled)"))
    return found


def planned(result: Mapping[str, Any]) -> Iterator[str]:
    """What the plan needs of each memory, the stack's reserve included, and what there is, in one
    line if anything is limited."""
    parts = [
        f"{each['name']} {number(each['needed_bytes'])} of {number(each['available_bytes'])} B"
        for each in result.get("memories", ())
        if each["available_bytes"] < NO_LIMIT
    ]
    if parts:
        yield f"{', '.join(parts)} (planned, flash without the code)"


def swapped(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Of a plan with a card: how long, and how long the card lasts."""
    frames, took = result["frames"], result["makespan_us"] / 1e6
    time = f"{number(took)} s for {frames} frame{'s' if frames > 1 else ''}"
    time += f", {result.get('overhead_pct', 0):.1f} % over a memory without end"
    if bound := result.get("bound_us"):
        time += f"; at least {number(bound / 1e6)} s"
    read, stored = (result[f"card_{way}_bytes"] for way in ("read", "write"))
    card = f"{number(read)} B read, {number(stored)} B stored an inference"
    if years := result.get("wear_years_half"):
        card += f"; half of its cells last {years:.3g} years"
    return [("makespan", f"{time} ({result['card_timing']} setting)"), ("card", card)]


def published(result: Mapping[str, Any]) -> list[str]:
    """A published table's numbers beside ours, a line each."""
    lines = []
    for row in result.get("rows", ()):
        ours, paper = ("–" if row[key] is None else number(row[key]) for key in ("ours", "paper"))
        more = difference(row)
        apart = "" if more is None else f", difference {number(more)}"
        lines.append(f"  {row['name']} {row['metric']}: {ours}, published {paper}{apart}")
    for line in result.get("unpublished", ()):
        lines.append(f"  {line} published, of a network that is not")
    return lines


def difference(row: Mapping[str, Any]) -> Any:
    """Subtract the published figure from ours; None where either is missing."""
    ours, paper = row["ours"], row["paper"]
    return None if ours is None or paper is None else ours - paper


def replayed(replay: Mapping[str, Any]) -> Iterator[str]:
    """Of a replay, what agrees with the recorded run, a line a stage, and what differs."""
    for stage, agrees in replay.get("stages", {}).items():
        if agrees:
            yield f"  {stage:<10} agrees"
        for item in replay["differs"]:
            if item["stage"] == stage:
                there, here = ((item[key] or "none")[:12] for key in ("recorded", "here"))
                yield f"  {stage:<10} differs: {item['file']}, recorded {there}, here {here}"
    if replay.get("changed"):
        yield f"  changed    since it was recorded: {'; '.join(replay['changed'])}"
    if replay.get("agrees"):
        yield f"  replay     all {replay['files']} files agree with {replay['of']}"


def infeasible(result: Mapping[str, Any]) -> str:
    unit = result.get("unit", "B")
    return (
        f"does not fit: {result['resource']} needs {number(result['needed_bytes'])} {unit} of "
        f"{number(result['available_bytes'])} {unit} ({result['where']}); "
        f"{result['advice']}"
    )


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


def number(value: float) -> str:
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) < 10 else f"{value:,.1f}"


def shown(path: Path) -> str:
    """A path as short as it can be typed from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
