"""Jinja2 over ``firmware/kernels`` and ``packages``: templates, and filters for C one can read."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from pipeline.codegen.c.expressions import both, centred, minus, offset, product, times, total

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
KERNELS = FIRMWARE / "kernels"
WIDTH = 100
LONGEST_COMMENT = 200

CONSTANT = re.compile(r"^ *const \w+ \*?(?:const )?(\w+) = [^,;]*;.*\n", re.MULTILINE)
"""A line that declares one."""
BRACE = re.compile("[{}]")


def render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def static_source(name: str) -> str:
    """Return a C file that is copied as it is."""
    return (KERNELS / name).read_text()


def rows(values: Iterable[int | str], indent: int = 4) -> str:
    """Initialisers, comma separated, in lines of at most ``WIDTH`` characters."""
    lines, line = [], ""
    for text in (f"{value}," for value in values):
        if line and indent + len(line) + 1 + len(text) > WIDTH:
            lines.append(line)
            line = text
        else:
            line = f"{line} {text}" if line else text
    return "\n".join(" " * indent + row for row in (*lines, line))


def lines(texts: Iterable[str], indent: str) -> str:
    """Lines of C, each behind ``indent``."""
    return "".join(f"{indent}{text}\n" for text in texts)


def table(
    values: Sequence[int | str], kind: str, name: str, about: str = "", placed: str = "NN_FLASH"
) -> str:
    """Return a constant array of elements of ``kind``; ``about``: a comment where it begins."""
    said = f" /* {about} */" if about else ""
    return f"static const {kind} {name}[{len(values)}] {placed} = {{{said}\n{rows(values)}\n}};"


def without_idle(code: str) -> str:
    """C without the constants that nothing in their block reads, such as the column where images
    have but one."""
    for found in reversed(list(CONSTANT.finditer(code))):
        depth, stop = 0, len(code)
        for brace in BRACE.finditer(code, found.end()):
            depth += 1 if brace[0] == "{" else -1
            if depth < 0:
                stop = brace.end()
                break
        if not re.search(rf"\b{found[1]}\b", code[found.end() : stop]):
            code = code[: found.start()] + code[found.end() :]
    return code


def number(value: float) -> str:
    """Write it for a macro: whole ones without a point, negative ones in parentheses."""
    text = str(int(value) if value == int(value) else float(value))
    return f"({text})" if value < 0 else text


def asm(block: str) -> str:
    """Assembly as the strings of an ``__asm__``: one a line; what follows ``;`` is a comment."""
    lines = []
    for raw in block.splitlines():
        code, _, remark = raw.partition(";")
        comment = f" /* {remark.strip()} */" if remark.strip() else ""
        if code.strip():
            label = code.strip().endswith(":")
            lines.append(f'        "{"" if label else "    "}{code.strip()}\\n"{comment}')
        elif comment:
            lines.append(f"       {comment}")
    return "\n".join(lines)


def comment(text: str) -> str:
    """``text`` as it may stand within a C comment: one line of printable ASCII that neither ends
    it, nor begins another, nor continues a line. The names of boards, graphs, operators and tensors
    come from files, and other people's may name things ``*/`` or worse: nothing else puts one into
    C, but ``Names``."""
    plain = "".join(map(_plain, text)).replace("\\", "/")
    if len(plain) > LONGEST_COMMENT:
        plain = f"{plain[: LONGEST_COMMENT - 3]}..."
    return re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)|(?<=\?)(?=\?)", " ", plain)


def _plain(character: str) -> str:
    if " " <= character <= "~":
        return character
    return " " if character.isspace() else f"<U+{ord(character):04X}>"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader((KERNELS, FIRMWARE / "packages")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    written = (minus, offset, product, times, total, both, centred)
    environment.globals |= {each.__name__: each for each in written}
    filters = (rows, table, lines, asm, comment, number)
    environment.filters |= {each.__name__: each for each in filters}
    return environment
