"""Depthwise 3x3 of a row in blocks, channel by channel."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from pipeline.codegen.c.expressions import product, total
from pipeline.codegen.cortex_m.by_row.depthwise_group import ENDS, WORDS, Group
from pipeline.codegen.cortex_m.by_row.rows import input_rows, layouts, out_row
from pipeline.codegen.cortex_m.ending import End, end, wrapped
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.by_row.depthwise import RowDepthwise, groups
from pipeline.kernels.cortex_m.by_row.layout import RowLayout


@dataclass(frozen=True)
class Tail:
    """The last block of a row, which has fewer pixels: where it begins, and bytes from a channel to
    the next."""

    at: int
    step: int

    @classmethod
    def of(cls, row: RowLayout) -> Tail | None:
        if row.plane or row.full == row.columns:
            return None
        return cls(row.at(row.full), row.columns - row.full)


@dataclass(frozen=True)
class Run:
    """Groups whose code is the same, one after the other."""

    members: tuple[Group, ...]
    target: RowLayout

    @property
    def group(self) -> Group:
        return self.members[0]

    @property
    def count(self) -> int:
        return len(self.members)

    @property
    def tails(self) -> bool:
        return any(map(self.group.apart, self.group.pixels))

    @property
    def read(self) -> str:
        """C of what is added to pointers into the input's rows."""
        return product("n", self.members[1].base - self.group.base) if self.count > 1 else "0"

    def to(self, out: int) -> str:
        """C of where an output of a group goes."""
        target = self.target
        if not target.plane and target.pixels > 1 and out >= target.full:
            return f"last[{out - target.full}]"
        move = target.at(out + self.group.count) - target.at(out)
        return f"to[{total(product('n', move) if self.count > 1 else '0', target.at(out))}]"


def runs(op: Conv2d, source: RowLayout, target: RowLayout, signed: bool) -> list[Run]:
    every = [
        Group(first, count, target.columns, op.stride[1], op.padding[2], source, signed)
        for first, count in groups(source, target)
    ]
    in_tail = [not target.plane and group.first >= target.full for group in every]
    kinds = zip(every, in_tail, strict=True)
    return [
        Run(tuple(group for group, _ in same), target)
        for _, same in groupby(kinds, key=lambda each: (each[0].shape, each[1]))
    ]


def compute(job: Job) -> None:
    op = job.operator(Conv2d)
    source, target = layouts(job, RowDepthwise())
    tensor, name, finish = job.tensor(op.inputs[0]), op.parameters[0], end(job)
    values = job.program.graph.constants[name].reshape(source.channels, 3, 3)
    found = runs(op, source, target, tensor.dtype.signed)
    out = out_row(job)
    job.call(
        "cortex_m/by_row/depthwise",
        about(job, op),
        {"out": out, **{row.name: row for row in input_rows(job)}},
        {},
        job.apart,
        "row",
        type=f"{tensor.dtype}_t",
        out_type=out.type,
        runs=found,
        carried=any(group.keeps is not None for run in found for group in run.members),
        channels=source.channels,
        step=source.apart(0),
        tail=Tail.of(source),
        out_step=target.apart(0),
        out_tail=Tail.of(target) if target.pixels > 1 else None,
        words=WORDS,
        table=job.program.constants.add(
            op.name, "row_weights", "int32_t", table(values, finish, tensor.zero_point),
            f"{op.name}: for each channel what sums begin with, how they end, weights",
            job.in_flash(name),
        ),
        end=finish,
    )  # fmt: skip


def table(values: IntArray, finish: End, zero: int) -> IntArray:
    """(channels, 3, 3) -> (channels, words), see ``depthwise_group``. Sums are had twice, as what
    ends them wants them."""
    assert finish.quick is not None
    twice, start = 2 * values.astype(np.int64), 2 * finish.starts.astype(np.int64)
    columns = zero * twice.sum(axis=1)  # what is missing where a column is outside
    left, right = start + columns[:, 0], start + columns[:, 2]
    pairs = twice[:, 1] * 65536 + (twice[:, 0] & 0xFFFF)
    ends = twice[:, 2, 2] * 65536 + (twice[:, 2, 0] & 0xFFFF)
    edges = np.stack([left, right, left + columns[:, 2]], axis=1)
    head = [start[:, None], finish.quick.constants, pairs, ends[:, None], twice[:, 2, 1:2]]
    found = np.concatenate([*head, edges], axis=1)
    assert found.shape[1] == WORDS and ENDS == 7
    return wrapped(found)
