"""The same C by GCC and clang, at any optimization, whole programs optimized or not, for each core:
every pair of core, compiler, standard, optimization and network at least once, without a warning,
and with the same outputs wherever it can be run. Its header is C++, too. Programs that take the
first byte of a number for its lowest say so to a compiler for cores that have it the other way
around; all others are free of that."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.swap import Swap
from pipeline.targets import builds, cortex_m, device, toolchain, tools
from pipeline.targets.avr_stack import Bound
from pipeline.targets.harness import harness_sources
from tests.codegen.avr.test_layers import portable_network as bytes_network
from tests.codegen.card.support import board, elements, planned, sources
from tests.codegen.int8.support import apart, host
from tests.codegen.int8.test_operators import CASES as OPERATORS
from tests.codegen.support import frames, write
from tests.codegen.test_golden import whole
from tests.comparing import equal
from tests.programs import program, ran, said
from tests.strategies.chains import Chain
from tests.strategies.swap.nets import random_chain
from tests.targets.conftest import load_hardware
from tests.targets.cortex_m import board_named
from tests.tiers import quick

WARNINGS = ("-Wall", "-Wextra", "-Werror")
AXES = {
    "core": ("avr", "cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33", "x86-64"),
    "compiler": ("gcc", "clang"),
    "standard": ("gnu99", "gnu11"),
    "level": ("-O0", "-O1", "-O2", "-O3", "-Os"),
    "lto": ("", "-flto"),
    "network": ("nibbles in SRAM", "nibbles in flash", "bytes"),
}
BOARDS = {
    "cortex-m0plus": "nucleo_g0b1re",
    "cortex-m4": "nucleo_l4r5zi",
    "cortex-m7": "nucleo_f767zi",
    "cortex-m33": "nucleo_u575zi",
    "x86-64": "host",
}
WHOLE = ("avr", "x86-64")
"""Cores whose harness is optimized with the network; a Cortex-M's start-up code names variables."""
LLD = any(map(shutil.which, ("ld.lld", "ld.lld-14")))
CLANG = next((name for name in ("clang", "clang-14") if LLD and shutil.which(name)), "")
"""Its linker goes with it: GNU's knows nothing of what it leaves for link-time optimization."""
HEADERS = {"avr": "/usr/lib/avr/include", "arm": "/usr/lib/arm-none-eabi/include"}
"""Headers of the C libraries, as Debian has them: clang does not look there by itself."""


@dataclass(frozen=True)
class Case:
    core: str
    compiler: str
    standard: str
    level: str
    lto: str
    network: str

    @property
    def links(self) -> bool:
        """The linkers for boards know nothing of what clang leaves for link-time optimization."""
        return not (self.compiler == "clang" and self.lto) or self.core == "x86-64"

    def __str__(self) -> str:
        return " ".join(value for value in astuple(self) if value)


def drawn() -> Iterator[Case]:
    """Take the case with most new pairs, and of several the one with the least used values."""
    every = [case for values in product(*AXES.values()) if (case := Case(*values)).links]
    left, used = {pair for case in every for pair in _pairs(case)}, Counter[str]()
    while left:
        best = max(every, key=lambda c: (len(left & _pairs(c)), -sum(used[v] for v in astuple(c))))
        left -= _pairs(best)
        used.update(astuple(best))
        yield best


def _pairs(case: Case) -> frozenset[tuple[str, str, str, str]]:
    values = [(name, getattr(case, name)) for name in AXES]
    return frozenset((*one, *other) for one, other in combinations(values, 2))


def board_of(case: Case) -> Hardware:
    """The board of ``case``, with its flags."""
    weights_in = "sram" if case.network == "nibbles in SRAM" else "flash"
    if case.core == "avr":
        streams = case.network != "bytes"
        found = load_hardware(weights_in=weights_in, streams_input=streams)
    else:
        found = board_named(BOARDS[case.core], weights_in=weights_in)
    kept = [f for f in found.toolchain.flags if not f.startswith(("-std=", "-O", "-W", "--"))]
    linker = [f for f in found.toolchain.flags if f.startswith("-Wl,")]
    flags = (*kept, *linker, "-std=gnu11", "-O2", *WARNINGS)
    return replace(found, toolchain=replace(found.toolchain, flags=flags))


def with_compiler(folder: Path, case: Case, found: Hardware) -> Hardware:
    """``found`` with the compiler of ``case``; harnesses of boards and linking are left to GCC."""
    gcc, core = shutil.which(found.toolchain.compiler), found.core
    target = {"avr": "avr", "cortex_m": "arm-none-eabi"}.get(core)
    there = f"--target={target} -isystem{HEADERS[target[:3]]}" if target else "-fuse-ld=lld"
    clang = f"{CLANG} {there} -Wno-unused-command-line-argument"
    own = f"-std={case.standard} {case.level} {case.lto}"
    chosen = clang if case.compiler == "clang" else gcc
    network = f'case " $* " in *" -c model.c "*) exec {chosen} "$@" {own};; esac'
    others = f'exec {gcc if target else chosen} {case.lto if case.core in WHOLE else ""} "$@"'
    script = program(folder, "compiler", f"{network}\n{others}")
    return replace(found, toolchain=replace(found.toolchain, compiler=str(script)))


CASES = list(drawn())
TODAY = [
    case
    for case in CASES
    if case.compiler == "gcc" and case.lto and case.core in ("avr", "cortex-m4")
][:2]
"""Those that ``make test`` tries, too."""


def graph_of(case: Case) -> Graph:
    if case.network == "bytes":
        return bytes_network()
    chain = Chain((12, 12, 1), "uint8").average("pooled").conv("conv", 3).conv("wide", 11)
    return chain.maximum("pool").dense("logits", 2).graph()


def plan_of(case: Case, graph: Graph, hardware: Hardware) -> Plan:
    nibbles = case.network != "bytes" and case.core == "avr"
    return (Herringbone("slots") if nibbles else Ordinary()).plan(graph, hardware)


@pytest.mark.parametrize("case", quick(TODAY, CASES, ci=4), ids=str)
def test_same_outputs_whatever_compiles_it(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case.level == "-O0":  # its frame pointer is nothing that a Cortex-M's bound knows
        monkeypatch.setattr(cortex_m.thumb_stack, "bound", lambda *_: Bound(0, ()))
    if case.compiler == "clang" and not CLANG:
        pytest.skip("clang is not installed, or its linker: sudo apt-get install clang-14 lld-14")
    found = board_of(case)
    if not shutil.which(found.toolchain.compiler):
        pytest.skip(f"{found.toolchain.compiler} is not installed: make setup")
    graph = graph_of(case)
    files = generate(graph, plan_of(case, graph, found), found, {})
    write(tmp_path / "generated", {**files, **harness_sources(found)})
    found = with_compiler(tmp_path, case, found)
    size = builds.build(tmp_path / "generated", tmp_path / "build", found)
    if found.core != "host":
        toolchain.build_host(tmp_path / "generated", tmp_path / "build" / "host")
    given = frames(graph, 3)
    dtype = np.int8 if graph.tensors[graph.input].dtype.signed else np.uint8
    sent = np.ascontiguousarray(given.astype(dtype)).view(np.uint8)
    target = {"name": "simulate", "images": 3, "port": "", "dry_run": False}
    report, arrays = device.measure(target, tmp_path / "build", vars(size), found, sent)
    kind = str(graph.tensors[graph.output].dtype)
    expected = graph.evaluate(given).astype(kind).reshape(3, -1)
    assert report["images"] == 3
    for place in ("device_outputs", "host_outputs"):
        equal(arrays[place].view(kind).reshape(3, -1), expected, ran=place)


CXX = {"g++": "gcc", "avr-g++": "avr", "arm-none-eabi-g++": "arm", f"{CLANG}": "clang"}
PROGRAM = Path(__file__).with_name("program.cc").read_text()


@pytest.fixture(scope="module")
def nibbles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Path]:
    case = Case("avr", "gcc", "gnu99", "-O2", "", "nibbles in flash")
    graph, found = graph_of(case), board_of(case)
    made = generate(graph, plan_of(case, graph, found), found, {"graph": graph.hash})
    folder = write(tmp_path_factory.mktemp("nibbles"), made)
    (folder / "main.cpp").write_text(PROGRAM)
    return graph, folder


@pytest.mark.parametrize("compiler", CXX.values())
def test_header_is_cxx(compiler: str, nibbles: tuple[Graph, Path]) -> None:
    """avr-gcc 5.4 knows C++14 and no later one."""
    name = next(command for command, kind in CXX.items() if kind == compiler)
    if not shutil.which(name):
        pytest.skip(f"{name or 'clang'} is not installed")
    part = {"avr": ("-mmcu=atmega328p",), "arm": ("-mcpu=cortex-m4",)}.get(compiler, ())
    flags = (*part, *WARNINGS, "-Wpedantic", "-Wconversion", "-fsyntax-only", "-I.", "-x", "c++")
    text = '#include "model.h"\nint best() { return nn_best() + nn_quantize(0.5f); }\n'
    for standard in ("c++11", "c++14", *(("gnu++17", "c++20") if compiler != "avr" else ())):
        said([name, f"-std={standard}", *flags, "-"], nibbles[1], input=text)


def test_cxx_program_with_the_network_in_c(nibbles: tuple[Graph, Path]) -> None:
    graph, folder = nibbles
    if not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    tools.run(["cc", "-O2", "-c", "model.c"], folder, "C")
    tools.run(["g++", "-std=c++11", *WARNINGS, "main.cpp", "model.o", "-o", "both"], folder, "C++")
    image = frames(graph, 3)[2:]
    sent = image.astype(np.uint8).tobytes()
    said = subprocess.run([folder / "both"], input=sent, capture_output=True, check=True).stdout
    output = graph.evaluate(image).reshape(-1)
    assert said.decode() == f"{output.argmax()} {output.max():g} 255"


BIG = ("-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__")
"""As a compiler for such a core has it."""
Files = dict[str, str]


def bytes_alone(case: str) -> Files:
    graph = OPERATORS[case]().graph()
    return generate(graph, apart(graph), host(), {}) | harness_sources(board_named("host"))


def for_cortex_m() -> Files:
    graph, hardware = random_chain(1), board_named("nucleo_f446re")
    return generate(graph, Ordinary().plan(graph, hardware), hardware, {})


def card(security: str) -> Files:
    graph = random_chain(1)
    if security == "unchecked":
        return sources(graph, planned(graph, 4000))
    hardware = board(security, elements(graph))  # type: ignore[arg-type]
    return generate(graph, Swap().plan(graph, hardware), hardware, {})


@pytest.mark.parametrize(
    ("made", "refuses"),
    quick(4, [
        (lambda: bytes_alone("dense to 32 bits"), {"main.c"}),
        (lambda: bytes_alone("mean pool padded"), set()),
        (for_cortex_m, {"model.c"}),
        (lambda: card("encrypted"), {"chacha20_poly1305.c"}),
        (lambda: whole("int4/golden/slots_stream"), {"model.c"}),
        (lambda: whole("int4/golden/slots_sram"), set()),
        (lambda: whole("int4/golden/bytes"), set()),
        (lambda: card("unchecked"), set()),
        (lambda: card("none"), {"model.c"}),
    ]),
)  # fmt: skip
def test_refuses_a_core_with_the_other_order_where_it_matters(
    tmp_path: Path, made: Callable[[], Files], refuses: set[str]
) -> None:
    files = made()
    write(tmp_path, files)

    def compiles(source: str, *options: str) -> bool:
        command = ["cc", "-std=gnu99", "-w", *options, "-fsyntax-only", source]
        return ran(command, tmp_path).returncode == 0

    found = {name for name in files if name.endswith(".c")}
    assert all(map(compiles, found))
    assert refuses <= {source for source in found if not compiles(source, *BIG)}
    assert refuses or all(compiles(source, *BIG) for source in found)
