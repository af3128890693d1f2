"""``python -m tests.support``: what works with what, in docs/support.md, found out by trying.

Each strategy plans a small network of each kind for each board; the plan is verified, and C is
generated. What refuses says why in the table's own words: its error message.
"""

import re
from textwrap import fill

import yaml

from pipeline import config
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from tests import boards
from tests.strategies.chains import mnist
from tests.strategies.nets import Net

PAGE = ROOT / "docs" / "support.md"
HEAD = """\
# What works with what

Each strategy plans a small network of each kind for each board; then the plan is verified and C
is generated. *Yes*: all of this works. *No*: it is refused, with the numbered message below the
table. `python -m tests.support` writes this page. Whether your network fits a board is another
question: `python run.py until=schedule …` answers it.

| strategy | boards | int4 chain | int8 chain | int8 with branches |
| --- | --- | --- | --- | --- |
"""


def chain() -> Graph:
    net = Net((8, 8, 2))
    net.dense(net.maximum(net.conv(net.conv("input", 4, 3), 6, 3)), 5)
    return net.graph()


def branches() -> Graph:
    net = Net((8, 8, 4))
    return net.head(net.concat(net.inverted("input", 4, 2, 3, 1, squeeze=2), "input"), 5)


KINDS = (mnist().graph(), chain(), branches())
"""The paper's 4-bit network; convolutions, pooling and dense; and with depthwise convolutions,
a residual sum, squeeze-excitation, a concatenation and softmax."""


def attempt(strategy: dict[str, object], hardware: Hardware, graph: Graph) -> str:
    """Why it does not work; "" when it does."""
    try:
        plan = config.instantiate(strategy).plan(graph, hardware)
        verify(roomy(plan), graph)
        generate(graph, plan, hardware, {})
    except ThimbleError as error:
        return str(error)
    return ""


def answers(strategy: dict[str, object], name: str) -> list[str]:
    """Say what a board makes of each kind of network, without the board's name."""
    hardware = boards.load_hardware(name)
    said = [attempt(strategy, hardware, graph) for graph in KINDS]
    said = [answer.replace(f" ({hardware.name})", "") for answer in said]
    return [re.sub(rf"(?<!=)\b{hardware.name}\b", "the board", answer) for answer in said]


def page() -> str:
    """The table; options of the same class and keys share a row, and boards that answer alike."""
    notes: dict[str, int] = {}
    rows: dict[tuple[str, ...], list[str]] = {}
    for called, strategy in strategies().items():
        for name in boards.NAMES:
            said = answers(strategy, name)
            cells = [f"no [{notes.setdefault(s, len(notes) + 1)}]" if s else "yes" for s in said]
            rows.setdefault((called, *cells), []).append(name)
    lines = [
        f"| {called} | {', '.join(names)} | {' | '.join(cells)} |\n"
        for (called, *cells), names in rows.items()
    ]
    listed = [fill(f"{n}. {note}", 110, subsequent_indent="   ") for note, n in notes.items()]
    return f"{HEAD}{''.join(lines)}\n" + "".join(f"{note}\n" for note in listed)


def strategies() -> dict[str, dict[str, object]]:
    """Each strategy by its option's name, or names: ``naive, ordinary``."""
    found: dict[str, tuple[list[str], dict[str, object]]] = {}
    for path in sorted((ROOT / "conf" / "strategy").glob("*.yaml")):
        option = yaml.safe_load(path.read_text())
        same = str({**option, "name": ""})
        found.setdefault(same, ([], option))[0].append(path.stem)
    return {", ".join(called): option for called, option in found.values()}


if __name__ == "__main__":
    PAGE.write_text(page())
