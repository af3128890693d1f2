"""Imports between the packages of pipeline/, drawn in docs/architecture.md.

``python -m tests.structure`` brings the drawing up to date.
"""

import re
from collections.abc import Mapping

from pipeline.home import ROOT
from pipeline.runner import closure

PAGE = ROOT / "docs" / "architecture.md"
BLOCK = re.compile(r"```mermaid\n.*?```\n", re.DOTALL)
Edges = Mapping[str, frozenset[str]]


def package(name: str) -> str:
    """``plan`` of pipeline/plan/verify.py; "" of a module directly in pipeline/."""
    parts = name.split("/")
    return parts[1] if len(parts) > 2 else ""


def imported() -> Edges:
    """For each package the others that its files import."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "pipeline").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if own := package(name):
            reached = {package(file) for file in closure.imports(ROOT, name)} - {"", own}
            found.setdefault(own, set()).update(reached)
    return {name: frozenset(reached) for name, reached in found.items()}


def direct(edges: Edges) -> Edges:
    """Without what is reached by way of others anyway."""
    below: dict[str, frozenset[str]] = {}

    def all_below(name: str) -> frozenset[str]:
        if name not in below:
            below[name] = edges[name].union(*(all_below(each) for each in edges[name]))
        return below[name]

    return {
        name: frozenset(
            each for each in reached if not any(each in all_below(o) for o in reached - {each})
        )
        for name, reached in edges.items()
    }


def drawing() -> str:
    arrows = (
        f"    {name} --> {each}\n"
        for name, reached in sorted(direct(imported()).items())
        for each in sorted(reached)
    )
    return "```mermaid\nflowchart TD\n" + "".join(arrows) + "```\n"


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda _: drawing(), PAGE.read_text()))
