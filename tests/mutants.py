"""Seeded mutants: small faults in the code, each of which the tests that CI runs should notice.

In Python by syntax tree: another comparison, operator, bound or branch, a statement left out. In C
and its templates by line: what is between jinja's marks and outside of comments.
"""

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.home import ROOT
from tests.reach import MODULE, functions

AREAS = (
    "search", "placement", "schedules", "kernels", "codegen", "quantize", "plan", "importers",
    "measure.py", "training",
)  # fmt: skip
"""Areas of pipeline/ with an equal share of the mutants each; ``plan`` verifies plans."""
TEMPLATES = "templates"
IN_TEMPLATES = 0.2
"""Share of the mutants that are in firmware/kernels."""
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
OPPOSITES = (("min", "max"), ("any", "all"))
IN_C = (
    (r" \+ ", " - "), (r" - ", " + "), (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "),
    (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" << ", " >> "),
    (r" >> ", " << "), (r" \+= ", " -= "), (r" -= ", " += "), (r" \* (?!/)", " + "),
    (r" & ", " | "), (r"\b0\b", "1"), (r"\b1\b", "2"), (r"\b2\b", "3"),
)  # fmt: skip


@cache
def _read(file: str) -> str:
    return (ROOT / file).read_text()


@cache
def _spans(file: str) -> list[tuple[str, int, int]]:
    return list(functions(_read(file)))


@dataclass(frozen=True)
class Mutant:
    """In ``file``, from ``start`` to ``stop`` (characters), ``text`` in place of what is there."""

    file: str
    start: int
    stop: int
    text: str

    def applied(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.stop :]

    @property
    def name(self) -> str:
        """``file:function: before -> after``, which holds while other lines come and go."""
        before = " ".join(_read(self.file)[self.start : self.stop].split())
        after = " ".join(self.text.split())
        place = str(self.line)
        if self.file.endswith(".py"):
            place = next((name for name, a, b in _spans(self.file) if a <= self.line <= b), MODULE)
        return f"{self.file}:{place}: {before} -> {after}"

    @property
    def line(self) -> int:
        return _read(self.file).count("\n", 0, self.start) + 1

    @property
    def area(self) -> str:
        parts = Path(self.file).parts
        return parts[1] if parts[0] == "pipeline" else TEMPLATES


def in_python(file: str, source: str) -> Iterator[Mutant]:
    """All mutants of a module, outside of docstrings, annotations and what only types."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    raw = source.encode()

    def place(node: ast.AST) -> tuple[int, int]:
        a = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        b = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return len(raw[:a].decode()), len(raw[:b].decode())

    def mutant(node: ast.AST, text: str) -> Mutant:
        return Mutant(file, *place(node), text)

    def visit(node: ast.AST) -> Iterator[Mutant]:
        yield from changed(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from visit(child)

    def changed(node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            operator = SWAPPED[type(node.ops[0])]()
            new = ast.Compare(node.left, [operator], node.comparators)  # type: ignore[list-item]
            yield mutant(node, f"({ast.unparse(new)})")
        elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
            if not any(isinstance(each, ast.JoinedStr) for each in (node.left, node.right)):
                new_op = SWAPPED[type(node.op)]()
                swapped = ast.BinOp(node.left, new_op, node.right)  # type: ignore[arg-type]
                yield mutant(node, f"({ast.unparse(swapped)})")
        elif isinstance(node, ast.BoolOp):
            other = ast.BoolOp(SWAPPED[type(node.op)](), node.values)  # type: ignore[arg-type]
            yield mutant(node, f"({ast.unparse(other)})")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            yield mutant(node, f"({ast.unparse(node.operand)})")
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield mutant(node, str(node.value + 1))
        elif isinstance(node, ast.If | ast.IfExp):
            yield mutant(node.test, f"(not ({ast.unparse(node.test)}))")
        elif isinstance(node, ast.AugAssign | ast.Continue | ast.Break) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            yield mutant(node, "pass")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from (
                mutant(node.func, other_name)
                for pair in OPPOSITES
                for name, other_name in (pair, pair[::-1])
                if node.func.id == name
            )

    return visit(tree)


def in_c(file: str, source: str) -> Iterator[Mutant]:
    """All mutants of a template or a C file, outside of comments, directives and jinja's marks."""
    marks = r"/\*.*?\*/|//[^\n]*|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|^\s*#[^\n]*|\"[^\"\n]*\""
    hidden = re.compile(marks, re.DOTALL | re.MULTILINE)
    masked = hidden.sub(lambda found: re.sub(r"[^\n]", "\0", found[0]), source)
    for pattern, text in IN_C:
        for found in re.finditer(pattern, masked):
            yield Mutant(file, found.start(), found.end(), text)
    for found in re.finditer(
        r"(?<=[;{}\n])[ \t]+([\w\[\]>.*+-]+ [-+|&<>*]?= [^;{}\0]+|\w+\([^;{}\0]*\));", masked
    ):
        yield Mutant(file, found.start(1), found.end(1), "")


def files(area: str) -> list[str]:
    """Those of an area of pipeline/, or the templates and headers of firmware/kernels."""
    if area == TEMPLATES:
        found = [path for path in (ROOT / "firmware" / "kernels").rglob("*") if path.is_file()]
    else:
        start = ROOT / "pipeline" / area
        found = [start] if start.is_file() else list(start.rglob("*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


@cache
def of(file: str) -> list[Mutant]:
    source = _read(file)
    return list(in_python(file, source) if file.endswith(".py") else in_c(file, source))


def drawn(count: int, seed: int) -> list[Mutant]:
    """``count`` mutants, in templates and areas by turns; each of an area is as likely.

    Those whose names hash lowest: an edit of some lines leaves the others as they were drawn.
    """

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).digest()

    templates = round(count * IN_TEMPLATES)
    shares = {area: (count - templates) // len(AREAS) for area in AREAS}
    for area in AREAS[: count - templates - sum(shares.values())]:
        shares[area] += 1
    found = []
    for area, share in {**shares, TEMPLATES: templates}.items():
        every = {mutant.name: mutant for file in files(area) for mutant in of(file)}
        found += sorted(every.values(), key=rank)[:share]
    return found
