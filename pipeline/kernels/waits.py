"""Cycles of a step beside its kernel's own: the tape that calls it, and waits for flash."""

from __future__ import annotations

from typing import NamedTuple

from pipeline.hardware import Hardware
from pipeline.kernels import cortex_m, thumb
from pipeline.kernels.fast import Fast
from pipeline.kernels.form import Form
from pipeline.kernels.kernel import LEAST_CACHE, Kernel

STEP_CYCLES, ROW_CYCLES = 45.0, 11.0
"""Cycles of a step of the tape, and of each row that it names, on a Cortex-M4: measured as
docs/history/kernels.md says."""

STEP_BYTES = 88
"""Bytes of the program's memory that the tape and what walks it read for a step."""

WORD = 4
"""Bytes of a table that are read at a time: a read of flash where no cache holds any of it."""

SMALL_CACHE, NO_LOOP = 8192, 16
"""Bytes of a cache of instructions that holds few kernels at a time, and not even an innermost loop
(``LEAST_CACHE``: a round of it, and not what is around that)."""

FETCH, PORTABLE, THUMB, BYTE = 0.41, 0.34, 0.075, 0.7
"""Shares of a wait state: that a cycle waits for instructions which no cache holds, of assembly, of
portable C, and of that on a Cortex-M0+; that a byte of a table takes there (simulated F302R8 and
G0B1)."""

BESIDE = 1150
"""Bytes that a cache holds beside a table, of code and of other tables: of 3×3 convolutions whose
weights are 7 to 29 kB, simulated on a Pico."""


class Waits(NamedTuple):
    """Cycles of a byte of flash that no cache holds, of tables, of code and of a loop's code;
    ``cached_bytes``: of a cache that holds tables; ``ways``: of its sets; ``fetch``: for a cycle of
    a core whose cache holds no loop at all; ``portable``: the same, of portable C."""

    table: float = 0.0
    code: float = 0.0
    loop: float = 0.0
    cached_bytes: int = 0
    ways: int = 0
    fetch: float = 0.0
    portable: float = 0.0

    @classmethod
    def of(cls, hardware: Hardware) -> Waits:
        flash = hardware.flash_timing
        in_flash = hardware.weights_in == "flash"
        code_bytes = flash.line_bytes * flash.instruction_lines
        lines, ways = flash.data_lines, flash.data_ways
        if flash.unified:
            lines, ways = flash.instruction_lines, flash.instruction_ways
        cached_bytes = flash.line_bytes * lines
        if thumb.has_thumb(hardware) and not cached_bytes:  # it reads weights byte by byte
            states = flash.wait_states
            return cls(BYTE * states * in_flash, portable=THUMB * states)
        if hardware.cpu not in (*cortex_m.RATES, *thumb.RATES) or not flash.read_bytes:
            return cls()
        each = flash.wait_states / flash.read_bytes
        table = each if cached_bytes else flash.wait_states / WORD
        code, loop = (each * (code_bytes <= most) for most in (SMALL_CACHE, LEAST_CACHE))
        fetch, portable = (each * flash.wait_states * (code_bytes <= NO_LOOP)
                           for each in (FETCH, PORTABLE))  # fmt: skip
        return cls(table * in_flash, code, loop, cached_bytes, ways or lines, fetch, portable)

    def missed(self, size: float) -> float:
        """Return the share of a table of ``size`` bytes that is read from flash each time when it
        is read in order again and again: a set that gives up the line unused for longest misses all
        of its lines once they are one more than its ways."""
        over = size + min(BESIDE, self.cached_bytes // 4) - self.cached_bytes
        return min(max(0.0, over) * (self.ways + 1) / size, 1.0) if size else 0.0


def cycles_of_step(kernel: Kernel, form: Form, hardware: Hardware) -> float:
    """Return the cycles of ``form`` by ``kernel``, with what calls it and what its weights wait
    for. Tables are read once, and again as far as the cache doesn't hold them; code that makes rows
    is read at each call, since others ran before. Rows, and pixels anywhere, are steps of a tape.
    """
    waits, size = Waits.of(hardware), kernel.table_bytes(form)
    missed = waits.missed(size)
    passes = 1 + missed * (kernel.table_passes(form, waits.cached_bytes) - 1) if missed else 1
    fetch = waits.fetch if isinstance(kernel, Fast) else waits.portable
    own = kernel.cycles(form) * (1 + fetch)
    taken = own + waits.table * size * passes + waits.loop * kernel.loop_bytes(form)
    parts = form.parts.values()
    rows = sum(part.extents[0] for part in parts if part.spread in ("rows", "blocks"))
    pixels = isinstance(kernel, Fast) and any(part.spread == "table" for part in parts)
    if not rows and not pixels:
        return taken
    code = waits.code * (STEP_BYTES + kernel.code_bytes)
    return taken + STEP_CYCLES + ROW_CYCLES * rows + code
