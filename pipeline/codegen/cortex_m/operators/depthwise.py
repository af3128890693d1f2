"""Depthwise convolution: rows of four channels are taken apart, so that neighbours are pairs; where
a pass has fewer, those of one.

Inputs come as words of two neighbours, from an even column on; so do weights: a0, a1, … are pairs
from the first weight on, b0, b1, … from the second on. An output that begins in the lower half of
a word takes the a's and, of the last b, the upper half; one that begins in an upper half takes the
lower half of a0 and all b's. With stride 2 all outputs begin in lower halves.
"""

from typing import Literal, NamedTuple

import numpy as np

from pipeline.codegen.c.values import whole
from pipeline.codegen.cortex_m import weights
from pipeline.codegen.cortex_m.assembly import add, block, load
from pipeline.codegen.cortex_m.ending import End, end
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.depthwise import Block, blocks, columns, lanes, odd_kernel


class Product(NamedTuple):
    """Product of input word ``word`` and weights' word ``weight``, added to output ``out``: both
    halves, or the lower one with the weights' upper, or the other way round."""

    word: int
    kind: Literal["smlad", "smlabt", "smlatb"]
    out: int
    weight: int


class Row(Block):
    """A kernel's row of a block."""

    @property
    def loads(self) -> list[list[int]]:
        """Words of inputs, those that are loaded together."""
        numbers = list(range(self.words))
        return [numbers[n : n + self.inputs] for n in range(0, self.words, self.inputs)]

    def products(self, word: int) -> list[Product]:
        """Return all that are made of an input word."""
        found = []
        for out in range(self.outs):
            place = word - out * self.stride // 2
            if self.stride == 1 and out % 2:
                if place == 0:
                    found.append(Product(word, "smlatb", out, 0))
                elif 0 < place <= self.half:
                    found.append(Product(word, "smlad", out, self.half + place - 1))
            elif 0 <= place < self.half:
                found.append(Product(word, "smlad", out, place))
            elif place == self.half:
                found.append(Product(word, "smlabt", out, self.weights - 1))
        return found

    def code(self, weight: int) -> str:
        """C that adds to a0 and so on what a row of inputs at x gives; at q its weights begin with
        the word ``weight``. Compilers are told the registers of sums and pointers: they find none
        for all of them otherwise."""
        weights = [f"k{n}" for n in range(self.weights)]
        inputs = [f"x{n}" for n in range(self.inputs)]
        free = [2, 3, *range(4 + self.outs, 13), 14]
        words = zip([*weights, *inputs], free, strict=False)
        lines = [
            'register const int32_t *const own NN_AT("r0") = q;',
            'register const nn_word_t *const row NN_AT("r1") = x;',
            *(f'register int32_t s{n} NN_AT("r{4 + n}") = a{n};' for n in range(self.outs)),
            *(f'register uint32_t {word} NN_AT("r{place}");' for word, place in words),
            *(load(k, "own", 4 * (weight + n)) for n, k in enumerate(weights)),
        ]
        for group in self.loads:
            lines += [load(x, "row", 4 * word) for x, word in zip(inputs, group, strict=False)]
            lines += [
                add(f"s{made.out}", x, f"k{made.weight}", made.kind)
                for x, word in zip(inputs, group, strict=False)
                for made in self.products(word)
            ]
        lines += [f"a{n} = s{n};" for n in range(self.outs)]
        return block(lines, (), 20)


def compute(job: Job) -> None:
    op, part = job.operator(Conv2d), job.part
    at_once = lanes(part.at_once)
    groups = weights.passes(job.target.shape[2], part.at_once, at_once)
    name, finish = op.parameters[0], end(job)
    view = job.rows_view()
    window = Windows.of(job, view)
    values = job.program.graph.constants[name].reshape(window.channels, *window.kernel)
    rows = table(values, finish, op.stride[1])
    kernel_h, kernel_w = window.kernel
    half = odd_kernel(kernel_w) // 2
    outs, ending = blocks(window.out_columns, kernel_h, half, op.stride[1])
    job.rows_call(
        "cortex_m/depthwise", view,
        {
            "first_quad": part.group(at_once), "channels": part.extent,
            "last_quad": part.extent + -at_once,
        },
        ring_axes=1, window=window, lanes=at_once, channel_words=rows.shape[1], outs=outs,
        first_weight=4 if finish.quick else 1, full=Row(outs, half, op.stride[1]),
        tail=Row(ending, half, op.stride[1]) if ending else None,
        uneven=part.at_once % at_once or window.channels % part.at_once % at_once,
        follow=view.rows_follow and view.box[0].covers(whole(window.height)),
        columns=columns(op, job.program.graph.tensors),
        table=job.table(
            "weights", "int32_t", rows[groups],
            "for each channel what sums begin with, how they end, pairs of weights", weights=True,
        ),
        end=finish,
    )  # fmt: skip


def table(values: IntArray, finish: End, stride: int) -> IntArray:
    """(channels, words). ``values``: (channels, kh, kw)."""
    channels, kernel_h, kernel_w = values.shape
    padded = np.zeros((channels, kernel_h, odd_kernel(kernel_w)), np.int64)
    padded[..., :kernel_w] = values * finish.factor
    pair = padded[..., :-1], padded[..., 1:]  # each tap and the next one
    even, odd = (weights.in_words(*(each[..., n::2] for each in pair)) for n in (0, 1))
    odd = odd if stride == 1 else odd[..., -1:]
    pairs = np.concatenate([even, odd], axis=-1).reshape(channels, -1)
    return np.concatenate([finish.heads(finish.factor * finish.starts[:, None]), pairs], axis=1)


WRITERS = {"cortex_m.depthwise": compute}
