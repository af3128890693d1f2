"""A network as a C program that calls, for each layer, what TensorFlow Lite Micro calls of CMSIS-NN
for it; a state is copied once a call."""

from collections.abc import Iterator, Sequence
from math import frexp, prod

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.along import Softmax
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.placing import Concat, Rearrange, Reshape
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.requant import FixedPoint, Requant

SCRATCH_BYTES = 16_384
HEAD = f"""
#include "arm_nnfunctions.h"
#include <string.h>
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
        last |= {self._source(each.made): len(self.operators) for each in self.graph.states}
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
        if name in self.graph.initial:
            return f"state{[*self.graph.initial].index(name)}"
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
        for number, values in enumerate(self.graph.initial.values()):
            listed = ",".join(map(str, values.reshape(-1).tolist()))
            lines += [f"static int8_t state{number}[] = {{{listed}}};"]
        for number, op in enumerate(self.operators):
            lines += [f"static int __attribute__((noinline)) layer_{number}(void) {{"]
            lines += [*self._call(op), "}"]
        lines += ["static int assigned(void) {"]
        for each in self.graph.states:
            lines += [copied(self._at(each.read), self._at(each.made), self._bytes(each.read))]
        lines += ["return 0;", "}"]
        names = ", ".join([*(f"layer_{n}" for n in range(len(self.operators))), "assigned"])
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
        elif isinstance(op, Concat | Rearrange):
            assert isinstance(op, Concat) or op.axes == (0, 1, 2), op
            before, row, taken = 0, shape[-1], made[-1]
            if isinstance(op, Rearrange):
                pieces, size = (made[0], taken) if taken < row else (1, prod(made))
                for n in range(pieces):
                    at = (op.starts[0] + n) * row + op.starts[2]
                    yield copied(f"{target} + {n * taken}", f"{source} + {at}", size)
            for name in op.inputs if isinstance(op, Concat) else ():
                yield copied(f"{target} + {before}", self._at(name), self._bytes(name))
                before += self._bytes(name)
            yield "return 0;"
        elif isinstance(op, Lookup):
            listed = ",".join(map(str, op.table))
            yield f"static const int8_t table[] = {{{listed}}};"
            yield f"for (int n = 0; n < {prod(made)}; n++) "
            yield f"{target}[n] = table[{source}[n] + 128];"
            yield "return 0;"
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


def copied(target: str, source: str, size: int) -> str:
    return f"memcpy({target}, {source}, {size});"


def fixed(requant: Requant) -> FixedPoint:
    assert isinstance(requant, FixedPoint)
    return requant
