"""``python -m tests.peers.cmsis_nn CMSIS_NN [NETWORK …]``: MLPerf Tiny's networks by CMSIS-NN and
by this project, layer by layer and whole, on the same simulated cores without flash waits.

CMSIS_NN is a clone of github.com/ARM-software/CMSIS-NN. Its side is a C program that calls, for
each layer, what TensorFlow Lite Micro calls for it. Compiler, options, cycle model and inputs are
those of our side, and every output of both has to be the graph's. Without names, all networks: what
is found goes into ``cmsis_nn.json``, with the commit, compiler and options; the benches compare
with that. Of a network with states (``../wake_words/okay_nabu``) each frame is a call. Ends with an
error where an output differs, or where there is nothing to compare.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from pipeline import passes
from pipeline.artifacts import write_json
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.importers.tflite import TFLite
from pipeline.targets import qemu, qemu_cycles, tools
from pipeline.targets.layers import of_functions
from tests.codegen.cortex_m.bench import FASTEST, PASSES, without_waits
from tests.importers.tflite_reference import frames
from tests.peers.cmsis_network import Program
from tests.peers.recorded import CORES, FILE, MLPERF_TINY, board_of
from tests.public_models import MODELS, required
from tests.targets.cortex_m import built, outputs, simulated
from tests.targets.published import build as harness

FRAMES = 3
"""Random values, which are counted, the greatest everywhere, the least."""
BY_LAYER = ("M4",)
FOLDERS = (
    "BasicMathFunctions", "ConvolutionFunctions", "FullyConnectedFunctions", "NNSupportFunctions",
    "PoolingFunctions", "SoftmaxFunctions",
)  # fmt: skip
Taken = dict[str, int]
"""``instructions`` and ``cycles``."""


def options(hardware: Hardware) -> list[str]:
    return [flag for flag in hardware.toolchain.flags if flag.startswith(("-m", "-O", "-f"))]


def library(clone: Path, folder: Path, hardware: Hardware) -> Path:
    """CMSIS-NN for the core of ``hardware``, compiled into ``folder``."""
    folder.mkdir()
    found = [path for name in FOLDERS for path in sorted((clone / "Source" / name).glob("*.c"))]
    sources = [path for path in found if not path.stem.endswith(("f16", "f32"))]
    if not sources:
        sys.exit(f"{clone} is no clone of github.com/ARM-software/CMSIS-NN: nothing was compared")
    compiler = hardware.toolchain.compiler
    command = [compiler, *options(hardware), "-w", f"-I{clone / 'Include'}", "-c"]
    tools.run([*command, *map(str, sources)], folder, "compiling CMSIS-NN")
    objects = [f"{path.stem}.o" for path in sources]
    tools.run([compiler.replace("gcc", "gcc-ar"), "rcs", "lib.a", *objects], folder, "its library")
    return folder / "lib.a"


@contextmanager
def modelled(count: int) -> Iterator[list[str]]:
    """So many inferences are meanwhile; what the plugin writes of them is in the list."""
    said: list[str] = []
    usual = qemu_cycles.cycles

    def cycles(text: str, *more: Any, **keys: Any) -> dict[str, Any]:
        said.append(text)
        return usual(text, *more, **keys)

    with patch.object(qemu_cycles, "cycles", cycles), patch.object(qemu_cycles, "IMAGES", count):
        yield said


def rows(text: str, hardware: Hardware) -> list[Taken]:
    """Read what each inference took, of ``nn_invoke``."""
    lines = [line.split()[: len(qemu_cycles.COUNTS)] for line in text.splitlines()]
    timed = qemu_cycles._timed(np.array(lines, np.int64), hardware)
    found = np.rint(timed[:, [0, qemu_cycles.MEDIAN]]).astype(int).tolist()
    return [dict(zip(("instructions", "cycles"), each, strict=True)) for each in found]


def theirs(
    graph: Graph, hardware: Hardware, clone: Path, built_library: Path, layered: bool
) -> tuple[Taken, list[tuple[str, Taken]]]:
    """Measure CMSIS-NN on the random input; and each layer in turn, by runs of nothing else."""
    given, program = frames(graph, FRAMES)[::-1], Program(graph)
    count = len(program.operators) + 1
    alone = [(0, 0), *((n, n + 1) for n in range(count))] if layered else []
    spans, more = [*alone, *[(0, count)] * FRAMES], len(alone)
    inputs = np.concatenate([np.repeat(given[:1], more, 0), given])
    flat = inputs.astype(np.int8).reshape(len(spans), -1).view(np.uint8)
    images = np.concatenate([flat, np.array(spans, np.uint8)], 1)
    with tempfile.TemporaryDirectory(prefix="thimble.") as name, modelled(more + 1) as said:
        folder = Path(name)
        (folder / "network.c").write_text(program.text())
        compiler = hardware.toolchain.compiler
        flags = [*options(hardware), "-w", f"-I{clone / 'Include'}", "-r", "-nostdlib"]
        command = [compiler, *flags, "network.c", str(built_library), "-o", "published.o"]
        tools.run(command, folder, "compiling the network")
        number = prod(graph.tensors[graph.output].shape)
        size = harness.built(
            folder, hardware, images.shape[1], folder / "published.o", number
        )  # fmt: skip
        found = qemu.run(folder / "build", vars(size), hardware, images)
    made = found.outputs[more:].reshape(FRAMES, -1).astype(np.int64)
    if ((made - graph.evaluate(given).reshape(FRAMES, -1)) % 256).any():
        sys.exit(f"{graph.name} by CMSIS-NN on {hardware.title}: outputs differ from the graph's")
    (text,) = said
    *partly, whole = rows(text, hardware)
    layers = [
        (op.name, {key: taken[key] - partly[0][key] for key in taken})
        for op, taken in zip(program.operators, partly[1:], strict=False)
    ]
    return whole, layers


def ours(graph: Graph, hardware: Hardware) -> tuple[Taken, dict[str, Taken]]:
    """Measure our C on the random input; and each layer that has code of its own."""
    given = frames(graph, FRAMES)[::-1]
    with tempfile.TemporaryDirectory(prefix="thimble.") as folder, modelled(1):
        size = built(Path(folder), graph, hardware, FASTEST.plan(graph, hardware))
        found = simulated(Path(folder), graph, hardware, size, given)
    if not np.array_equal(outputs(graph, found), graph.evaluate(given)):
        sys.exit(f"{graph.name} on {hardware.title}: outputs differ from the graph's")
    counted = found.modelled_cycles
    assert counted is not None
    whole = {"instructions": counted["instructions"], "cycles": counted["median"]}
    names, middle = [op.name for op in graph.operators], 1 + qemu_cycles.BAND.index("median")
    each = counted["invoke_functions"].items()
    parts = {
        key: dict(of_functions({n: round(taken[at]) for n, taken in each}, whole[key], names))
        for key, at in (("instructions", 0), ("cycles", middle))
    }
    layers = {name: {k: parts[k][name] for k in parts} for name in names if name in parts["cycles"]}
    return whole, layers


def compared(name: str, core: str, clone: Path, built_library: Path) -> dict[str, Any]:
    hardware = without_waits(board_of(core))
    source = TFLite(path=str(MODELS / f"{name}.tflite")).graph()
    graphs = {each: passes.applied(source, chosen) for each, chosen in PASSES.items()}
    graph, layered = graphs["without dead_channels"], core in BY_LAYER and not source.states
    whole, layers = theirs(graph, hardware, clone, built_library, layered)
    if source.states:
        graphs = {n: passes.applied(each, ("fold_mixed",)) for n, each in graphs.items()}
    (plain, own), (every, _) = (ours(each, hardware) for each in graphs.values())
    head = f"{name}, {core}"
    print(line(head, whole, plain), flush=True)
    if every != plain:
        print(line(f"{head}, with dead_channels", whole, every), flush=True)
    for layer, taken in layers:
        if layer in own:
            print(line(f"  {layer}", taken, own[layer]), flush=True)
    found = {"without dead_channels": plain, "all passes": every}
    listed = [{"layer": n, "cmsis_nn": taken, "thimble": own.get(n)} for n, taken in layers]
    return {"cmsis_nn": whole, "thimble": found, "layers": listed}


def line(name: str, whole: Taken, found: Taken) -> str:
    said = (f"{whole[k]:>12,} {found[k]:>12,} {found[k] / whole[k]:6.3f}" for k in whole)
    return f"{name:44} {' '.join(said)}"


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def record(clone: Path, found: dict[str, Any]) -> None:
    compiler = board_of("M4").toolchain.compiler
    write_json(FILE, {
        "commit": output_of("git", "-C", str(clone), "rev-parse", "HEAD"),
        "changed": bool(output_of("git", "-C", str(clone), "status", "--porcelain")),
        "compiler": output_of(compiler, "--version").splitlines()[0],
        "options": {core: options(board_of(core)) for core in CORES},
        "simulator": output_of(qemu.PROGRAM, "--version").splitlines()[0],
        "boards": CORES,
        "networks": found,
    })  # fmt: skip


def main(clone: Path, names: Sequence[str]) -> int:
    required()
    print(f"{'':44} instructions: CMSIS-NN, ours, ratio; the same of modelled cycles")
    found: dict[str, Any] = {name: {} for name in names or MLPERF_TINY}
    with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
        for core in CORES:
            made = library(clone, Path(folder) / core, board_of(core))
            for name in found:
                found[name][core] = compared(name, core, clone, made)
    if not names:
        record(clone, found)
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
