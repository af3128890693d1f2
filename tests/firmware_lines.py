"""The lines of firmware/ that CI's host builds run, by gcov.

    python -m tests.firmware_lines [tests/codegen …]

runs the tests with a ``cc`` that counts, and templates whose lines say where they come from (so
tests that compare generated text or symbols fail here), and prints each file's share and the lines
that never ran. Assembly and what only a chip's compiler takes isn't among them: gcov sees what was
compiled.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import jinja2
import jinja2.ext
import pytest

from pipeline.codegen import render
from pipeline.home import ROOT

FIRMWARE = ROOT / "firmware"
ASSEMBLY = FIRMWARE / "kernels" / "avr"
FOLDER = "THIMBLE_GCOV"
"""Environment variable: where counts of this run are collected."""
COUNTING = '#!/bin/sh\nexec {compiler} --coverage -fprofile-abs-path "$@"\n'
MARK = re.compile(r"/\*@(\S+):(\d+)\*/")
LIMIT = 0.95
"""Share of the lines that should run: below it, the exit code is 1."""

Hits = dict[str, Counter[int]]
"""File of firmware/ -> line -> how often it ran; 0 of what was compiled and didn't."""


class Marked(jinja2.ext.Extension):
    """Ends each line of C, not of assembly, with a comment that says where it is from."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        path = Path(filename or "")
        if path.parent == ASSEMBLY or not path.name.endswith((".c.j2", ".h.j2", ".ino.j2")):
            return source
        place = path.relative_to(ROOT).as_posix()
        lines, inside = [], ""
        for number, line in enumerate(source.split("\n"), 1):
            opened = inside
            for mark in re.findall(r"/\*|\*/|\{[%#{]|[%#}]\}", line):
                if not inside and mark in ("/*", "{%", "{#", "{{"):
                    inside = mark
                elif {"/*": "*/", "{%": "%}", "{#": "#}", "{{": "}}"}.get(inside) == mark:
                    inside = ""
            code = re.search(r"(?:[;{),:]|(?<![%#])})\s*$", line)
            code = code and not (opened or inside or line.startswith("#"))
            lines.append(f"{line} /*@{place}:{number}*/" if code else line)
        return "\n".join(lines)


class Plugin:
    """After each test, adds up what its programs counted."""

    def __init__(self) -> None:
        self.hits: Hits = defaultdict(Counter)
        self.counts = Path(os.environ[FOLDER], f"counts-{os.getpid()}")
        os.environ["GCOV_PREFIX"] = str(self.counts)
        render._environment().add_extension(Marked)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        if self.counts.exists():
            for count in self.counts.rglob("*.gcda"):
                for path, lines in counted(count, self.counts):
                    add(self.hits, path, lines)
            shutil.rmtree(self.counts)

    def pytest_sessionfinish(self) -> None:
        path = Path(os.environ[FOLDER], f"hits-{os.getpid()}.json")
        path.write_text(json.dumps(self.hits))


def counted(count: Path, prefix: Path) -> Iterator[tuple[Path, Mapping[int, int]]]:
    """The source files of an object, and how often each line ran."""
    built = Path("/", count.relative_to(prefix)).with_suffix(".gcno")
    if not built.exists():
        return
    shutil.copy(built, count.parent)
    command = ["gcov", "--json-format", "--stdout", count.name]
    done = subprocess.run(command, cwd=count.parent, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        for file in json.loads(line)["files"]:
            path = built.parent / file["file"]
            if path.exists():
                yield path, {each["line_number"]: each["count"] for each in file["lines"]}


def add(hits: Hits, path: Path, lines: Mapping[int, int]) -> None:
    """Add what ran of ``path``: of its marks' files, or as one that was copied as it is."""
    text = path.read_text(errors="replace").splitlines()
    copied = same(path.name)
    for number, ran in lines.items():
        mark = MARK.search(text[number - 1]) if number <= len(text) else None
        if mark:
            hits[mark[1]][int(mark[2])] += ran
        elif copied:
            hits[copied][number] += ran


def same(name: str) -> str:
    """The file of firmware/ with this name, unless templates make it."""
    found = [path for path in FIRMWARE.rglob(name) if path.is_file()]
    return found[0].relative_to(ROOT).as_posix() if found else ""


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Plugin())


def table(hits: Hits) -> Iterator[str]:
    """The share of each file, the lines that never ran, and the share of all."""
    ran = total = 0
    for file, lines in sorted(hits.items()):
        never = sorted(number for number, count in lines.items() if not count)
        ran, total = ran + len(lines) - len(never), total + len(lines)
        said = f", never {', '.join(map(str, never))}" if never else ""
        yield f"{1 - len(never) / len(lines):6.1%} of {len(lines):4} lines  {file}{said}"
    yield f"{ran / max(total, 1):.1%} of {total} lines of firmware/ that hosts compile ran"


def main(tests: list[str]) -> int:
    hits: Hits = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        for compiler in map(shutil.which, ("cc", "g++")):
            counting = Path(folder, Path(compiler or "cc").name)
            counting.write_text(COUNTING.format(compiler=compiler))
            counting.chmod(0o755)
        path = f"{folder}:{os.environ['PATH']}"
        words = ["-p", "tests.firmware_lines", "-n", "2", "--dist", "worksteal", "-m", "not slow"]
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--no-header", *words, *tests],
            cwd=ROOT, env={**os.environ, "PATH": path, FOLDER: folder}, check=False,
        )  # fmt: skip
        for part in Path(folder).glob("hits-*.json"):
            for file, lines in json.loads(part.read_text()).items():
                if (ROOT / file).is_file():  # tests rename programs, and so their marks
                    hits[file].update({int(number): count for number, count in lines.items()})
    print("\n".join(table(hits)))
    counts = [count for lines in hits.values() for count in lines.values()]
    return int(sum(map(bool, counts)) < LIMIT * len(counts) or not counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
