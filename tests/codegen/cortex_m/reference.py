"""``python -m tests.codegen.cortex_m.reference TFLM GEMMLOWP HEADERS``: MLPerf Tiny's networks by
TensorFlow Lite Micro's reference kernels, on a simulated Cortex-M4 without flash waits: what
``bench`` has of them.

TFLM is a clone of github.com/tensorflow/tflite-micro, GEMMLOWP one of github.com/google/gemmlowp,
HEADERS the folder of the compiler's C++ headers (Debian's libstdc++-arm-none-eabi-dev). Each layer
is a call of its kernel, without the interpreter; outputs have to be those of the graph.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from math import frexp, prod
from pathlib import Path

import numpy as np

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.operators.softmax import Softmax
from pipeline.graph.requant import FixedPoint
from pipeline.hardware import Hardware
from pipeline.importers.tflite import TFLite
from pipeline.targets import qemu
from tests.codegen.cortex_m.bench import FRAMES, PEERS, PLAIN, without_waits
from tests.importers.tflite_reference import frames
from tests.public_models import MODELS
from tests.targets.cortex_m import board_named
from tests.targets.published.build import built

HEAD = """
#include "tensorflow/lite/kernels/internal/reference/integer_ops/add.h"
#include "tensorflow/lite/kernels/internal/reference/integer_ops/conv.h"
#include "tensorflow/lite/kernels/internal/reference/integer_ops/depthwise_conv.h"
#include "tensorflow/lite/kernels/internal/reference/integer_ops/fully_connected.h"
#include "tensorflow/lite/kernels/internal/reference/integer_ops/pooling.h"
#include "tensorflow/lite/kernels/internal/reference/softmax.h"
using namespace tflite;
template <class... T> static RuntimeShape shape(T... extents) {
    const int32_t all[] = {extents...};
    return RuntimeShape(sizeof...(extents), all);
}
extern "C" void *memcpy(void *, const void *, unsigned);
extern "C" void *_sbrk(int) { return (void *)-1; }  // nothing allocates
extern "C" void _exit(int) { for (;;) {} }
extern "C" int _kill(int, int) { return -1; }
extern "C" int _getpid() { return 1; }
"""


class Program:
    """C++ that calls one kernel a layer; tensors are ``t0``, ``t1``, … in the order they come."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names = {name: f"t{n}" for n, name in enumerate(graph.tensors)}

    def text(self) -> str:
        lines = [HEAD]
        for name, tensor in self.graph.tensors.items():
            values, kind = self.graph.constants.get(name), f"int{tensor.dtype.bits}_t"
            head = f"{self.names[name]}[{prod(tensor.shape)}] __attribute__((aligned(16)))"
            if values is None:
                lines.append(f"static {kind} {head};")
            else:
                listed = ",".join(map(str, self._laid(name, values).reshape(-1).tolist()))
                lines.append(f"static const {kind} {head} = {{{listed}}};")
        first, last = self.names[self.graph.input], self.names[self.graph.output]
        lines.append('extern "C" int published(void *given, void *made) {')
        lines.append(f"memcpy({first}, given, sizeof {first});")
        for op in self.graph.operators:
            lines.append("{\n" + "\n".join(self._call(op)) + "\n}")
        return "\n".join([*lines, f"memcpy(made, {last}, sizeof {last});", "return 0;\n}\n"])

    def _laid(self, name: str, values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        """Weights of a depthwise layer have their channels last in TFLite."""
        deep = any(
            isinstance(op, Conv2d) and op.groups > 1 and op.parameters[0] == name
            for op in self.graph.operators
        )
        return values.transpose(3, 1, 2, 0) if deep else values

    def _shape(self, name: str) -> str:
        shape = self.graph.tensors[name].shape
        return f"shape({','.join(map(str, (1, *shape)))})"

    def _of(self, *names: str) -> str:
        return ", ".join(f"{self._shape(n)}, {self.names[n]}" for n in names)

    def _zero(self, name: str) -> int:
        return self.graph.tensors[name].zero_point

    def _call(self, op: Operator) -> Iterator[str]:
        low, high = getattr(op, "clip", None) or (-128, 127)
        source, target = op.inputs[0], op.output
        activation = f"p.quantized_activation_min = {low}; p.quantized_activation_max = {high};"
        if isinstance(op, Conv2d):
            deep = op.groups > 1
            yield f"{'Depthwise' if deep else 'Conv'}Params p = {{}}; {activation}"
            yield f"p.input_offset = {-self._zero(source)}; p.output_offset = {self._zero(target)};"
            yield f"p.stride_height = {op.stride[0]}; p.stride_width = {op.stride[1]};"
            yield "p.dilation_height_factor = p.dilation_width_factor = 1;"
            yield f"p.padding_values.height = {op.padding[0]};"
            yield f"p.padding_values.width = {op.padding[2]};" + "p.depth_multiplier = 1;" * deep
            assert isinstance(op.requant, FixedPoint)
            channels = self.graph.tensors[target].shape[-1]
            part = op.requant.chosen(range(channels))
            for word, values in (("multiplier", part.multipliers), ("shift", part.shifts)):
                listed = list(values) * (channels // len(values))
                yield f"static const int32_t {word}[] = {{{','.join(map(str, listed))}}};"
            weights, bias = (self.names[n] for n in op.parameters)
            out, *window = self.graph.tensors[op.parameters[0]].shape
            size = (1, *window[:2], out) if deep else (out, *window)
            shape = f"shape({','.join(map(str, size))})"
            call = f"{'Depthwise' if deep else ''}ConvPerChannel"
            yield f"reference_integer_ops::{call}(p, multiplier, shift, {self._of(source)}, "
            yield f"{shape}, {weights}, shape({out}), {bias}, {self._of(target)});"
        elif isinstance(op, Dense):
            assert isinstance(op.requant, FixedPoint) and len(op.requant.multipliers) == 1
            yield f"FullyConnectedParams p = {{}}; {activation}"
            yield f"p.input_offset = {-self._zero(source)}; p.output_offset = {self._zero(target)};"
            yield f"p.output_multiplier = {op.requant.multipliers[0]};"
            yield f"p.output_shift = {op.requant.shifts[0]};"
            weights, bias = (self.names[n] for n in op.parameters)
            out, depth = (
                self.graph.tensors[target].shape[-1],
                prod(self.graph.tensors[source].shape),
            )
            given, made = self.names[source], self.names[target]
            yield f"reference_integer_ops::FullyConnected(p, shape(1, {depth}), {given},"
            yield f"shape({out}, {depth}), {weights}, shape({out}), {bias},"
            yield f"shape(1, {out}), {made});"
        elif isinstance(op, Add):
            yield f"ArithmeticParams p = {{}}; {activation} p.left_shift = {op.left_shift};"
            for n, (name, each) in enumerate(zip(op.operands, op.operand_requants, strict=True), 1):
                assert isinstance(each, FixedPoint)
                yield f"p.input{n}_offset = {-self._zero(name)};"
                yield f"p.input{n}_multiplier = {each.multipliers[0]};"
                yield f"p.input{n}_shift = {each.shifts[0]};"
            assert isinstance(op.requant, FixedPoint)
            yield f"p.output_offset = {self._zero(target)};"
            yield f"p.output_multiplier = {op.requant.multipliers[0]};"
            yield f"p.output_shift = {op.requant.shifts[0]};"
            yield f"reference_integer_ops::Add(p, {self._of(*op.operands, target)});"
        elif isinstance(op, Pool2d):
            assert op.combine == "add"
            yield f"PoolParams p = {{}}; {activation}"
            yield f"p.filter_height = {op.kernel[0]}; p.filter_width = {op.kernel[1]};"
            yield f"p.stride_height = {op.stride[0]}; p.stride_width = {op.stride[1]};"
            yield f"p.padding_values.height = {op.padding[0]};"
            yield f"p.padding_values.width = {op.padding[2]};"
            yield f"reference_integer_ops::AveragePool(p, {self._of(source, target)});"
        else:
            assert isinstance(op, Softmax)
            (scale,) = self.graph.tensors[source].scale
            fraction, shift = frexp(min(scale * (1 << 26), float((1 << 31) - 1)))
            radius = ((1 << 5) - 1) * (1 << 26) // (1 << shift)
            yield f"SoftmaxParams p = {{}}; p.input_multiplier = {int(fraction * (1 << 31) + 0.5)};"
            yield f"p.input_left_shift = {shift}; p.diff_min = {-radius};"
            yield f"reference_ops::Softmax(p, {self._of(source, target)});"


def compiled(graph: Graph, folders: list[Path], output: Path, hardware: Hardware) -> Path:
    tflm, gemmlowp, headers = folders
    (output / "network.cc").write_text(Program(graph).text())
    wanted = ("-m", "-O", "-f")
    flags = [flag for flag in hardware.toolchain.flags if flag.startswith(wanted)]
    for place in (tflm, gemmlowp, headers, headers / "arm-none-eabi"):
        flags += ["-isystem", str(place)]
    flags += ["-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-DNDEBUG"]
    flags += ["-DTF_LITE_STATIC_MEMORY", "-DTF_LITE_DISABLE_X86_NEON", "-w"]
    compiler = hardware.toolchain.compiler.replace("gcc", "g++")
    common = tflm / "tensorflow/lite/kernels/internal/common.cc"
    for source, made in (("network.cc", "network.o"), (str(common), "common.o")):
        subprocess.run([compiler, *flags, "-c", source, "-o", made], cwd=output, check=True)
    joined = [compiler, *flags, "-r", "-nostdlib", "network.o", "common.o", "-o", "published.o"]
    subprocess.run(joined, cwd=output, check=True)
    return output / "published.o"


def main(folders: list[Path]) -> int:
    wrong = 0
    board = without_waits(board_named("nucleo_l4r5zi"))
    for model in PEERS:
        graph = passes.applied(TFLite(path=str(MODELS / f"{model}.tflite")).graph(), PLAIN)
        given = frames(graph, FRAMES)
        with tempfile.TemporaryDirectory(prefix="thimble.") as place:
            folder = Path(place)
            program = compiled(graph, folders, folder, board)
            number = prod(graph.tensors[graph.output].shape)
            size = built(folder, board, prod(given.shape[1:]), program, number)
            images = np.ascontiguousarray(given.astype(np.int8)).view(np.uint8)
            found = qemu.run(folder / "build", vars(size), board, images)
        made = found.outputs.reshape(FRAMES, -1).astype(np.int64)
        same = np.array_equal(made, graph.outputs(given).reshape(FRAMES, -1))
        wrong += not same
        assert found.modelled_cycles is not None
        counts = f"{int(np.median(found.instructions)):>12,} {found.modelled_cycles['median']:>12,}"
        print(f"{model:24} {counts}  outputs {'equal' if same else 'differ'}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main([Path(word).resolve() for word in sys.argv[1:4]]))
