"""Write what the plugin needs to know of a program and its plan.

``firmware/simulators/qemu_labels.c`` says how the words of a job follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.machine.arms import arms
from pipeline.machine.declared import Declared
from pipeline.machine.decode import MOST_LISTED, Row
from pipeline.machine.program import OBJECT, WRITABLE, Program, Symbol

OTHER, CALLS = 0xFFFF, 0xFFFE
SOURCES = 4
READ, WRITE, NEAR = 1, 2, 4
GIVEN, MADE = 0, 1
"""Bytes of an input, and of an output."""
PORT = ("ram_start", "stack_top", "flash_start", "flash_bytes", "weights_start", "weights_bytes")
"""Names of the linker's, behind ``port_``."""
CALLERS = ("init", "invoke", "feed", "run", "steps")
"""Ends of the names of functions that call those of layers."""
LONGEST = 48
"""Characters of an operator's name that its functions' names have."""

Rows = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Network:
    """The parts of a program that are the network's: its names begin with ``prefix``."""

    program: Program
    prefix: str

    @classmethod
    def of(cls, program: Program) -> Network:
        """
        Raises:
            ThimbleError: when there is none.
        """
        found = [name for name in program.value if name.endswith("_invoke")]
        if not found:
            raise ThimbleError("the program has no network: run stages generate and build again")
        return cls(program, min(found, key=len).removesuffix("invoke"))

    def named(self, name: str) -> Symbol:
        return self.program.value[self.prefix + name]

    @cached_property
    def zones(self) -> Rows:
        """Memory that it may access: tables, its variables with the arena, the stack."""
        fixed = [s for s in self.program.loaded if not s.flags & WRITABLE]
        tables = _side_by_side([(s.address, len(s.content)) for s in fixed])
        variables = [
            (s.address, s.bytes, READ | WRITE)
            for s in self.program.symbols
            if s.kind == OBJECT
            and s.name.startswith(self.prefix)
            and not any(start <= s.address < start + count for start, count in tables)
        ]
        port = {name: self.program.value[f"port_{name}"].address for name in PORT}
        stack = port["ram_start"], port["stack_top"] - port["ram_start"], READ | WRITE
        constants = [(port[f"{n}_start"], port[f"{n}_bytes"], NEAR) for n in ("flash", "weights")]
        return [*((*table, READ) for table in tables), *variables, stack, *constants]

    def owners(self, ops: Sequence[str]) -> dict[int, int]:
        """Map each function's address to the number of its operator in ``ops``, or to ``CALLS``."""
        stems = {f"{self.prefix}{_plain(op)}": n for n, op in enumerate(ops) if op}
        found = dict[int, int]()
        for function in self.program.functions:
            name = function.name.split(".")[0]  # .part.0 and the like are the compiler's
            able = [stem for stem in stems if f"{name}_".startswith(f"{stem}_")]
            if able:
                found[function.address] = stems[max(able, key=len)]
            elif name.removeprefix(self.prefix) in CALLERS:
                found[function.address] = CALLS
        return found


def _side_by_side(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join starts and counts of bytes without a gap between them."""
    found = list[tuple[int, int]]()
    for start, count in sorted(spans):
        if found and sum(found[-1]) == start:
            found[-1] = found[-1][0], found[-1][1] + count
        else:
            found.append((start, count))
    return found


def _plain(name: str) -> str:
    """Return an operator's name as its functions' names begin with it (codegen.constants.Names)."""
    return re.sub(r"[\W_]+", "_", name, flags=re.ASCII).strip("_")[:LONGEST].rstrip("_").lower()


def words(
    network: Network, table: Mapping[int, Row], steps: Sequence[Declared], ends: Rows, feeds: bool
) -> bytes:
    """Write the job's file; ``ends``: bytes of the arena; ``feeds``: nn_feed runs steps."""
    arena, feed = network.named("arena"), network.named("feed").address & ~1 if feeds else 0
    ops = list(dict.fromkeys(step.op for step in steps))
    owners = network.owners(ops)
    callable_ = {ops[n] for n in owners.values() if n != CALLS}
    declared, first = list[tuple[int, int, int]](), 0
    for step in steps:
        owner = ops.index(step.op) if step.op in callable_ else CALLS
        declared.append((owner, first, len(step.ranges)))
        first += len(step.ranges)
    instructions = list(_instructions(network.program, table, owners))
    parts = [
        [(network.named("init").address & ~1, feed, arena.address, arena.bytes)],
        *_counted(network.zones),
        *_counted(ends),
        *_counted(declared),
        *_counted([each for step in steps for each in step.ranges]),
        *_counted(instructions),
    ]
    flat = chain.from_iterable(chain.from_iterable(parts))
    return np.fromiter(flat, np.uint32).astype("<u4").tobytes()


def _counted(rows: Rows) -> tuple[Rows, Rows]:
    return [(len(rows),)], rows


def _instructions(
    program: Program, table: Mapping[int, Row], owners: Mapping[int, int]
) -> Iterator[tuple[int, ...]]:
    ends = {f.address: f.address + f.bytes for f in program.functions}
    owner, end = OTHER, 0
    for at, row in sorted(table.items()):
        if at in ends or at >= end:
            owner, end = owners.get(at, OTHER), ends.get(at, at)
        sources = list(chain.from_iterable(row.sources))
        yield (
            at, row.size, ord(row.kind), row.condition, row.sets, row.flags, row.variable,
            row.extends, row.writes, row.addresses, row.scale, owner,
            int(at in owners and owner != CALLS),
            *sources, *[0] * (2 * SOURCES - len(sources)), len(row.sources), len(row.listed),
            *row.listed, *[0] * (MOST_LISTED - len(row.listed)), *astuple(arms(table, row)),
        )  # fmt: skip
