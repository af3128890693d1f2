"""C that gives states their initial values, each in its place in the arena, and that takes them out
of it and puts them back."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from math import ceil
from typing import NamedTuple

import numpy as np

from pipeline.codegen.program import Program
from pipeline.errors import ThimbleError
from pipeline.graph.tensor import Tensor
from pipeline.plan.serialize import plan_hash

OWNER_BYTES = 8
"""Of what has been taken out, the first ones say of which network and plan."""


class States(NamedTuple):
    """Statements: ``reset`` writes initial values; ``save`` and ``load`` copy to and from what
    ``saved`` points to, behind its first bytes, each of which has to be ``owner`` at ``n``."""

    reset: list[str]
    save: list[str]
    load: list[str]
    owner: str

    @classmethod
    def of(cls, program: Program) -> States | None:
        """None where there are no states.

        Raises:
            ThimbleError: for a state that is not in one piece of bytes.
        """
        if not program.graph.states:
            return None
        reset, save, load, to = list[str](), list[str](), list[str](), OWNER_BYTES
        for tensor, at in _places(program):
            reset += _initially(program, tensor, at)
            size = ceil(tensor.bytes)
            save.append(f"memcpy(saved + {to}, &nn_arena[{at}], {size});")
            load.append(f"memcpy(&nn_arena[{at}], saved + {to}, {size});")
            to += size
        words = f"{program.graph.hash} {plan_hash(program.plan)}".encode()
        digest = np.frombuffer(sha256(words).digest()[:OWNER_BYTES], np.uint8).astype(np.int64)
        table = program.constants.add("states", "owner", "uint8_t", digest, "whose states they are")
        return cls(reset, save, load, table.read("n"))


def _places(program: Program) -> Iterator[tuple[Tensor, int]]:
    for state, name in zip(program.graph.states, program.plan.states, strict=True):
        buffer = program.plan.buffer[name]
        at = buffer.run(buffer.box)
        if at is None or at % max(2, buffer.nibbles):
            raise ThimbleError(f"the state {state.read} does not lie in one piece of bytes")
        yield program.graph.tensors[state.read], at // 2


def _initially(program: Program, tensor: Tensor, at: int) -> list[str]:
    stored = program.graph.initial[tensor.name].astype(tensor.dtype.stored.newbyteorder("<"))
    values = np.frombuffer(stored.tobytes(), np.uint8)
    if tensor.dtype.bits == 4:
        pairs = np.pad(values & 15, (0, len(values) % 2)).reshape(-1, 2)
        values = pairs[:, 0] | pairs[:, 1] << 4
    if (values == values[0]).all():
        return [f"memset(&nn_arena[{at}], {values[0]}, {len(values)});"]
    table = program.constants.add(
        tensor.name, "initial", "uint8_t", values.astype(np.int64), f"{tensor.name}: initially"
    )
    return [
        f"for (uint16_t n = 0; n < {len(values)}; n++) {{",
        f"    nn_arena[{at} + n] = {table.read('n')};",
        "}",
    ]
