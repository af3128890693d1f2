"""``python -m tests.peers.cmsis_nn CMSIS_NN [NETWORK …]``: MLPerf Tiny's networks by CMSIS-NN and
by this project, layer by layer and whole, on the same simulated cores without flash waits.

CMSIS_NN is a clone of github.com/ARM-software/CMSIS-NN. Its side is a C program that calls, for
each layer, what TensorFlow Lite Micro calls for it. Compiler, options, cycle model and inputs are
those of our side, and every output of both has to be the graph's. Without names, all networks: what
is found goes into ``cmsis_nn.json``, with the commit, compiler and options; the benches compare
with that. Ends with an error where an output differs, or where there is nothing to compare.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import frexp, prod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from pipeline import passes
from pipeline.artifacts import write_json
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.along import Softmax
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.placing import Reshape
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.requant import FixedPoint, Requant
from pipeline.hardware import Hardware
from pipeline.importers.tflite import TFLite
from pipeline.targets import qemu, qemu_cycles, tools
from pipeline.targets.layers import of_functions
from tests.codegen.cortex_m.bench import FASTEST, PASSES, without_waits
from tests.importers.tflite_reference import frames
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
    count = len(program.operators)
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
    if not np.array_equal(made, graph.evaluate(given).reshape(FRAMES, -1)):
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
    graph = graphs["without dead_channels"]
    whole, layers = theirs(graph, hardware, clone, built_library, core in BY_LAYER)
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


SCRATCH_BYTES = 16_384
HEAD = f"""
#include "arm_nnfunctions.h"
static int8_t scratch[{SCRATCH_BYTES}] __attribute__((aligned(16)));
static const int8_t *given_in;
static int8_t *made_out;
static int needs_too_much;
static cmsis_nn_context room(int32_t bytes) {{
    needs_too_much |= bytes > {SCRATCH_BYTES};
    return (cmsis_nn_context){{scratch, bytes}};
}}
"""
TAIL = """
/* The last two bytes of the input say which layers are to run. */
int published(void *given, void *made) {
    const uint8_t *span = (uint8_t *)given + %(input_bytes)d;
    given_in = given, made_out = made;
    for (int n = span[0]; n < span[1]; n++)
        if (layers[n]()) return 1;
    return needs_too_much;
}
"""


class Program:
    """Tensors share memory once nothing needs them any more."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.operators = [op for op in graph.operators if not isinstance(op, Reshape)]
        self.same = {op.output: op.inputs[0] for op in graph.operators if isinstance(op, Reshape)}
        self.slots = self._slots()

    def _source(self, name: str) -> str:
        return self._source(self.same[name]) if name in self.same else name

    def _bytes(self, name: str) -> int:
        return prod(self.graph.tensors[name].shape)

    def _slots(self) -> dict[str, int]:
        """The number of the buffer that each tensor between the layers is in."""
        last = {self._source(n): at for at, op in enumerate(self.operators) for n in op.inputs}
        held: dict[int, str] = {}
        found: dict[str, int] = {}
        for at, op in enumerate(self.operators):
            free = (n for n in range(len(held) + 1) if n not in held)
            found[op.output] = next(free)
            held[found[op.output]] = op.output
            held = {n: name for n, name in held.items() if last.get(name, at) > at}
        return found

    def _at(self, name: str) -> str:
        name = self._source(name)
        if name == self._source(self.graph.output):
            return "made_out"
        return "given_in" if name == self.graph.input else f"slot{self.slots[name]}"

    def text(self) -> str:
        sizes: dict[int, int] = {}
        for name, slot in self.slots.items():
            sizes[slot] = max(sizes.get(slot, 0), self._bytes(name))
        lines = [HEAD]
        lines += [
            f"static int8_t slot{slot}[{size}] __attribute__((aligned(16)));"
            for slot, size in sizes.items()
        ]
        for number, op in enumerate(self.operators):
            lines += [f"static int __attribute__((noinline)) layer_{number}(void) {{"]
            lines += [*self._call(op), "}"]
        names = ", ".join(f"layer_{n}" for n in range(len(self.operators)))
        lines.append(f"static int (*const layers[])(void) = {{{names}}};")
        return "\n".join([*lines, TAIL % {"input_bytes": self._bytes(self.graph.input)}])

    def _zero(self, name: str) -> int:
        return self.graph.tensors[name].zero_point

    def _dims(self, word: str, shape: Sequence[int]) -> str:
        return f"static const cmsis_nn_dims {word} = {{{', '.join(map(str, shape))}}};"

    def _constants(self, op: Operator, deep: bool) -> Iterator[str]:
        for word, kind, name in zip(("w", "b"), ("int8_t", "int32_t"), op.parameters, strict=True):
            values = self.graph.constants[name]
            if deep and word == "w":
                values = values.transpose(3, 1, 2, 0)
            listed = ",".join(map(str, values.reshape(-1).tolist()))
            yield f"static const {kind} {word}[] __attribute__((aligned(16))) = {{{listed}}};"

    def _call(self, op: Operator) -> Iterator[str]:
        low, high = getattr(op, "clip", None) or (-128, 127)
        shape, made = (self.graph.tensors[n].shape for n in (op.inputs[0], op.output))
        zero_in, zero_out = -self._zero(op.inputs[0]), self._zero(op.output)
        source, target = self._at(op.inputs[0]), self._at(op.output)
        if isinstance(op, Conv2d):
            deep = op.groups > 1
            yield from self._constants(op, deep)
            out, *window = self.graph.tensors[op.parameters[0]].shape
            part = fixed(op.requant).chosen(range(out))
            for word, values in (("multiplier", part.multipliers), ("shift", part.shifts)):
                listed = np.broadcast_to(np.array(values), out).tolist()
                yield f"static const int32_t {word}[] = {{{', '.join(map(str, listed))}}};"
            yield self._dims("in", (1, *shape)) + self._dims("out", (1, *made))
            yield self._dims("filter", (1, *window[:2], out) if deep else (out, *window))
            yield self._dims("bias", (1, 1, 1, out))
            kind, call = ("dw_conv", "depthwise_conv") if deep else ("conv", "convolve")
            (down, across), (top, _, left, _) = op.stride, op.padding
            tiles = f"{{{across}, {down}}}, {{{left}, {top}}}, {{1, 1}}, {{{low}, {high}}}"
            yield f"static const cmsis_nn_{kind}_params p = {{{zero_in}, {zero_out}, "
            yield f"{'1, ' * deep}{tiles}}};"
            yield "static const cmsis_nn_per_channel_quant_params q = {(int32_t *)multiplier, "
            yield "(int32_t *)shift};"
            yield f"cmsis_nn_context c = room(arm_{call}_wrapper_s8_get_buffer_size("
            yield "&p, &in, &filter, &out));"
            yield f"return arm_{call}_wrapper_s8(&c, &p, &q, &in, {source}, &filter, w, &bias, b, "
            yield f"&out, {target});"
        elif isinstance(op, Dense):
            yield from self._constants(op, False)
            part = fixed(op.requant)
            yield self._dims("in", (1, 1, 1, prod(shape))) + self._dims("out", (1, 1, 1, *made))
            yield self._dims("filter", (prod(shape), 1, 1, *made))
            yield self._dims("bias", (1, 1, 1, *made))
            yield f"static const cmsis_nn_fc_params p = {{{zero_in}, 0, {zero_out}, "
            yield f"{{{low}, {high}}}}};"
            yield "static const cmsis_nn_per_tensor_quant_params q = "
            yield f"{{{part.multipliers[0]}, {part.shifts[0]}}};"
            yield "cmsis_nn_context c = room(arm_fully_connected_s8_get_buffer_size(&filter));"
            yield f"return arm_fully_connected_s8(&c, &p, &q, &in, {source}, &filter, w, &bias, b, "
            yield f"&out, {target});"
        elif isinstance(op, Add):
            said = ", ".join(
                f"{-self._zero(name)}, {fixed(each).multipliers[0]}, {fixed(each).shifts[0]}"
                for name, each in zip(op.operands, op.operand_requants, strict=True)
            )
            part, places = fixed(op.requant), ", ".join(map(self._at, op.operands))
            yield f"return arm_elementwise_add_s8({places}, {said}, {op.left_shift}, {target}, "
            yield f"{zero_out}, {part.multipliers[0]}, {part.shifts[0]}, {low}, {high}, "
            yield f"{prod(made)});"
        elif isinstance(op, Pool2d):
            (down, across), (top, _, left, _) = op.stride, op.padding
            yield self._dims("in", (1, *shape)) + self._dims("out", (1, *made))
            yield self._dims("filter", (1, *op.kernel, 1))
            yield f"static const cmsis_nn_pool_params p = {{{{{across}, {down}}}, "
            yield f"{{{left}, {top}}}, {{{low}, {high}}}}};"
            yield f"cmsis_nn_context c = room(arm_avgpool_s8_get_buffer_size({made[1]}, "
            yield f"{shape[-1]}));"
            yield f"return arm_avgpool_s8(&c, &p, &in, {source}, &filter, &out, {target});"
        else:
            assert isinstance(op, Softmax), op
            (scale,) = self.graph.tensors[op.inputs[0]].scale
            fraction, shift = frexp(min(scale * (1 << 26), float((1 << 31) - 1)))
            least = -(((1 << 5) - 1) * (1 << 26) // (1 << shift))
            yield f"arm_softmax_s8({source}, {prod(shape[:-1])}, {shape[-1]}, "
            yield f"{int(fraction * (1 << 31) + 0.5)}, {shift}, {least}, {target});"
            yield "return 0;"


def fixed(requant: Requant) -> FixedPoint:
    assert isinstance(requant, FixedPoint)
    return requant


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
