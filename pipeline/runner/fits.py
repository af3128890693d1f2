"""``python run.py fits model=…``: every board, the user's own too, with the fastest plan that fits
it, in one table; where none fits, with the plan of least memory. Plans are neither proved nor
tried."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig
from rich.console import Console
from rich.live import Live
from rich.table import Table

from pipeline import home
from pipeline.artifacts import write_json
from pipeline.errors import ThimbleError
from pipeline.runner import boards, screen
from pipeline.runner.job import Job
from pipeline.runner.screen import json_line
from pipeline.targets import candidates
from pipeline.targets.candidates import Row
from pipeline.words import memory, number, valued

COLUMNS = {
    "planned_sram_bytes": "SRAM needed",
    "planned_flash_bytes": "flash needed",
    "modelled_us": "modelled",
    "energy_uj": "energy",
}


def main() -> Callable[[], Any]:
    """Return the program for Hydra, whose command line has the word ``fits`` first."""
    sys.argv[1:2] = ["strategy=auto", "until=quantize", "tracking=none"]
    conf = str(home.ROOT / "conf")
    made: Callable[[], Any] = hydra.main(
        version_base="1.3", config_path=conf, config_name="config"
    )(_run)
    return made


def _run(chosen: DictConfig) -> None:
    chosen.hardware.title = "every board"
    job = Job(chosen)
    if job.swept:
        raise ThimbleError("fits takes one network: its boards are all that there are")
    result = job.run()
    if result["status"] != "ok":
        sys.exit(job.finish())
    as_json = job.screen.as_json
    words = [word for word in job.overrides if word.startswith("hardware.")]
    sizes = boards.sizes()
    names = sorted(sizes, key=lambda name: -sizes[name][0])
    deaf = signal.SIGINT, signal.SIG_IGN  # this process ends them
    with get_context("fork").Pool(initializer=signal.signal, initargs=deaf) as pool:
        found = pool.imap_unordered(partial(_row, job.folder, words), names)
        every = _shown(filter(None, found), screen.console(as_json))
    fitting = [row["board"] for row in every if row["fits"]]
    result |= {"boards": every, "smallest": fitting[0] if fitting else None}
    result["status"] = "ok" if fitting else "infeasible"
    write_json(job.folder / "fits.json", result)
    if as_json:
        json_line(result)
    sys.exit(0 if fitting else 3)


def _row(folder: Path, words: Sequence[str], name: str) -> Row | None:
    """Plan for the board ``name``; None for a computer."""
    hardware = boards.named(name, words)
    return None if hardware.core == "host" else candidates.row(folder, hardware)


def _shown(found: Iterable[Row], console: Console) -> list[Row]:
    """Show rows as they come, on a terminal in one table that grows; return them in order."""
    every: list[Row] = []
    with Live(_table(every), console=console, transient=True, auto_refresh=False) as live:
        for row in found:
            every = sorted([*every, row], key=candidates.order)
            if console.is_terminal:
                live.update(_table(every), refresh=True)
            else:
                print(f"  {row['board']}: {_fit(row)}", file=sys.stderr, flush=True)
    console.print(_table(every))
    return every


def _table(every: Sequence[Row]) -> Table:
    right = ((name, "right") for name in ("SRAM", "flash", *COLUMNS.values()))
    table = screen.table((("board", "left"), ("", "left"), *right, ("strategy", "left")), ())
    table.columns[1].max_width = 36  # a reason would be wider than all else
    for row in every:
        smallest = ", the smallest" if row["fits"] and row is every[0] else ""
        limits = [number(row[f"{kind}_limit_bytes"]) for kind in ("sram", "flash")]
        table.add_row(
            row["board"], _fit(row) + smallest, *limits,
            *(valued(key, row.get(key)) for key in COLUMNS), row.get("strategy", "–"),
            style="bold" if smallest else "" if row["fits"] else "dim",
        )  # fmt: skip
    return table


def _fit(row: Mapping[str, Any]) -> str:
    """``fits``, or what is missing."""
    lacks = [f"{number(b)} B of {memory(m)}" for m, b in row.get("lacks_bytes", {}).items()]
    return row.get("why") or (f"lacks {' and '.join(lacks)}" if lacks else "fits")
