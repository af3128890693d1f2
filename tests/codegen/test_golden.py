"""Generated C of small configurations is what is kept of it; and names that would end a comment,
begin a directive or clash: what the commands make of them compiles with the boards' own options,
``-Werror`` among them, and computes the same.

``python -m tests.codegen.test_golden`` writes the golden files anew, after a change that is meant.
"""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pipeline import verdict
from pipeline.artifacts import write_json, write_npz, write_text
from pipeline.codegen import generate
from pipeline.codegen.constants import Names
from pipeline.codegen.render import comment
from pipeline.graph.graph import Graph
from pipeline.plan.cost import cost
from pipeline.report import page
from pipeline.runner.job import resolved
from pipeline.runner.schema import composed
from pipeline.runner.screen import Screen, fail
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from stages import build, schedule
from stages import generate as generate_stage
from tests.codegen.cortex_m.support import core
from tests.codegen.int8.support import PLANS, network
from tests.codegen.support import checked, host, uno
from tests.strategies.chains import Chain
from tests.tiers import quick

FOLDER = Path(__file__).parent
PROVENANCE = {"graph": "0123456789abcdef", "plan": "fedcba9876543210"}


def _chain() -> Chain:
    return Chain((12, 12, 1), "uint8").average("pooled").conv("conv", 3).maximum("pool")


INT4: dict[str, tuple[Chain, Strategy, str]] = {
    "slots_sram": (_chain().dense("logits", 2), Herringbone("slots"), "sram"),
    "slots_stream": (_chain().dense("logits", 2), Herringbone("slots"), "stream"),
    "contiguous_flash": (_chain().dense("logits", 2), Herringbone("contiguous"), "flash"),
    "bytes": (
        Chain((4, 4, 2), "int8").conv("conv", 2, padding=(1, 1, 1, 1), dtype="int8"),
        Herringbone("slots"),
        "sram",
    ),
}
NAMES = (
    *(f"int4/golden/{name}" for name in INT4),
    *("int8/golden/ordinary", "int8/golden/channel_loop", "cortex_m/golden"),
)
"""Their folders."""


def whole(name: str) -> dict[str, str]:
    """Generate all files of ``name``."""
    case = name.rpartition("/")[2]
    if case in INT4:
        chain, strategy, weights_in = INT4[case]
        graph, hardware = chain.graph(), uno(weights_in)
        plan = strategy.plan(graph, hardware)
    elif case == "channel_loop":
        (graph, plan), hardware = PLANS["channel loop"](), host()
    else:
        graph, hardware = network(), core() if name.startswith("cortex_m") else host()
        plan = Ordinary().plan(graph, hardware)
    return generate(graph, plan, hardware, PROVENANCE)


def generated(name: str) -> dict[str, str]:
    """Generate what is kept: what is not the same in every program."""
    shared = ("nn_",) if name.startswith("int4") else ("nn_", "steps")
    return {file: text for file, text in whole(name).items() if not file.startswith(shared)}


@pytest.mark.parametrize("name", NAMES)
def test_golden_files(name: str) -> None:
    for file, content in generated(name).items():
        assert content == (FOLDER / name / file).read_text(), (
            f"{file} of {name} changed; if that is meant: python -m tests.codegen.test_golden"
        )


ODD_NAMES = (
    "*/ int evil = 1; /*", "/**/*/*/", "a\nb", "a\r\n#error b", "back\\", "??/", "*??/\n/", 'a"b',
    "\N{MICRO SIGN}\N{RIGHT-TO-LEFT OVERRIDE}\N{SNOWMAN}", "x" * 300, "x" * 301, "int", "while",
    "a b", "a_b", "a/b", "A_B", "init", "arena", "feed", "input", "output", "invoke", "fed", "line",
    "conv", "conv_line", "conv_pixel", "conv_2", "conv__2", "conv_", "%s%n", "{{ 7 * 7 }}",
    "</script><script>alert(1)</script>", "<!--<script>", "<img src=x onerror=alert(1)>", "$x$",
    "$", "\1", "file", "allow_pickle", "&lt;", "' onload='alert(1)", "", " ", "1", "_",
)  # fmt: skip
TITLE = 'Evil */ #error "no" \\\n??/ <script>alert(1)</script> [/bold] \x1b[31m'
BOARDS = {"avr": "arduino", "cortex_m": "nucleo_l4r5zi", "host": "host"}


def graph(signed: bool) -> Graph:
    """A chain whose operators and tensors have these names."""
    wide = "int8" if signed else "uint4"
    chain = Chain((3, 3, 1), "int8" if signed else "uint8")
    if not signed:
        chain = chain.average("first", shift=4)
    for name in ODD_NAMES:
        chain = chain.conv(name or "\t", 1, 1, dtype=wide)
    made = chain.dense("</script> */", 2).graph()
    return Graph(
        "*/ evil \\\n", made.tensors, made.operators, made.constants, made.inputs, made.outputs
    )


class Tags(HTMLParser):
    """The tags and attributes of a page, and what would be fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


@pytest.mark.parametrize("core", quick(0, BOARDS, ci=2))
def test_whole_commands(tmp_path: Path, core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages schedule, generate and build, as a run calls them."""
    strategy = "herringbone" if core == "avr" else "ordinary"
    params = resolved(composed(f"hardware={BOARDS[core]}", f"strategy={strategy}"))
    params["hardware"]["title"] = TITLE
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    graph(signed=core != "avr").save(tmp_path)
    (tmp_path / "data").mkdir()
    write_npz(tmp_path / "data" / "dataset.npz", {})
    write_json(tmp_path / "passes.json", [])
    monkeypatch.chdir(tmp_path)
    for stage in (schedule, generate_stage, build):
        stage.main()
    assert (tmp_path / "size.json").is_file()
    for file in ("model.h", "model.c"):
        text = (tmp_path / "generated" / file).read_text()
        assert text.isascii() and not re.search(r"\b49 ", text)
        outside = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        assert "evil" not in outside.replace("_evil", "")
        own = ('"NN_MODEL_H', '"arena and weights do', '"the arena does', '"numbers come with')
        assert all(said.startswith(own) for said in re.findall("#error (.*)", outside))
    found = Tags((tmp_path / "plan.html").read_text())
    assert found.tags.count("script") == 2 and "img" not in found.tags
    assert not {name for name in found.attributes if name.startswith("on")}


@pytest.mark.ci
def test_what_is_computed_is_the_same(tmp_path: Path) -> None:
    """Two kernels or two tables of one name would be one."""
    checked(tmp_path / "n", small := graph(False), Herringbone().plan(small, uno()), uno())
    checked(tmp_path / "a", large := graph(True), Ordinary().plan(large, host()))


def report(folder: Path, network: Graph, origin: dict[str, str]) -> str:
    """A report's page."""
    plan = Herringbone("slots").plan(network, uno())
    of_layer = {"macs": 1, "cycles": 2, "cycles_per_mac": 2.0}
    layers = [{"layer": op.name, **of_layer} for op in network.operators]
    metrics = {"status": "ok", "pmu_bytes": 1, "cycles": 9, "layers": layers}
    costs, found = cost(plan, network, uno()), verdict.check(plan, network, uno())
    page.write(folder / "report.html", network, plan, uno(), costs, found, metrics, origin)
    return (folder / "report.html").read_text()


@pytest.mark.ci
def test_the_report(tmp_path: Path) -> None:
    """It has the tags and attributes of one with ordinary names."""
    text = report(tmp_path, graph(signed=False), {"hardware": TITLE, "model": TITLE, "</td>": "x"})
    chain = Chain((3, 3, 1), "uint8").average("p", shift=4)
    for number in range(len(ODD_NAMES)):
        chain = chain.conv(f"c.{number}", 1, 1)
    plain = report(tmp_path, chain.dense("d", 2).graph(), {"hardware": "a", "model": "b"})
    for kind in ("tags", "attributes"):
        assert set(vars(Tags(text))[kind]) == set(vars(Tags(plain))[kind])
    assert Tags(text).tags.count("script") == 2
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    config = {"hardware": {"title": TITLE}, "model": {"name": "[red]"}, "strategy": {"name": "x"}}
    Screen(as_json=False).header(config, Path("there"), ["seed=1"])
    fail(TITLE)
    said = capsys.readouterr()
    assert "[red] on Evil" in said.out and "[/bold] ?[31m" in said.out
    assert "\x1b" not in said.out + said.err and said.err.count("\n") == 1


@pytest.mark.ci
@given(st.text())
def test_no_comment_ends_early(text: str) -> None:
    made = comment(text)
    assert made.isascii() and made.isprintable() and len(made) < 300
    for sequence in ("*/", "/*", "\\", "??"):
        assert sequence not in made


@given(st.lists(st.text() | st.sampled_from(ODD_NAMES), unique=True, max_size=20))
def test_identifiers_are_apart(names: list[str]) -> None:
    given_names = Names()
    made = [given_names(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(re.fullmatch(r"nn(_[a-z0-9]+)*", word) and len(word) < 60 for word in made)


def test_ordinary_names_stay() -> None:
    for name in ("conv1", "conv_2", "block_1_expand", "logits"):
        assert Names()(name) == f"nn_{name}"
    title = "NUCLEO-L4R5ZI (STM32L4R5ZI, Cortex-M4F, 120 MHz)"
    assert comment(title) == title
    assert comment("a*/b") == "a* /b" and comment("für") == "f<U+00FC>r"


if __name__ == "__main__":
    for name in NAMES:
        for file, content in generated(name).items():
            write_text(FOLDER / name / file, content)
