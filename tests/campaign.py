"""Try random networks with any strategy on any board: thousands of them.

    python -m tests.campaign FILE [--count 2040] [--seed 0] [--jobs 2]

Each pair of strategy and family of cores takes its turn, 34 times in 2,040. A line of JSON for each
is appended to FILE, from which a stopped campaign goes on; at the end it prints how many ended in
which way, in Markdown. The exit code is 1 unless each of them ended in C that runs and is right, in
"does not fit", or in a refusal of ``REFUSALS``.
"""

import argparse
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from time import process_time
from typing import Any

from tests.contracts.triples import FAMILIES, GOOD, PAIRS, STRATEGIES, End, Triple, tried

PATIENCE_SECONDS = 120
"""Most processor time for one triple."""

Row = dict[str, Any]


def row(number: int, seed: int) -> Row:
    """A triple, and how it ended."""
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE_SECONDS)
    began, (strategy, family) = process_time(), PAIRS[number % len(PAIRS)]
    try:
        end = tried(Triple.drawn(number, seed))
    except Exception as error:  # of the campaign itself, or too late
        end = End(f"{type(error).__name__}", str(error))
    signal.setitimer(signal.ITIMER_PROF, 0)
    said = {"strategy": strategy.name, "family": family, **vars(end)}
    return {"number": number, "seed": seed, **said, "seconds": round(process_time() - began, 2)}


def _late(*_: object) -> None:
    raise TimeoutError(f"no end after {PATIENCE_SECONDS} seconds")


def table(rows: Sequence[Row]) -> Iterable[str]:
    """Yield a table: of each pair, runs / refused / does not fit / anything else."""
    yield f"| strategy | {' | '.join(FAMILIES)} |"
    yield "| --- |" + " --- |" * len(FAMILIES)
    for strategy in (each.name for each in STRATEGIES):
        cells = []
        for family in FAMILIES:
            kinds = [r["kind"] for r in rows if (r["strategy"], r["family"]) == (strategy, family)]
            numbers = [kinds.count(kind) for kind in GOOD]
            cells.append(" / ".join(map(str, (*numbers, len(kinds) - sum(numbers)))))
        yield f"| {strategy} | {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=2040)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    before = asked.file.read_text().splitlines() if asked.file.exists() else []
    rows = [each for each in map(json.loads, before) if each["seed"] == asked.seed]
    left = sorted(set(range(asked.count)) - {each["number"] for each in rows})
    with ProcessPoolExecutor(asked.jobs) as pool, asked.file.open("a") as out:
        for done in as_completed([pool.submit(row, n, asked.seed) for n in left]):
            rows.append(done.result())
            print(json.dumps(rows[-1]), file=out, flush=True)
    print(*table(rows), "", Counter(each["kind"] for each in rows), sep="\n")
    bad = [each for each in rows if each["kind"] not in GOOD]
    print(*(json.dumps(each) for each in bad), sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
