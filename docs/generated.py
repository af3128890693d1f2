"""Write the site's reference pages from the code: keys, metrics, boards.

A hook of MkDocs (mkdocs.yml): ``<!-- generated: NAME -->`` on a page becomes what NAME makes. Other
tables lie in their pages, written by ``make deps`` and ``python -m tests.importers.docs``.
"""

import dataclasses
import enum
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent.parent))

from pipeline import config, hardware, words
from pipeline.home import ROOT
from pipeline.runner import schema
from tests import boards

SMALL = (schema.Target, schema.Package, schema.Codegen, schema.Sliding, schema.Cache)
"""Groups of one class each, whose keys are explained there or in conf/config.yaml."""


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Format a table; ``head`` has its titles between bars."""
    cells = [head, *(" | ".join(each.replace("|", "\\|") for each in row) for row in rows)]
    cells.insert(1, " | ".join("---" for _ in head.split("|")))
    return "".join(f"| {line} |\n" for line in cells)


def documented(*classes: type) -> dict[str, str]:
    """Read what the docstrings of classes say of their attributes; the first one counts."""
    found: dict[str, str] = {}
    for base in reversed(classes):
        text = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")[2]
        for names, said in re.findall(r"(?m)^    (\w[\w, ]*): (.*(?:\n {5,}.*)*)", text):
            found |= {name: " ".join(said.split()) for name in names.split(", ")}
    return found


def options(group: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted((ROOT / "conf" / group).glob("*.yaml"))}


def about(path: Path) -> str:
    """Read the comment with which a YAML file begins, on one line."""
    lines = path.read_text().replace(" (docs/card-security.md)", "").splitlines()
    lines = [line for line in lines if not line.startswith("# @package")]
    said = lines[: next(n for n, line in enumerate(lines) if not line.startswith("#"))]
    return " ".join(line.lstrip("# ") for line in said)


def loaded(target: str) -> type:
    """Import the class that a YAML names, if it is one of the project's own."""
    module, _, name = config.own_target({"_target_": target}).rpartition(".")
    found: type = getattr(importlib.import_module(module), name)
    return found


def option(group: str, name: str) -> dict[str, Any]:
    """Read an option, with those of its group that it starts from."""
    content: dict[str, Any] = yaml.safe_load((ROOT / "conf" / group / f"{name}.yaml").read_text())
    starts = [each for each in content.pop("defaults", []) if each in options(group)]
    inherited = {key: value for each in starts for key, value in option(group, each).items()}
    return inherited | content


def commented(text: str) -> dict[str, str]:
    """Read the comment beside each key of a YAML text."""
    return dict(re.findall(r"(?m)^ *(\w+):[^#\n]*# *(.+)$", text))


def kind(annotation: Any) -> str:
    """Name a type as a person would."""
    if isinstance(annotation, enum.EnumType):
        return f"`{', '.join(annotation.__members__)}`"
    plain = isinstance(annotation, type) and not typing.get_args(annotation)
    text = annotation.__name__ if plain else str(annotation)
    text = re.sub(r"Literal\[(.*?)\]", lambda m: m[1].replace("'", "").replace('"', ""), text)
    return f"`{re.sub(r'(typing|collections.abc|pipeline[.a-z_]*)[.]', '', text)}`"


class Plain(yaml.SafeDumper):
    """Write what occurs twice twice, instead of an anchor."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def shown(value: Any) -> str:
    if value is dataclasses.MISSING:
        return ""
    value = getattr(value, "name", list(value) if isinstance(value, tuple) else value)
    text = yaml.dump(value, Dumper=Plain, default_flow_style=True, width=999).splitlines()[0]
    return f"`{text}`"


def keyed(
    prefix: str, cls: type, comments: dict[str, str], values: dict[str, Any]
) -> Iterable[list[str]]:
    """Yield key, type, default and meaning of each field of a dataclass, and of those in it."""
    said = comments | documented(*cls.__mro__)
    types = typing.get_type_hints(cls)
    for each in dataclasses.fields(cls):
        if each.name in ("name", "title") or not each.init:
            continue
        default = each.default
        if default is dataclasses.MISSING and each.default_factory is not dataclasses.MISSING:
            default = each.default_factory()
        inner = vars(hardware).get(str(each.type))
        if inner and dataclasses.is_dataclass(inner):
            yield from keyed(f"{prefix}.{each.name}", inner, {}, {})
            continue
        default = values.get(each.name, default)
        meaning = said.get(each.name, "").rstrip(".").replace("``", "`")
        yield [f"`{prefix}.{each.name}`", kind(types[each.name]), shown(default), meaning]


HEAD = "key | type | default | meaning"


def comments(group: str, names: Iterable[str]) -> dict[str, str]:
    """Collect the comments beside keys in some options of a group."""
    paths = options(group)
    return {k: v for n in names for k, v in commented(paths[n].read_text()).items()}


def common(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Select the values that all ``nodes`` have."""
    first, *others = nodes
    return {k: v for k, v in first.items() if all(each.get(k) == v for each in others)}


def called(cls: type) -> str:
    """Say in a sentence what a class is."""
    texts = (str(each.__doc__) for each in (cls, sys.modules[cls.__module__]))
    said = [" ".join(text.partition("\n\n")[0].split()) for text in texts]
    return said[said[0].startswith("For any")]


def of_group(group: str) -> str:
    """Return a group's options, and the keys of those that have the same."""
    listed = []
    classes: dict[type, dict[str, dict[str, Any]]] = {}
    for name, path in options(group).items():
        node = option(group, name)
        cls = loaded(node["_target_"])
        classes.setdefault(cls, {})[name] = node
        listed.append((f"`{group}={name}`", about(path) or called(cls)))
    tables: dict[str, list[str]] = {}
    for cls, named in classes.items():
        values = common(list(named.values()))
        rows = table(HEAD, keyed(group, cls, comments(group, named), values))
        tables.setdefault(rows, []).extend(f"`{name}`" for name in named)
    text = f"\n## {group}\n\n" + table("option | what it is", listed)
    for rows, names in tables.items():
        if rows.count("\n") > 2:
            text += f"\nKeys of {', '.join(names)}:\n\n{rows}"
    return text


def chosen(group: str) -> str:
    """Return the table of a group's options."""
    rows = ([f"`{group}={name}`", about(path)] for name, path in options(group).items())
    return table("option | what it is", rows) + "\n"


def keys() -> str:
    """Return a section for each group of the config."""
    schema.register()
    text = "".join(map(of_group, schema.CODE_GROUPS))
    text += f"\n## hardware\n\n{table(HEAD, keyed('hardware', hardware.Hardware, {}, {}))}"
    general = commented((ROOT / "conf" / "config.yaml").read_text())
    for cls in SMALL:
        group = cls.__name__.lower()
        said = general | comments(group, options(group))
        listed = chosen(group) if options(group) else ""
        text += f"\n## {group}\n\n{listed}{table(HEAD, keyed(group, cls, said, {}))}"
    return f"{text}\n## security\n\n{chosen('security')}"


def metrics() -> str:
    """Return the table of metrics."""
    rows = ([f"`{name}`", *said] for name, said in words.METRICS.items())
    return table("metric | what it is called | what it counts", rows)


def described() -> str:
    """Return the table of boards."""
    rows = []
    for name in boards.NAMES:
        board = boards.load_hardware(name)
        sizes = (board.sram_bytes, board.flash_bytes)
        said = ["–" if name == "host" else f"{size:,}" for size in sizes]
        rows.append([f"`{name}`", board.title, *said, board.weights_in, board.simulator])
    return table("`hardware` | board | SRAM, B | flash, B | weights in | simulator", rows)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put in what the page asks for."""
    makers = {"keys": keys, "metrics": metrics, "boards": described}
    return re.sub(r"<!-- generated: (\w+) -->", lambda m: makers[m[1]](), markdown)
