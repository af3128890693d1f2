"""The same C by GCC and clang, at any optimization, whole programs optimized or not, for each core:
without a warning, and with the same outputs wherever it can be run. Its header is C++, too."""

from __future__ import annotations

import shutil
import subprocess
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, cortex_m, device, toolchain, tools
from pipeline.targets.avr_stack import Bound
from pipeline.targets.harness import harness_sources
from tests.codegen import matrix
from tests.codegen.int8.test_avr import network as bytes_network
from tests.codegen.matrix import CLANG, WARNINGS, Case
from tests.codegen.support import frames, write
from tests.comparing import equal
from tests.strategies.chains import Chain
from tests.tiers import quick

CASES = list(matrix.cases())
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


def planned(case: Case, graph: Graph, hardware: Hardware) -> Plan:
    nibbles = case.network != "bytes" and case.core == "avr"
    return (Herringbone("slots") if nibbles else Ordinary()).plan(graph, hardware)


def test_every_pair_is_there_once_at_least() -> None:
    for (one, values), (other, others) in combinations(matrix.AXES.items(), 2):
        for pair in product(values, others):
            assert any((getattr(c, one), getattr(c, other)) == pair for c in CASES)
    assert len(CASES) < 40 and len(TODAY) == 2 and all(case.links for case in CASES)


@pytest.mark.parametrize("case", quick(TODAY, CASES, ci=4), ids=str)
def test_same_outputs_whatever_compiles_it(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (
        case.level == "-O0"
    ):  # a frame pointer, of which the bound of a Cortex-M's stack knows nothing
        monkeypatch.setattr(cortex_m.thumb_stack, "bound", lambda *_: Bound(0, ()))
    if case.compiler == "clang" and not CLANG:
        pytest.skip("clang is not installed, or its linker: sudo apt-get install clang-14 lld-14")
    found = matrix.hardware(case)
    if not shutil.which(found.toolchain.compiler):
        pytest.skip(f"{found.toolchain.compiler} is not installed: make setup")
    graph = graph_of(case)
    files = generate(graph, planned(case, graph, found), found, {})
    write(tmp_path / "generated", {**files, **harness_sources(found)})
    found = matrix.with_compiler(tmp_path, case, found)
    size = builds.build(tmp_path / "generated", tmp_path / "build", found)
    if found.core != "host":
        toolchain.build_host(tmp_path / "generated", tmp_path / "build" / "host")
    given = frames(graph, 3)
    dtype = np.int8 if graph.tensors[graph.input].dtype.signed else np.uint8
    sent = np.ascontiguousarray(given.astype(dtype)).view(np.uint8)
    target = {"name": "simulate", "images": 3, "port": "", "dry_run": False}
    report, arrays = device.measure(target, tmp_path / "build", vars(size), found, sent)
    kind = str(graph.tensors[graph.output].dtype)
    expected = graph.outputs(given).astype(kind).reshape(3, -1)
    assert report["images"] == 3
    for ran in ("device_outputs", "host_outputs"):
        equal(arrays[ran].view(kind).reshape(3, -1), expected, ran=ran)


CXX = {"g++": "gcc", "avr-g++": "avr", "arm-none-eabi-g++": "arm", f"{CLANG}": "clang"}
PROGRAM = """
#include "model.h"
#include "model.h" // the same one again
#include <cstdio>
static const char *const labels[] = {NN_LABELS};
static const int shape[] = {NN_INPUT_SHAPE};
int main() {
    static_assert(sizeof(nn_output_t) == 2, "what it says");
    uint8_t image[NN_INPUT_BYTES];
    if (fread(image, 1, sizeof image, stdin) != sizeof image || shape[0] != 12) return 1;
    nn_init();
    nn_feed(image, sizeof image);
    if (nn_invoke() != NN_OK) return 2;
    const double real = nn_dequantize(nn_output()[nn_best()]);
    printf("%s %g %d", labels[nn_best()], real, nn_quantize(1e9f));
    return 0;
}
"""


@pytest.fixture(scope="module")
def nibbles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Path]:
    case = Case("avr", "gcc", "gnu99", "-O2", "", "nibbles in flash")
    graph, found = graph_of(case), matrix.hardware(case)
    made = generate(graph, planned(case, graph, found), found, {"graph": graph.hash})
    folder = write(tmp_path_factory.mktemp("nibbles"), made)
    (folder / "main.cpp").write_text(PROGRAM)
    return graph, folder


@pytest.mark.parametrize("standard", ["c++11", "c++14", "gnu++17", "c++20"])
@pytest.mark.parametrize("compiler", CXX.values())
def test_header_is_cxx(compiler: str, standard: str, nibbles: tuple[Graph, Path]) -> None:
    """avr-gcc 5.4 knows C++14 and no later one."""
    name = next(command for command, kind in CXX.items() if kind == compiler)
    if not shutil.which(name):
        pytest.skip(f"{name or 'clang'} is not installed")
    if (compiler, standard) in (("avr", "gnu++17"), ("avr", "c++20")):
        pytest.skip("avr-g++ does not know it")
    part = {"avr": ("-mmcu=atmega328p",), "arm": ("-mcpu=cortex-m4",)}.get(compiler, ())
    flags = (*part, f"-std={standard}", *WARNINGS, "-Wpedantic", "-Wconversion", "-fsyntax-only")
    text = '#include "model.h"\nint best() { return nn_best() + nn_quantize(0.5f); }\n'
    command = [name, *flags, "-I.", "-x", "c++", "-"]
    done = subprocess.run(command, cwd=nibbles[1], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_cxx_program_with_the_network_in_c(nibbles: tuple[Graph, Path]) -> None:
    graph, folder = nibbles
    if not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    tools.run(["cc", "-O2", "-c", "model.c"], folder, "C")
    tools.run(["g++", "-std=c++11", *WARNINGS, "main.cpp", "model.o", "-o", "both"], folder, "C++")
    image = frames(graph, 3)[2:]
    sent = image.astype(np.uint8).tobytes()
    said = subprocess.run([folder / "both"], input=sent, capture_output=True, check=True).stdout
    output = graph.outputs(image).reshape(-1)
    assert said.decode() == f"{output.argmax()} {output.max():g} 255"
