"""The tests that reach each function and each template, likeliest to notice a change first.

    python -m pytest -p tests.recorder -n 2 -m "not slow"; python -m tests.reach

keeps tests/reach.json, from which ``make check`` chooses: of each function of pipeline/ and stages/
some tests that together reach all its lines twice, and then the narrowest that reach it. Whoever
has the whole recording, as ``tests/mutate.py`` needs it, calls ``recorded``.
"""

import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import coverage

from pipeline.home import ROOT
from tests.recorder import FOLDER

RECORD = Path(__file__).with_name("reach.json")
CHOSEN = 20
"""Tests in the record for each function, or a few more where its lines need them."""
OF_A_FILE = 160
"""Tests in the record for each file."""
MODULE = ""
"""Name of the lines outside of functions; of a whole file that isn't Python."""


@dataclass
class Reach:
    """Who reaches what.

    Attributes:
        seconds: of each test, processor time.
        tests: file -> function -> tests, the likeliest to notice a change first.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Name, first and last line of each function and method; those inside belong to it."""

    def inside(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, int, int]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                yield f"{prefix}{node.name}", first, node.end_lineno or node.lineno

    return inside(ast.parse(source).body, "")


def function_at(source: str, line: int) -> str:
    return next((name for name, a, b in functions(source) if a <= line <= b), MODULE)


@dataclass
class Recording:
    """All that ``tests/recorder.py`` left.

    Attributes:
        seconds: of each test, processor time.
        lines: file -> line -> tests.
        files: file that isn't Python -> tests.
        breadth: how many lines each test reaches.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    files: dict[str, set[str]]
    breadth: Counter[str]

    def order(self, tests: Iterable[str]) -> list[str]:
        """Narrow and quick ones first: what reaches little says more of a line that it reaches."""
        return sorted(tests, key=lambda t: (self.breadth[t] * (self.seconds.get(t, 1.0) + 0.1), t))

    def at(self, file: str, line: int) -> list[str]:
        """The tests that reach a line, or else its function; of lines of no function, the file."""
        if file in self.files:
            return self.order(self.files[file])
        lines, end = self.lines.get(file, {}), 1 << 30
        spans = functions((ROOT / file).read_text())
        first, last = next(((a, b) for _, a, b in spans if a <= line <= b), (1, end))
        if last < end and (tests := lines.get(line, set()) - {""}):
            return self.order(tests)
        near = {t for number, tests in lines.items() if first <= number <= last for t in tests}
        return self.order(near - {""})

    def chosen(self, lines: Mapping[int, set[str]], count: int) -> list[str]:
        """Some that reach each of ``lines`` twice, and then the best until there are ``count``."""
        every = self.order(set().union(*lines.values()) - {""})
        missing = Counter({n: min(2, len(tests - {""})) for n, tests in lines.items()})
        found: list[str] = []
        for test in every:
            news = [n for n, tests in lines.items() if missing[n] > 0 and test in tests]
            if news:
                found.append(test)
                missing.subtract(news)
        kinds = Counter(_kind(test) for test in found)
        for test in every:
            if len(found) >= count:
                break
            if test not in found and kinds[_kind(test)] < 2:
                found.append(test)
                kinds[_kind(test)] += 1
        return self.order(found)


def _kind(test: str) -> str:
    return test.partition("[")[0]


def recorded(folder: Path = FOLDER) -> Recording:
    """Read what the recorder left; combines coverage.py's files at the first call."""
    data_file = folder / "all"
    if not data_file.exists():
        combined = coverage.Coverage(data_file=str(data_file), config_file=str(folder / "rc"))
        combined.set_option("run:parallel", False)
        combined.combine([str(path) for path in folder.glob("lines.*")], keep=True)
        combined.save()
    data = coverage.CoverageData(str(data_file))
    data.read()
    lines: dict[str, dict[int, set[str]]] = {}
    breadth: Counter[str] = Counter()
    for name in sorted(data.measured_files()):
        path = Path(name)
        if path.is_relative_to(ROOT) and path.suffix == ".py" and path.is_file():
            found = {n: set(tests) for n, tests in data.contexts_by_lineno(name).items()}
            lines[path.relative_to(ROOT).as_posix()] = found
            for tests in found.values():
                breadth.update(tests)
    files: dict[str, set[str]] = defaultdict(set)
    for path in folder.glob("opened-*.json"):
        for test, names in json.loads(path.read_text()).items():
            for name in names:
                files[name].add(test)
    return Recording(json.loads((folder / "seconds.json").read_text()), lines, files, breadth)


def reduced(recording: Recording) -> Reach:
    tests: dict[str, dict[str, list[str]]] = {}
    for file, lines in recording.lines.items():
        spans = {MODULE: (1, 1 << 30)}
        spans |= {name: (a, b) for name, a, b in functions((ROOT / file).read_text())}
        for name, (first, last) in spans.items():
            inside = {n: found for n, found in lines.items() if first < n <= last or not name}
            count = CHOSEN if name else OF_A_FILE
            if chosen := recording.chosen(inside, count) if inside else []:
                tests.setdefault(file, {})[name] = chosen
    for file, found in recording.files.items():
        tests.setdefault(file, {})[MODULE] = recording.chosen({1: found}, OF_A_FILE)
    used = {test for names in tests.values() for each in names.values() for test in each}
    seconds = {test: round(recording.seconds.get(test, 0.0), 2) for test in sorted(used)}
    return Reach(seconds, dict(sorted(tests.items())))


def write(reach: Reach, path: Path = RECORD) -> None:
    """A line for each test, and for each file."""
    number = {test: index for index, test in enumerate(reach.seconds)}
    tests = [json.dumps([test, seconds]) for test, seconds in reach.seconds.items()]
    files = [
        f"{json.dumps(file)}: "
        + json.dumps({name: [number[t] for t in each] for name, each in names.items()})
        for file, names in reach.tests.items()
    ]
    parts = ['{"tests": [', ",\n".join(tests), '], "files": {', ",\n".join(files), "}}"]
    path.write_text("\n".join(parts) + "\n")


def read(path: Path = RECORD) -> Reach:
    """The record; empty when there is none yet."""
    content = json.loads(path.read_text()) if path.exists() else {"tests": [], "files": {}}
    names = [test for test, _ in content["tests"]]
    files = {
        file: {function: [names[index] for index in each] for function, each in functions.items()}
        for file, functions in content["files"].items()
    }
    return Reach(dict(content["tests"]), files)


def main() -> int:
    if not (FOLDER / "seconds.json").is_file():
        print("no recording is there: python -m pytest -p tests.recorder -n 2", file=sys.stderr)
        return 1
    write(reduced(recorded()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
