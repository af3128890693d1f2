"""``make check``: the tests that a change can reach, as many of them as go into a minute.

    python -m tests.affected [BASE]     what is not committed, and what was since BASE (HEAD)

A test file reaches the Python files that it imports, by ``pipeline/runner/closure.py``, and other
files whose name or folder one of these names in a string. Whoever starts run.py reaches everything.
Changed test files come first, then the shortest tests by the record of durations; what is left out
is said. Tests marked slow are never among them.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.home import ROOT
from pipeline.runner.closure import closure
from tests.durations import Cost, read

PACKAGES = frozenset({"pipeline", "stages", "tests"})
RUN_BY_COMMAND = ("pipeline/", "stages/", "conf/", "firmware/", "run.py", "dvc.yaml", "params.yaml")
"""What a test may depend on that starts run.py."""
ALL_DEPEND_ON = ("pyproject.toml", "constraints.txt", "tests/conftest.py", "tests/durations.py")
CHECKED_BY = {"tests/durations.json": "tests/test_durations.py"}
"""Every test process may write the record; only this file depends on it."""
BUDGET_SECONDS = 40.0
"""Of processor time on two cores: 20 s, and up to half a minute for starting."""
UNKNOWN_SECONDS = 5.0
"""Taken for a test file that the record lacks."""
FILE_SECONDS = 0.15
"""For importing a test file, in both processes."""


@dataclass(frozen=True, order=True)
class Choice:
    """Some tests: of ``file`` the one called ``test``, or all that the record doesn't name."""

    seconds: float
    file: str
    test: str = ""


def changed(root: Path, base: str) -> set[str]:
    """Paths that differ from where this branch left ``base``, new and deleted ones too."""

    def git(*words: str) -> list[str]:
        command = ["git", *words]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"make check: git {words[0]}: {done.stderr.strip()}")
        return done.stdout.splitlines()

    (start,) = git("merge-base", base, "HEAD")
    others = git("ls-files", "--others", "--exclude-standard")
    return {*git("diff", "--name-only", "--no-renames", start), *others}


def all_tests(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))


def reached(root: Path, changes: Iterable[str]) -> set[str]:
    """The test files that any of ``changes`` can reach."""
    changes = {CHECKED_BY.get(name, name) for name in changes}
    if changes & set(ALL_DEPEND_ON):
        return set(all_tests(root))
    return {file for file in all_tests(root) if _reaches(root, file, changes)}


def _reaches(root: Path, file: str, changes: set[str]) -> bool:
    place = Path(file)
    shared = [(folder / "conftest.py").as_posix() for folder in place.parents]
    files = closure(root, [file, *(name for name in shared if (root / name).is_file())], PACKAGES)
    if files & changes:
        return True
    if any("run.py" in _words(root, name) for name in files if name.startswith("tests/")) and any(
        name.startswith(RUN_BY_COMMAND) for name in changes
    ):
        return True
    return any(_names(root, name, other) for name in files for other in changes)


def _names(root: Path, file: str, other: str) -> bool:
    """Whether the Python file ``file`` names ``other``: its file or folder, together with the
    project's folder that it is in, unless ``file`` is in the same one. A page, which messages and
    docstrings refer to, in a string of its own: its path, its name or ``folder/*.md``."""
    path, words = Path(other), _words(root, file)
    if path.suffix == ".md":
        texts, name = _strings(root, file), path.parent.name
        named = {other, path.name, f"{path.parent}/*.md"} & texts
        return bool(named) or {name, "*.md"} <= texts
    if path.suffix == ".py" or not {path.name, path.stem, path.parent.name} & words:
        return False
    top = path.parts[0]
    return top in words or file.startswith(f"{top}/")


@cache
def _strings(root: Path, file: str) -> frozenset[str]:
    """All that are in a Python file."""
    tree = ast.parse((root / file).read_bytes())
    found = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return frozenset(text for text in found if isinstance(text, str))


@cache
def _words(root: Path, file: str) -> frozenset[str]:
    """The file and folder names in a Python file's strings."""
    texts = _strings(root, file)
    return frozenset(word for text in texts for word in re.split(r"[^\w.-]+", text) if word)


def choices(files: Iterable[str], record: Mapping[str, Cost]) -> list[Choice]:
    """What can be chosen of ``files``; a file that the record lacks is taken for a quick one."""
    found = []
    for file in files:
        cost = record.get(file, Cost({"default": UNKNOWN_SECONDS}))
        rest = sum(cost.tiers.values()) - sum(cost.tests.values())
        found.append(Choice(max(rest, 0.0) + FILE_SECONDS, file))
        found += [Choice(seconds, file, test) for test, seconds in cost.tests.items()]
    return found


def within(budget: float, found: Iterable[Choice], first: set[str]) -> tuple[list[Choice], float]:
    """As many as ``budget`` seconds allow, those of the files ``first`` and short ones before
    others; and the seconds of what is left out."""
    chosen, left_out = [], 0.0
    for choice in sorted(found, key=lambda choice: (choice.file not in first, choice)):
        if choice.seconds <= budget:
            chosen.append(choice)
            budget -= choice.seconds
        else:
            left_out += choice.seconds
    return chosen, left_out


def arguments(found: Iterable[Choice], chosen: Iterable[Choice]) -> list[str]:
    """Of pytest, to run what is chosen."""
    chosen = set(chosen)
    whole = {choice.file for choice in chosen if not choice.test}
    words = sorted(whole)
    for choice in sorted(choice for choice in found if choice.test):
        name = f"{choice.file}::{choice.test}"
        if choice in chosen and choice.file not in whole:
            words.append(name)
        elif choice not in chosen and choice.file in whole:
            words.append(f"--deselect={name}")
    return words


def main(base: str) -> int:
    changes = changed(ROOT, base)
    files = reached(ROOT, changes)
    found = choices(files, read().files)
    chosen, left_out = within(BUDGET_SECONDS, found, first=changes)
    print(
        f"{len(changes)} files changed since {base}; {len(files)} of {len(all_tests(ROOT))} "
        f"test files can notice"
    )
    if left_out:
        print(
            f"left out, for they take {left_out:.0f} s of processor time: "
            f"{len(found) - len(chosen)} of {len(found)} parts; make test runs them"
        )
    if not chosen:
        return 0
    pytest = ["-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", "not slow"]
    return subprocess.run(
        [sys.executable, *pytest, *arguments(found, chosen)], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["HEAD"]))
