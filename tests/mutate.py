"""The mutation score of the tests that CI runs: how many seeded mutants fail one of them.

    python -m pytest -p tests.recorder -n 2 -m "not slow"      who reaches what
    python -m tests.mutate FILE [--count 200] [--seed 1] [--jobs 2]
    python -m tests.mutate FILE --check 30                     how many of them make check finds

Each mutant of what is committed meets the tests that reach its line, the narrowest first, until one
fails; where there is no recording, those that tests/reach.json has. A line of JSON for each is
appended to FILE, from which a stopped campaign goes on: mutants whose killer is no longer among the
tests are tried again, survivors with ``--survivors`` or when they meet more tests. At the end it
prints the table, and which mutants survived. ``EQUIVALENT`` holds those that change nothing that
could be noticed, with the reason.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pipeline.home import ROOT
from tests import affected, durations, reach
from tests.meter import work_seconds
from tests.mutants import AREAS, TEMPLATES, Mutant, drawn
from tests.programs import said
from tests.reach import Reach, Recording, recorded
from tests.recorder import FOLDER

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
BATCHES_SECONDS = (10.0, 60.0, 300.0, 3000.0)
"""Processor time of the tests that are run before it is asked whether one failed."""
PATIENCE = 5.0
"""A batch that takes so many times as long as the tests do has met a mutant without an end."""
TEST_SECONDS = 300.0
"""After so long, a test waits for ever. Times are those of the record's machine."""

Row = dict[str, Any]


@contextmanager
def copies(count: int) -> Iterator[SimpleQueue[Path]]:
    """Checkouts of what is committed, which mutants are tried in."""
    found: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="thimble-mutants-") as folder:
        for number in range(count):
            place = Path(folder, str(number))
            said(["git", "worktree", "add", "-q", "--detach", place], ROOT)
            (place / ".venv").symlink_to(ROOT / ".venv")
            found.put(place)
        try:
            yield found
        finally:
            for number in range(count):
                command = ["git", "worktree", "remove", "--force", Path(folder, str(number))]
                subprocess.run(command, cwd=ROOT, check=False)


@contextmanager
def mutated(copy: Path, mutant: Mutant) -> Iterator[None]:
    """The mutant in the checkout ``copy``; bytecode is told by seconds, so a second passes."""
    path = copy / mutant.file
    before = path.read_text()
    path.write_text(mutant.applied(before))
    os.utime(path, (time.time() + 10, time.time() + 10))
    try:
        yield
    finally:
        path.write_text(before)
        os.utime(path, (time.time() + 20, time.time() + 20))


def ran(copy: Path, command: Sequence[str], patience: float) -> tuple[int, str]:
    """Exit code and output; the code is negative after ``patience`` seconds of processor time."""
    home = {"THIMBLE_HOME": str(copy.with_name(f"{copy.name}-home"))}
    done = subprocess.run(
        ["prlimit", f"--cpu={patience:.0f}", sys.executable, "-m", *command], cwd=copy, text=True,
        env={**os.environ, **home}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def batches(tests: Sequence[str], seconds: dict[str, float]) -> Iterator[tuple[list[str], float]]:
    """``tests`` in order, cut where each of ``BATCHES_SECONDS`` is full; and what each takes."""
    sizes, batch, total = iter(BATCHES_SECONDS), [], 0.0
    limit = next(sizes)
    for test in tests:
        batch.append(test)
        total += seconds.get(test, 1.0)
        if total >= limit:
            yield batch, total
            batch, total, limit = [], 0.0, next(sizes, limit)
    if batch:
        yield batch, total


def reaching(mutant: Mutant, record: Recording | Reach) -> list[str]:
    """The tests that a mutant meets."""
    if isinstance(record, Recording):
        return record.at(mutant.file, mutant.line)
    there = set(affected.all_tests(ROOT))
    tests = affected.noticing(ROOT, mutant.file, [mutant.line], record)
    return [test for test in tests if test.partition("::")[0] in there]


@cache
def slowness() -> float:
    """Measure how many times as long as the record's machine this one takes."""
    return max(1.0, work_seconds() / durations.read().work_seconds)


def tried(copy: Path, mutant: Mutant, record: Recording | Reach) -> Row:
    """Return what became of a mutant, and the test that failed."""
    tests, every = reaching(mutant, record), isinstance(record, Recording)
    row: Row = {"mutant": mutant.name, "area": mutant.area, "reached_by": len(tests), "all": every}
    timeout = TEST_SECONDS * slowness()
    began, only = time.monotonic(), copy.with_name(f"{copy.name}-only")
    with mutated(copy, mutant):
        for batch, seconds in batches(tests, record.seconds):
            only.write_text("\n".join(batch))
            files = sorted({test.partition("::")[0] for test in batch})
            words = ["-x", "-q", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider"]
            command = ["pytest", *words, "-o", f"timeout={timeout:.0f}", f"--only={only}", *files]
            code, out = ran(copy, command, slowness() * (30 + PATIENCE * seconds))
            if code not in (0, 5):
                failed = [line for line in out.splitlines() if line.startswith(("FAILED", "ERROR"))]
                test = failed[0].partition(" ")[2].partition(" - ")[0] if failed else ""
                by = test or ("no end" if code < 0 else f"exit {code}")
                row |= {"killed": True, "by": by}
                break
        else:
            row |= {"killed": False}
    return {**row, "seconds": round(time.monotonic() - began, 1)}


def checked(copy: Path, mutant: Mutant) -> Row:
    """Check whether ``make check`` finds a mutant, and how long it takes."""
    began = time.monotonic()
    with mutated(copy, mutant):
        code, out = ran(copy, ["tests.affected"], 1800)
    return {
        "mutant": mutant.name, "check": code != 0, "said": out.splitlines()[:1],
        "check_seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


def table(rows: Sequence[Row], reasons: dict[str, str]) -> Iterator[str]:
    """By area: mutants, equivalent ones, killed; then the survivors."""
    yield "| area | mutants | equivalent | killed | score |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for area in (*AREAS, TEMPLATES, "all"):
        of_area = [row for row in rows if area in (row["area"], "all")]
        killed = sum(row["killed"] for row in of_area)
        same = sum(row["mutant"] in reasons and not row["killed"] for row in of_area)
        share = killed / (len(of_area) - same) if len(of_area) > same else 1.0
        yield f"| {area} | {len(of_area)} | {same} | {killed} | {share:.1%} |"
    for row in rows:
        if not row["killed"]:
            reason = reasons.get(row["mutant"], f"survived {row['reached_by']} tests")
            yield f"- {row['mutant']}: {reason}"


def read(path: Path) -> list[Row]:
    """The rows of a campaign; of a mutant that was tried again, the last."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return list({(row["mutant"], "check" in row): row for row in rows}.values())


def stands(
    row: Row, tests: Container[str], whole: bool, survivors: bool, same: Container[str] = ()
) -> bool:
    """Check whether a campaign need not try a mutant again; ``whole``: survivors can meet all
    tests; ``same``: those that are known to change nothing."""
    if not row["killed"]:
        return row["mutant"] in same or (not survivors and row["all"] >= whole)
    by: str = row["by"]
    return by in tests or not by.startswith("tests/")


def collected() -> set[str]:
    """The tests that CI runs."""
    words = ["pytest", "--collect-only", "-q", "-m", "not slow"]
    return set(ran(ROOT, words, 600)[1].splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", type=int, default=0)
    parser.add_argument("--survivors", action="store_true")
    given = parser.parse_args()
    mutants = {mutant.name: mutant for mutant in drawn(given.count, given.seed)}
    reasons = json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    rows = [row for row in read(given.file) if "killed" in row and row["mutant"] in mutants]
    if given.check:
        found = [row["mutant"] for row in rows if row["killed"]][
            :: max(1, len(rows) // given.check)
        ]
        work = [mutants[name] for name in found[: given.check]]
        jobs = 1  # make check has both cores
    else:
        jobs, tests, whole = given.jobs, collected(), (FOLDER / "seconds.json").is_file()
        record = recorded() if whole else reach.read()
        known = {
            row["mutant"] for row in rows if stands(row, tests, whole, given.survivors, reasons)
        }
        work = [mutant for name, mutant in mutants.items() if name not in known]
    with copies(jobs) as free, ThreadPoolExecutor(jobs) as pool, given.file.open("a") as log:

        def one(mutant: Mutant) -> Row:
            copy = free.get()
            try:
                return checked(copy, mutant) if given.check else tried(copy, mutant, record)
            finally:
                free.put(copy)

        for done in as_completed([pool.submit(one, mutant) for mutant in work]):
            print(json.dumps(done.result()), file=log, flush=True)
    rows = [row for row in read(given.file) if row["mutant"] in mutants]
    if given.check:
        found_rows = [row for row in rows if "check" in row]
        print(f"make check finds {sum(row['check'] for row in found_rows)} of {len(found_rows)}")
        return 0
    print("\n".join(table([row for row in rows if "killed" in row], reasons)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
