"""C that gives states their initial values, each in its place in the arena."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.arrival import in_one_piece
from pipeline.codegen.program import Program
from pipeline.errors import ThimbleError


def resets(program: Program) -> list[str]:
    """Statements, one or a few for each state.

    Raises:
        ThimbleError: for a state that is not in one piece of bytes.
    """
    lines = list[str]()
    for state, name in zip(program.graph.states, program.plan.states, strict=True):
        tensor, at = program.graph.tensors[state.read], in_one_piece(program.plan.buffer[name])
        if at is None:
            raise ThimbleError(f"the state {state.read} does not lie in one piece of bytes")
        stored = program.graph.initial[state.read].astype(tensor.dtype.stored.newbyteorder("<"))
        values = np.frombuffer(stored.tobytes(), np.uint8)
        if (values == values[0]).all():
            lines.append(f"memset(&nn_arena[{at}], {values[0]}, {len(values)});")
            continue
        table = program.constants.add(
            state.read, "initial", "uint8_t", values.astype(np.int64), f"{state.read}: initially"
        )
        lines += [
            f"for (uint16_t n = 0; n < {len(values)}; n++) {{",
            f"    nn_arena[{at} + n] = {table.read('n')};",
            "}",
        ]
    return lines
