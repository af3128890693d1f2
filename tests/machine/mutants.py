"""``python -m tests.machine.mutants RUN BOARD [COUNT]``: how many wrong programs are found.

A mutant of the run's firmware has a byte of the tape, or the offset of one load or store of a
kernel, changed. It is found by the proof, or by the outputs of the input that the proof traces;
those that are neither are printed, to be explained.
"""

import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.machine import said
from pipeline.machine.decode import SP, Row, table
from pipeline.machine.job import Network
from pipeline.machine.program import Program
from pipeline.machine.proof import Traced
from pipeline.plan import serialize
from tests.targets.cortex_m import board_named


def mutants(elf: Path, seed: int, kinds: str = "tape load store") -> Iterator[tuple[str, bytes]]:
    """Yield what was changed, and the changed program, without end."""
    program, content, rng = Program.read(elf), elf.read_bytes(), random.Random(seed)
    network = Network.of(program)
    rows = [row for row in table(program).values() if _changeable(row, program, network.prefix)]
    tape = program.value.get(f"{network.prefix}tape")
    places = {
        "tape": range(tape.address, tape.address + tape.bytes) if tape else (),
        "load": [row.at for row in rows if row.kind == "L"],
        "store": [row.at for row in rows if row.kind == "S"],
    }
    able = [kind for kind in kinds.split() if places[kind]]
    while True:
        kind = rng.choice(able)
        at = rng.choice(places[kind])
        changed = bytearray(content)
        here = _offset(program, content, at)
        if kind == "tape":
            changed[here] = (changed[here] + rng.choice((-1, 1))) % 256
        else:
            changed[here + 2] ^= 1 << rng.randrange(4)  # the offset's lowest bits
        function = program.function_at(at)
        yield f"{kind} {function.name if function else 'tape'} {at:#x}", bytes(changed)


def _changeable(row: Row, program: Program, prefix: str) -> bool:
    """Check for a wide load or store in a kernel with an offset of 12 bits, not to the stack."""
    function = program.function_at(row.at)
    plain = row.kind in "LS" and row.size == 4 and len(row.listed) == 1 and not row.writes
    if not (plain and function and function.name.startswith(prefix)):
        return False
    section = next(s for s in program.loaded if s.address <= row.at < s.address + len(s.content))
    first = int.from_bytes(section.content[row.at - section.address :][:2], "little")
    return first >> 7 == 0x1F1 and first & 15 < SP  # ldr, str, and of bytes and halves, T3


def _offset(program: Program, content: bytes, at: int) -> int:
    section = next(s for s in program.loaded if s.address <= at < s.address + len(s.content))
    return content.index(section.content) + at - section.address


def main(run: Path, board: str, count: int) -> int:
    plan, graph = serialize.load(run / "plan.json"), Graph.load(run)
    size, hardware = json.loads((run / "size.json").read_text()), board_named(board)
    found, elf = Counter[str](), run / "build" / "firmware.elf"
    right = Traced.run(run / "build", size, hardware, plan, graph)
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        build = Path(shutil.copytree(run / "build", Path(name) / "build"))
        for (what, content), _ in zip(mutants(elf, 1), range(count), strict=False):
            (build / "firmware.elf").write_bytes(content)
            try:
                wrong = Traced.run(build, size, hardware, plan, graph)
            except ThimbleError:
                by = "a fault"
            else:
                differs = wrong.found.outputs != right.found.outputs
                proved = wrong.kind != said.NONE
                by = "nothing" if proved and not differs else "outputs" if proved else "the proof"
            found[f"{what.split()[0]} by {by}"] += 1
            if by == "nothing":
                print(what)
    print(dict(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int((sys.argv[3:] or ["200"])[0])))
