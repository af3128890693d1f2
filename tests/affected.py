"""``make check``: the tests that are likeliest to notice a change, as many as go into a minute.

    python -m tests.affected [BASE]     what is not committed, and what was since BASE (HEAD)

Changed test files come first. Then, of each changed function and template, the tests that the
record of reach names (``tests/reach.py``); then the test files that name a changed file, those
first that the record doesn't have: new ones, pages, options of conf/. What is left out is said.
Tests marked slow are never among them.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.home import ROOT
from tests import durations, reach
from tests.reach import MODULE, Reach

BUDGET_SECONDS = 70.0
"""Processor time on two cores, 35 s of a minute; the rest is for starting."""
UNKNOWN_SECONDS = 5.0
"""Taken for a test file that the record of durations lacks."""
HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")

Changes = Mapping[str, list[int]]
"""File -> changed lines, of a deletion the line before it; none of a file that is new or gone."""


@dataclass
class Choice:
    """Tests to run, and those that reach the change and are left out.

    Attributes:
        files: test files that are run whole.
        tests: node ids.
    """

    files: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    seconds: float = 0.0
    left_out: list[str] = field(default_factory=list)
    left_out_seconds: float = 0.0

    def take(self, name: str, seconds: float) -> None:
        if self.seconds + seconds > BUDGET_SECONDS:
            self.left_out.append(name)
            self.left_out_seconds += seconds
            return
        self.seconds += seconds
        (self.tests if "::" in name else self.files).append(name)


def changed(root: Path, base: str) -> Changes:
    """List the lines, by file, that differ from where this branch left ``base``."""

    def git(*words: str) -> list[str]:
        command = ["git", *words]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"make check: git {words[0]}: {done.stderr.strip()}")
        return done.stdout.splitlines()

    (start,) = git("merge-base", base, "HEAD")
    found: dict[str, list[int]] = {
        name: [] for name in git("ls-files", "--others", "--exclude-standard")
    }
    lines: list[int] = []
    for line in git("diff", "--unified=0", "--no-renames", "--no-prefix", start):
        if line.startswith("diff --git "):
            lines = []
        elif line.startswith(("--- ", "+++ ")) and line[4:] != "/dev/null":
            found[line[4:]] = lines
        elif hunk := HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines += range(first, first + max(count, 1))
    return found


def all_tests(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))


def noticing(root: Path, file: str, lines: Iterable[int], record: Reach) -> list[str]:
    """The recorded tests that reach these lines of ``file``; then others that reach the file."""
    functions = record.tests.get(file, {})
    path = root / file
    if not file.endswith(".py") or not path.is_file():
        return functions.get(MODULE, [])
    source = path.read_text()
    names = dict.fromkeys(reach.function_at(source, line) for line in lines)
    ranked = [functions.get(name, []) for name in names if name != MODULE]
    return list(dict.fromkeys([*_by_turns(ranked), *functions.get(MODULE, [])]))


def _by_turns(lists: list[list[str]]) -> Iterator[str]:
    """The first of each list, then the second of each, each test once."""
    longest = max(map(len, lists), default=0)
    turns = (each[index] for index in range(longest) for each in lists if index < len(each))
    yield from dict.fromkeys(turns)


def naming(root: Path, file: str) -> list[str]:
    """List test files that say the name of ``file``, or its stem and folder, or import it."""
    path = Path(file)
    if path.suffix == ".py":
        words = [rf"\b{re.escape('.'.join(path.with_suffix('').parts))}\b"]
        words = [*words, rf"from {re.escape('.'.join(path.parent.parts))} import .*\b{path.stem}\b"]
        found = [re.compile("|".join(words))]
    elif path.suffix in (".yaml", ".json"):
        found = [re.compile(rf"\b{re.escape(word)}\b") for word in (path.stem, path.parent.name)]
    else:
        found = [re.compile(rf"(?<![\w.]){re.escape(path.name)}\b|{path.parent.name}/\*")]
    texts = ((name, (root / name).read_text()) for name in all_tests(root))
    return [name for name, text in texts if all(each.search(text) for each in found)]


def chosen(root: Path, changes: Changes, record: Reach, costs: Mapping[str, float]) -> Choice:
    """Choose what goes into ``BUDGET_SECONDS``."""
    choice, tests = Choice(), set(all_tests(root))
    for file in sorted(changes.keys() & tests):
        choice.take(file, costs.get(file, UNKNOWN_SECONDS))
    known = [noticing(root, file, lines, record) for file, lines in changes.items()]
    for test in _by_turns(known):
        if test.partition("::")[0] not in choice.files:
            choice.take(test, record.seconds.get(test, UNKNOWN_SECONDS))
    naming_it = {file: naming(root, file) for file in changes}
    lacking = {
        n for file, found in zip(changes, known, strict=True) if not found for n in naming_it[file]
    }
    named = {name for names in naming_it.values() for name in names} - {*choice.files}
    for file in sorted(named, key=lambda n: (n not in lacking, costs.get(n, UNKNOWN_SECONDS))):
        choice.take(file, costs.get(file, UNKNOWN_SECONDS))
    choice.tests = [test for test in choice.tests if test.partition("::")[0] not in choice.files]
    return choice


def main(base: str) -> int:
    changes, record = changed(ROOT, base), reach.read()
    costs = {
        file: cost.tiers.get("default", 0.0) + cost.tiers.get("ci", 0.0)
        for file, cost in durations.read().files.items()
    }
    choice = chosen(ROOT, changes, record, costs)
    parts = f"{len(choice.files)} test files and {len(choice.tests)} other tests"
    seconds = f"{choice.seconds:.0f} s of processor time"
    print(f"{len(changes)} files changed since {base}: {parts}, {seconds}")
    if choice.left_out:
        names = " ".join(choice.left_out)
        print(f"left out, for they take {choice.left_out_seconds:.0f} s more: {names}")
    print("other tests may reach it, too: make test and make test-ci run all")
    if not choice.files and not choice.tests:
        return 0
    files = sorted({*choice.files, *(test.partition("::")[0] for test in choice.tests)})
    files = [file for file in files if (ROOT / file).is_file()]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as only:
        only.write("\n".join([*choice.files, *choice.tests]))
        only.flush()
        pytest = ["-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", "not slow"]
        command = [sys.executable, *pytest, f"--only={only.name}", *files]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["HEAD"]))
