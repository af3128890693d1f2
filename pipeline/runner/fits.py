"""``python run.py fits model=…``: every board, the user's own too, with the fastest plan that fits
it, in one table; where none fits, with the plan of least memory. Plans are neither proved nor
tried."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
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
from pipeline.hardware import Hardware
from pipeline.runner import boards, screen
from pipeline.runner.job import Job
from pipeline.runner.screen import json_line
from pipeline.words import memory, number, valued

PLANNERS = "pipeline.targets.candidates"
COLUMNS = {
    "planned_sram_bytes": "SRAM needed",
    "planned_flash_bytes": "flash needed",
    "modelled_us": "modelled",
    "energy_uj": "energy",
}
WIDE = 112
"""Columns of a terminal for all of the table."""

Row = dict[str, Any]


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
    as_json = job.screen.as_json
    words = [word for word in job.overrides if word.startswith("hardware.")]
    with get_context("fork").Pool(initializer=_ready) as pool:
        sizes = pool.apply_async(boards.sizes)
        result = job.run()
        if result["status"] != "ok":
            sys.exit(job.finish())
        names = sorted(sizes.get(), key=lambda name: -sizes.get()[name][0])
        found = pool.imap_unordered(partial(_row, job.folder, words), names)
        every = _shown(filter(None, found), screen.console(as_json))
    fitting = [row["board"] for row in every if row["fits"]]
    result |= {"boards": every, "smallest": fitting[0] if fitting else None}
    result["status"] = "ok" if fitting else "infeasible"
    write_json(job.folder / "fits.json", result)
    if as_json:
        json_line(result)
    sys.exit(0 if fitting else 3)


def _ready() -> None:
    """Load all planners, while the network is being read; this process' parent ends it. The table
    shows how far the plans are, none of them does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
    import_module(PLANNERS)


def _row(folder: Path, words: Sequence[str], name: str) -> Row | None:
    """Plan for the board ``name``; None for a computer."""
    hardware = boards.named(name, words)
    plans: Callable[[Path, Hardware], Row] = import_module(PLANNERS).row
    return None if hardware.core == "host" else plans(folder, hardware)


def order(row: Row) -> tuple[Any, ...]:
    """Put those that fit first, the smallest part of them (SRAM, then flash), then those that lack
    least."""
    lacks = sum(row.get("lacks_bytes", {}).values())
    return not row["fits"], "why" in row, lacks, row["sram_limit_bytes"], row["flash_limit_bytes"]


def _shown(found: Iterable[Row], console: Console) -> list[Row]:
    """Show rows as they come, on a terminal in one table that grows; return them in order."""
    every: list[Row] = []
    with Live(
        _table(every, console.width), console=console, transient=True, auto_refresh=False
    ) as live:
        for row in found:
            every = sorted([*every, row], key=order)
            if console.is_terminal:
                live.update(_table(every, console.width), refresh=True)
            else:
                print(f"  {row['board']}: {_fit(row)}", file=sys.stderr, flush=True)
    console.print(_table(every, console.width))
    return every


def _table(every: Sequence[Row], width: int) -> Table:
    """Make the table; where it is narrow, without what the boards have. Reasons may take several
    lines, numbers and names may not."""
    kinds, gap = (("sram", "flash"), 2) if width >= WIDE else ((), 1)
    right = ((name, "right") for name in (*map(memory, kinds), *COLUMNS.values()))
    table = screen.table((("board", "left"), ("", "left"), *right, ("strategy", "left")), (), gap)
    table.columns[1].max_width = 36  # a reason would be wider than all else
    for row in every:
        smallest = ", the smallest" if row["fits"] and row is every[0] else ""
        limits = [number(row[f"{kind}_limit_bytes"]) for kind in kinds]
        table.add_row(
            row["board"], _fit(row) + smallest, *limits,
            *(valued(key, row.get(key)) for key in COLUMNS), row.get("strategy", "–"),
            style="bold" if smallest else "" if row["fits"] else "dim",
        )  # fmt: skip
    for column in (table.columns[0], *table.columns[2:]):
        head = str(column.header)
        words = [head] if kinds else head.split()
        column.width = max(map(len, [*words, *map(str, column.cells)]))
    return table


def _fit(row: Mapping[str, Any]) -> str:
    """``fits``, or what is missing."""
    lacks = [f"{number(b)} B of {memory(m)}" for m, b in row.get("lacks_bytes", {}).items()]
    return row.get("why") or (f"lacks {' and '.join(lacks)}" if lacks else "fits")
