"""The prefix of all names in generated C, and programs with several networks."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline import artifacts, prefix
from pipeline.codegen import generate
from pipeline.codegen.options import Options
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.prefix import Prefix
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, simavr, tools
from pipeline.targets.harness import harness_sources
from pipeline.targets.predictor import Predictor
from pipeline.targets.toolchain import Size
from tests.codegen.int8.support import host, network
from tests.codegen.support import WARNINGS, frames, uno, write
from tests.comparing import equal
from tests.programs import ran, said
from tests.strategies.chains import Chain
from tests.targets.conftest import load_hardware, needs_avr, shim
from tests.targets.cortex_m import board_named, needs_arm, outputs, simulated
from tests.tiers import quick

__all__ = ["shim"]


def nibbles() -> Graph:
    return Chain((12, 12, 1), "uint8").average("pooled").conv("conv", 3).dense("logits", 4).graph()


def made(graph: Graph, hardware: Hardware, name: str) -> dict[str, str]:
    strategy = Herringbone("slots") if hardware.core == "avr" else Ordinary()
    files = generate(graph, strategy.plan(graph, hardware), hardware, {"graph": graph.hash})
    return Prefix(name).files(files)


def names(folder: Path, source: str, *flags: str) -> set[str]:
    """Every symbol of the object, and every macro that our files define."""
    tools.run(["cc", *WARNINGS, *flags, "-c", source, "-o", "m.o"], folder, "compiling")
    listed = tools.run(["nm", "--defined-only", "-f", "posix", "m.o"], folder, "nm")
    symbols = {line.split()[0] for line in listed.splitlines()}
    texts = (path.read_text() for path in folder.glob("*.[ch]"))
    macros = {m for t in texts for m in re.findall(r"^\s*#\s*define (\w+)", t, re.MULTILINE)}
    return {symbol for symbol in symbols if not symbol.startswith(".")} | macros


@pytest.mark.parametrize("network_of", [nibbles, network])
def test_every_name_has_it(network_of: object, tmp_path: Path) -> None:
    """Not one is left, whatever the kernels."""
    graph = network_of()  # type: ignore[operator]
    hardware = uno() if graph.name == "chain" else host()
    folder = write(tmp_path, made(graph, hardware, "kws"))
    found = names(folder, "kws.c", "-O1", "-fno-inline")
    assert len(found) > 40 and {"kws_invoke", "KWS_ARENA_BYTES"} <= found
    assert not [name for name in found if not name.lower().startswith("kws_")]
    assert all(path.name.startswith("kws") for path in folder.glob("*.[ch]"))
    assert not re.search(r"\b(nn|NN)_", "".join(p.read_text() for p in folder.glob("*.[ch]")))
    assert prefix.of(folder) == Prefix("kws")
    write(folder, made(graph, hardware, "other"))
    with pytest.raises(ThimbleError, match="has 2 headers of networks, not one"):
        prefix.of(folder)


@pytest.mark.parametrize(
    "text", ["", "2net", "my-net", "Net", "nn__a", "_a", "a_", "naïve", "a" * 25, "a b", "kws\n"]
)
def test_refuses_what_is_no_prefix(text: str) -> None:
    with pytest.raises(ThimbleError, match=r"codegen\.prefix=") as caught:
        Prefix(text)
    assert "try codegen.prefix=" in str(caught.value)
    assert Prefix(str(caught.value).rpartition("=")[2])


def test_refuses_a_prefix_that_makes_names_of_others() -> None:
    graph, hardware = nibbles(), load_hardware()
    files = {**made(graph, hardware, "nn"), **harness_sources(hardware)}
    with pytest.raises(ThimbleError, match=r"codegen\.prefix=port: \w+ is another name already"):
        Prefix("port").files(files)


TWO = Path(__file__).with_name("two.c").read_text()


@pytest.mark.parametrize("flags", [("-O0",), ("-O2", "-flto")], ids=" ".join)
def test_two_networks_in_one_program(flags: tuple[str, ...], tmp_path: Path) -> None:
    """One of nibbles, one of bytes; what one computes is nothing to the other."""
    first, second = nibbles(), network()
    write(tmp_path, made(first, uno(), "first") | made(second, host(), "second") | {"main.c": TWO})
    sources = ("first.c", "second.c", "main.c")
    tools.run(["cc", *WARNINGS, *flags, *sources, "-o", "two"], tmp_path, "two networks")
    images = frames(first, 3)[2:], frames(second, 3)[2:]
    sent = images[0].astype(np.uint8).tobytes() + images[1].astype(np.int8).tobytes()
    said = subprocess.run([tmp_path / "two"], input=sent, capture_output=True, check=True).stdout
    wanted = first.evaluate(images[0]).astype(np.int16), second.evaluate(images[1]).astype(np.int8)
    assert said == b"".join(each.tobytes() for each in wanted)


def test_two_networks_with_one_prefix_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path / "a", made(nibbles(), uno(), "kws"))
    write(tmp_path / "b", made(network(), host(), "kws"))
    text = '#include "a/kws.h"\n#include "b/kws.h"\n'
    done = ran(["cc", "-fsyntax-only", "-x", "c", "-"], tmp_path, input=text)
    assert done.returncode and "KWS_MODEL_H: two networks have this prefix" in done.stderr
    graph = network()
    given = frames(graph, 3)
    found = Predictor(made(graph, host(), "kws"), graph).predict(given.astype(np.int8))
    equal(found, graph.evaluate(given))


def built(place: Path, files: dict[str, str], hardware: Hardware) -> Iterator[tuple[Path, Size]]:
    """The firmware of each prefix, the default one and another."""
    for folder in (place / "nn", place / "kws"):
        for file, content in Prefix(folder.name).files(files).items():
            artifacts.write_text(folder / "generated" / file, content)
        yield folder, builds.build(folder / "generated", folder / "build", hardware)


@needs_avr
@pytest.mark.parametrize("weights_in", quick(0, ["stream", "sram"]))
def test_firmware_of_any_prefix_runs(weights_in: str, shim: Path, tmp_path: Path) -> None:
    """Find functions and variables when measuring, and in checks of the build."""
    graph, hardware = nibbles(), load_hardware(weights_in=weights_in)
    plan = Herringbone("slots").plan(graph, hardware)
    files = {**generate(graph, plan, hardware, {}), **harness_sources(hardware)}
    sizes, cycles = [], []
    for folder, size in built(tmp_path, files, hardware):
        given = frames(graph, 3)
        runs = simavr.run(folder / "build", vars(size), hardware, given.astype(np.uint8))
        assert runs.outputs.tolist() == graph.evaluate(given).reshape(3, -1).tolist()
        sizes.append((size.sram_bytes, size.flash_bytes, sorted(size.sections)))
        cycles.append((runs.layers, runs.layer_cycles.tolist(), runs.latency_cycles.tolist()))
    assert sizes[0] == sizes[1] and cycles[0] == cycles[1]
    assert "kws_arena" in size.ram_objects and "nn_invoke" in size.sections


@needs_arm
@pytest.mark.ci
def test_a_cortex_m_finds_its_sections_by_any_prefix(tmp_path: Path) -> None:
    """The linker's script names the arena and the constants, which are none of the harness's."""
    graph, hardware = network(), board_named("nucleo_l4r5zi")
    plan = Ordinary().plan(graph, hardware)
    files = {**generate(graph, plan, hardware, {}), **harness_sources(hardware)}
    sizes = []
    for folder, size in built(tmp_path, files, hardware):
        sizes.append((size.flash_bytes, size.statics_bytes, size.stack_bound_bytes, size.sections))
        runs = simulated(folder, graph, hardware, size, frames(graph, 2))
        equal(outputs(graph, runs), graph.evaluate(frames(graph, 2)))
    assert sizes[0] == sizes[1]


def test_labels_are_strings_of_c(tmp_path: Path) -> None:
    """One for each output, whatever is in them."""
    graph = nibbles()
    output = graph.tensors[graph.output]
    assert Options().labels_in_c([output]) == [f'"{n}"' for n in range(4)]
    labels = Options(labels=('a "b"', "c\\", "über 9", "what??/"))
    text = ", ".join(labels.labels_in_c([output]))
    program = f"#include <stdio.h>\nint main(void) {{ const char *const l[] = {{{text}}};"
    program += " for (int n = 0; n < 4; n++) puts(l[n]); return 0; }"
    said(["cc", "-trigraphs", "-x", "c", "-", "-o", "labels"], tmp_path, input=program)
    assert said([tmp_path / "labels"]).splitlines() == list(labels.labels)
    with pytest.raises(ThimbleError, match=r"codegen.labels has 2 names, the network 4 outputs"):
        Options(labels=("yes", "no")).labels_in_c([output])
    with pytest.raises(ThimbleError, match="a label is one line of text"):
        Options(labels=("a\nb", "", "", "")).labels_in_c([output])
