"""Depthwise 3x3 of a row in blocks, channel by channel."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from pipeline.codegen.c.expressions import product, total
from pipeline.codegen.cortex_m.by_row.depthwise_unit import ENDS, WORDS, Code
from pipeline.codegen.cortex_m.by_row.rows import input_rows, layouts, out_row
from pipeline.codegen.cortex_m.ending import End, end, wrapped
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.by_row.depthwise import RowDepthwise, units
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
    """Units whose code is the same, one after the other: where they read and write."""

    members: tuple[Code, ...]

    @property
    def code(self) -> Code:
        return self.members[0]

    def at(self, name: str) -> str:
        """C of where in channel 0 unit n reads or writes, ``read_at`` or ``made_at``."""
        first, *others = (getattr(code, name) for code in self.members)
        return total(product("n", others[0] - first) if others else "0", str(first))


def compute(job: Job) -> None:
    op = job.operator(Conv2d)
    source, target = layouts(job, RowDepthwise())
    tensor, name, finish = job.tensor(op.inputs[0]), op.parameters[0], end(job)
    values = job.program.graph.constants[name].reshape(source.channels, 3, 3)
    out = out_row(job)
    codes = (
        Code(unit, op, source, target, tensor.dtype.signed) for unit in units(op, source, target)
    )
    kinds = groupby(codes, key=lambda code: (code.lines, code.stored))
    runs = [Run(tuple(same)) for _, same in kinds]
    job.call(
        "cortex_m/by_row/depthwise",
        about(job, op),
        {"out": out, **{row.name: row for row in input_rows(job)}},
        {},
        job.apart,
        "row",
        type=f"{tensor.dtype}_t",
        out_type=out.type,
        runs=runs,
        carried=max(len(run.code.carried_on) for run in runs),
        given=source,
        made=target,
        tail=Tail.of(source),
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
    """(channels, 3, 3) -> (channels, words), see ``depthwise_unit``. Sums are had twice, as what
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
