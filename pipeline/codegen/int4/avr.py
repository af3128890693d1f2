"""Windows in assembly on AVR: when and how; the text is firmware/kernels/avr/window.c.j2."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.codegen.int4.kernel import WindowKernel
from pipeline.codegen.int4.taps import (
    APART_WEIGHTS,
    MOST_APART,
    Tap,
    divided,
    finds,
    pieces,
    reached_from,
    rows_in_one_piece,
    run_begins,
    taps_of,
)
from pipeline.kernels.avr.window import MOST_CODE, MOST_COUNTED, MOST_RUNS, MOST_SUMS, MOST_TAPS

MAX_REDUCED_LANES = 20
"""Bytes that fit r2…r21 beside the counter r23 and the cursor."""
MAX_UNROLLED_SUMS = 1200
"""Products written out one by one, 8 B of code each, where a run does not end at a whole byte."""
MAX_ROWS = 32
"""Most rows of a window in a loop; each adds a comparison and a branch of limited reach."""
MAX_ELEMENTS = 128
"""Nibbles that ``ldd`` reaches from a pixel's first byte."""
RJMP_WORDS = 2047
"""Reach of ``rjmp``."""


@dataclass(frozen=True)
class Start:
    """What a lane's sum begins with, where its bias is known when code is generated.

    ``((sum << left) + bias) / 2**right``, halves rounded to even, is a shift of the sum alone, by
    ``right - left``, if it begins with ``bias >> left``: the bits of the bias below that only tell
    whether a half can be left over. Where none can, half of what the shift drops is in the start.

    Attributes:
        ties: a half may be left over: it is rounded to even at the end.
    """

    value: int
    ties: bool

    @classmethod
    def of(cls, bias: int, left_shift: int, shift: int) -> Start:
        """``shift``: to the right, what is left of it; at least 1."""
        value, rest = bias >> left_shift, bias % (1 << left_shift)
        return cls(value, True) if not rest else cls(value + (1 << (shift - 1)), False)


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """Facts for the template. Strides are in nibbles, or in bytes of ``nn_places``; those of
    ``nn_window``, the addresses of the window's pixels in SRAM, are always 2 and 0.

    Attributes:
        code: weights are instructions; ``starts``: of each lane, what its sum then begins with.
        apart: X, Y and Z point to pixels, weights and the cursor.
        unrolled: each run has code of its own; ``runs``: the taps of each, by parity.
        finds: C that puts the window's pixels into ``nn_window``, where they are in rows.
        pieces: of ``taps`` each, that a run consists of; their code is a loop in that of the runs.
    """

    kernel: WindowKernel
    code: bool
    starts: tuple[Start, ...]
    unrolled: bool
    apart: bool
    finds: str
    taps: int
    pieces: int
    grid: tuple[int, int]
    runs: tuple[dict[int, tuple[Tap, ...]], ...]
    step: int
    jump: int
    stride_expressions: tuple[str, str]

    @property
    def mac(self) -> bool:
        return self.kernel.window.mac

    @property
    def lanes(self) -> int:
        return len(self.kernel.lanes.channels)

    @property
    def exact(self) -> tuple[int, ...]:
        """Pairs of lanes that are summed apart."""
        lanes = self.kernel.lanes
        return tuple(range(lanes.pairs)) if self.code else lanes.exact

    @property
    def parities(self) -> tuple[int, ...]:
        """The nibbles of a byte that pixels begin in."""
        return tuple(self.runs[0])

    @property
    def found(self) -> bool:
        """The window's pixels are in ``nn_window``."""
        return self.kernel.in_kind == "rows"

    @property
    def table(self) -> bool:
        """The cursor is an address in a table of pixels."""
        return self.kernel.in_kind != "affine"

    @property
    def run_bytes(self) -> int:
        """Count the bytes of a run's weights."""
        return self.pieces * self.taps * self.lanes // 2

    @property
    def shift(self) -> int:
        """To the right, of what ends a sum."""
        requant = self.kernel.window.requant
        return requant.right_shift - (requant.left_shift if self.starts else 0)

    @property
    def ends_differ(self) -> bool:
        """Check whether Z's low byte tells after which run it is; not where weights are code."""
        runs = self.grid[0] * self.grid[1]
        return len({run * self.run_bytes % 256 for run in range(runs)}) == runs

    @property
    def counts(self) -> bool:
        """Check whether r23 counts the runs that are left."""
        return not self.mac or not (self.code or self.unrolled or self.ends_differ)

    @property
    def marks(self) -> tuple[str, ...]:
        """List what the progress register shows after the last run of each row of the window."""
        rows, columns = self.grid
        if self.counts:
            return tuple(str((rows - 1 - row) * columns) for row in range(rows))
        ends = (row * columns * self.run_bytes for row in range(1, rows + 1))
        return tuple(f"lo8(%[weights]+{end})" for end in ends)

    @property
    def gone_on(self) -> int:
        """By how far Z has gone on within a run."""
        return sum(tap.goes_on for tap in next(iter(self.runs[0].values())))

    @property
    def cursor_in_ram(self) -> bool:
        return self.mac and not self.code and self.lanes == MOST_SUMS

    @property
    def cursor(self) -> int:
        """The register pair where it is kept, if any: Z where nothing else needs that."""
        return 30 if self.apart or (self.code and self.table) else 24

    @property
    def pixel(self) -> int:
        """The register pair that points to a pixel."""
        return 26 if self.apart else 28

    @property
    def weight(self) -> int:
        """The register that weights are read into."""
        return APART_WEIGHTS if self.apart else 27

    @property
    def keeps_z(self) -> bool:
        """Z holds the next weights, or the cursor."""
        return (self.mac and not self.unrolled) or self.cursor == 30

    @property
    def placed(self) -> bool:
        """Check whether what is known of a pixel is an entry of ``nn_places``."""
        return self.table and not self.found

    @property
    def fixed(self) -> bool:
        """The cursor stays where it begins; each run knows how far its pixels are from there."""
        return self.cursor_in_ram and self.unrolled and self.table and not self.kernel.varies

    def ahead(self, run: int) -> int:
        """Say how far a run's pixels are ahead of the first one's, where they are ``fixed``."""
        row, column = divmod(run, self.grid[1])
        return row * (self.grid[1] * self.step + self.jump) + column * self.step

    def run_begins(self, run: int) -> int:
        """Return where the pointer to weights is for a run, in bytes of them."""
        reached = reached_from if self.apart else run_begins
        return reached(run, self.taps, self.lanes)

    def moves(self, run: int) -> bool:
        """Check whether ``run_begins`` differs from that of the run before."""
        return run == 0 or self.run_begins(run) != self.run_begins(run - 1)

    @property
    def cleared(self) -> int:
        if not self.mac:
            return self.lanes + self.lanes % 2
        return 2 * self.lanes + (0 if self.code else 2)

    @property
    def jump_over_run(self) -> str:
        """The instruction that leaves a run's code behind, or all code for scattered pixels."""
        run = max(sum(_words(self, tap) for taps in r.values() for tap in taps) for r in self.runs)
        scattered = GATHER_WORDS * self.taps if self.kernel.scattered else 0
        return "rjmp" if run + scattered + RUN_WORDS < RJMP_WORDS else "jmp"

    @property
    def ends_by_call(self) -> bool:
        """Check whether all lanes end in one piece of code. Weights that lie in flash as data are
        many, so that flash is what the network has least of."""
        short = self.kernel.one_ending or self.kernel.constants_in_flash
        return self.mac and short and not (self.code or self.kernel.wide)

    @property
    def ends_in_place(self) -> bool:
        """Check whether sums whose range needs no centre are biased in their own registers."""
        return not (self.ends_by_call or self.kernel.wide or self.kernel.window.target.zero_point)

    @property
    def results(self) -> tuple[int, ...]:
        """The register of each channel's result."""
        if not self.mac:
            return tuple(2 + channel for channel in range(self.lanes))
        return tuple(
            2 + 2 * self.kernel.lanes.channels.index(channel) for channel in range(self.lanes)
        )

    @property
    def used(self) -> set[int]:
        found = set(range(2, 2 + self.cleared)) | ({23} if self.counts else set())
        found |= {22} if self.pieces > 1 else set()
        if not self.cursor_in_ram and self.cursor == 24:
            found |= {24, 25}
        every = [tap for run in self.runs for taps in run.values() for tap in taps]
        found |= {tap.copy for tap in every if tap.copy}
        found |= {self.weight, *(tap.register for tap in every)} if self.apart else set()
        codes = (tap.code for tap in every)
        multiples = {register for code in codes if code for register, _, _ in code.formed}
        return found | (multiples & set(range(2, 26)))

    @property
    def saved(self) -> tuple[int, ...]:
        return (*sorted(r for r in self.used if r >= 18), 28, 29)

    def twin_only(self, weights_are_code: bool) -> tuple[str, ...]:
        """Arrays that only portable C reads. Another kernel of the same operator may read the
        weights even if this one does not: ``weights_are_code`` speaks for all of them."""
        kinds = ("weights", *(["bias"] if self.starts else [])) if weights_are_code else ()
        return (f"{self.kernel.name}__channels", *map(self.kernel.array, kinds))

    @property
    def clobbered(self) -> tuple[int, ...]:
        return tuple(sorted(r for r in self.used if r < 18))

    @property
    def addresses(self) -> dict[str, str]:
        """C of the addresses in the assembly, by the names that it has for them: what the compiler
        knows of it may be renamed or moved, as link-time optimization does."""
        scattered = self.kernel.scattered or self.kernel.out_scattered
        reads = self.mac and not self.code
        known = {
            "arena": ("nn_arena", True),
            "weights": (self.kernel.array("weights"), reads),
            "bias": (self.kernel.array("bias"), self.mac and not self.starts),
            "scatter": ("nn_scatter", scattered),
            "gather": ("nn_gather", self.kernel.scattered),
            "cursor": ("&nn_cursor", self.cursor_in_ram),
            "step": ("&nn_step", self.kernel.varies),
            "jump": ("&nn_jump", self.kernel.varies),
        }
        return {name: place for name, (place, used) in known.items() if used}

    @property
    def shared(self) -> set[str]:
        names = {"nn_cursor"} if self.cursor_in_ram else set()
        names |= {"nn_step", "nn_jump"} if self.kernel.varies else set()
        names |= {"nn_places:"} if self.placed else set()
        names |= {f"nn_window:{self.grid[0] * self.grid[1]}"} if self.found else set()
        return names | ({f"nn_gather:{(self.taps + 1) // 2}"} if self.kernel.scattered else set())


def window(kernel: WindowKernel) -> Assembly | None:
    """The assembly for ``kernel``, or None where it knows none and the portable C is compiled."""
    spec, mac = kernel.window, kernel.window.mac
    most = MOST_SUMS if mac else MAX_REDUCED_LANES
    odd = kernel.wide and (kernel.out_scattered or kernel.out_parities > {0})
    if not kernel.suits or odd or len(kernel.lanes.channels) > most:
        return None
    first, lanes = kernel.calls[0], len(kernel.lanes.channels)
    rows, columns, taps = *spec.kernel, spec.depth
    step, jump = spec.dilation[1] * first.column, spec.dilation[0] * first.row
    jump -= columns * step
    flow = f"{spec.dilation[1]} * column"
    expressions = (flow, f"{spec.dilation[0]} * row - {columns} * ({flow})")
    if rows_in_one_piece(kernel):
        # every row of the window is one run; the runs are one column of them
        rows, columns, taps = 1, rows, columns * taps
        step, jump = spec.dilation[0] * first.row, 0
    elif taps > kernel.most_taps and not kernel.written_out and (some := divided(kernel)):
        columns, taps, step = columns * taps // some, some, some
        jump = spec.dilation[0] * first.row - columns * step
    number = rows * columns
    code = _as_code(kernel)
    unrolled = code or (mac and (kernel.written_out or bool(taps * lanes % 2)))
    parts = 1 if unrolled else pieces(kernel)
    taps //= parts
    found, table = kernel.in_kind == "rows", kernel.in_kind != "affine"
    step, jump = (1, 0) if found else (step, jump)
    placed = table and not (found or kernel.scattered or kernel.constants_in_flash)
    apart = unrolled and placed and lanes <= MOST_APART
    scale = 2 if table else 1
    parities = tuple(sorted(kernel.parities | ({0} if kernel.scattered else set())))
    result = Assembly(
        kernel=kernel, code=code, starts=starts(kernel) if code else (), unrolled=unrolled,
        apart=apart, finds=finds(kernel, rows * columns // spec.kernel[0]) if found else "",
        taps=taps, pieces=parts, grid=(rows, columns),
        runs=tuple(
            {parity: taps_of(kernel, code, apart, taps, run, parity, number) for parity in parities}
            for run in range(number if unrolled else 1)
        ),
        step=scale * step, jump=scale * jump, stride_expressions=expressions,
    )  # fmt: skip
    return result if _fits(result) else None


def starts(kernel: WindowKernel) -> tuple[Start, ...]:
    """Return each lane's start; none where a sum is not shifted to the right."""
    spec, requant = kernel.window, kernel.window.requant
    shift = requant.right_shift - requant.left_shift
    if spec.bias is None or shift < 1:
        return ()
    zero = spec.target.zero_point << requant.right_shift
    biases = (int(spec.bias[channel]) + zero for channel in kernel.lanes.channels)
    return tuple(Start.of(bias, requant.left_shift, shift) for bias in biases)


RUN_WORDS, GATHER_WORDS = 64, 18
"""Bounds of what a run takes beside its taps, and of what a scattered pixel takes an element."""


def _words(a: Assembly, tap: Tap) -> int:
    """Return a bound of the words of code of one tap."""
    if tap.code:
        return 4 + 2 * (len(tap.code.formed) + len(tap.code.added))
    if not a.mac:
        return 6
    return 10 + 8 * a.kernel.lanes.pairs + 3 * len(a.exact) + (7 if tap.single else 0)


def _as_code(kernel: WindowKernel) -> bool:
    """Weights in flash become instructions where they are used often and are few."""
    weights = kernel.window.weights
    if weights is None or not kernel.constants_in_flash or len(kernel.out_addresses) < 2:
        return False
    return (kernel.of or weights.size) * max(1, len(kernel.parities)) <= MOST_CODE


def _fits(a: Assembly) -> bool:
    """Displacements, and a register for the runs' number where their ends do not tell."""
    runs = a.grid[0] * a.grid[1]
    elements = [tap.element for run in a.runs for taps in run.values() for tap in taps]
    if runs > MOST_RUNS or max(elements) >= MAX_ELEMENTS:
        return False
    if a.code:
        return True
    if a.unrolled:
        sums = runs * a.taps * a.lanes * len(a.parities)
        return sums <= MAX_UNROLLED_SUMS and a.run_bytes < 63
    if a.taps > MOST_TAPS or a.grid[0] > MAX_ROWS:
        return False
    if a.pieces > 1 and a.lanes > MOST_COUNTED:
        return False
    return not (a.mac and a.counts) or a.lanes <= MOST_COUNTED
