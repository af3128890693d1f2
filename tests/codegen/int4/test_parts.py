"""The small pieces: lines, permutations, packed weights, views, and C text."""

import subprocess
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.codegen.c.order import straight
from pipeline.codegen.generate import HEADERS
from pipeline.codegen.int4.avr import Start
from pipeline.codegen.int4.multiples import recipe, tap_code
from pipeline.codegen.int4.packing import NARROW, NIBBLE_OFFSET, assign, lane_order, pack_nibbles
from pipeline.codegen.int4.stretches import stretches, table
from pipeline.codegen.int4.views import ROW, SCATTERED, PixelTables, as_pixels
from pipeline.codegen.permutations import Permutations, decompose, successor
from pipeline.codegen.render import WIDTH, asm, rows, static_source
from pipeline.errors import ThimbleError
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from pipeline.graph.tensor import DType, Tensor
from pipeline.kernels import Form, choose
from pipeline.plan.maps import Rows
from pipeline.plan.vocabulary import Affine, Buffer, Table
from tests.codegen.support import SANITIZERS, WARNINGS, uno, write
from tests.comparing import equal
from tests.programs import said
from tests.strategies.chains import Chain

positions = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=40)


@given(positions)
def test_lines_spell_out_the_positions(given_positions: list[tuple[int, int]]) -> None:
    spelled = [
        tuple(a + n * d for a, d in zip(line.start, line.step, strict=True))
        for line in straight(given_positions)
        for n in range(line.number)
    ]
    assert spelled == given_positions


def test_lines_are_long_but_fit_a_byte() -> None:
    row = [(x, 3 * x) for x in range(600)]
    assert [line.number for line in straight(row, 255)] == [255, 255, 90]


@given(st.permutations(range(12)), st.integers(0, 12))
def test_cycles_and_chains_carry_out_a_copy(order: list[int], count: int) -> None:
    """Some places are only read, some only written, as in a move that shifts a tensor."""
    sources, targets = list(range(count)), order[:count]
    memory = {place: f"old {place}" for place in range(12)}
    wanted = memory | {t: memory[s] for s, t in zip(sources, targets, strict=True)}
    cycles, chains = decompose(sources, targets)
    for places, closed in [*((c, True) for c in cycles), *((c, False) for c in chains)]:
        kept = memory[places[0]]
        for to, source in pairwise(places):
            memory[to] = memory[source]
        if closed:
            memory[places[-1]] = kept
    assert memory == wanted


@given(st.integers(2, 12), st.integers(2, 12), st.randoms(use_true_random=False))
def test_successors_of_transposes_and_herringbones(h: int, w: int, random: Random) -> None:
    """Against where a pixel is in a transposed image, and in shells of row, then column."""
    shells = [
        pixel
        for n in range(w)
        for pixel in ([(n, c) for c in range(n, w)] + [(r, n) for r in range(n + 1, w)])
    ]
    held = [shells.index(divmod(i, w)) for i in range(w * w)]
    moved = [w * w - 1 - place for place in reversed(held)]
    transposed = [r * w + c for c in range(w) for r in range(h)]
    for sources, known in ((transposed, (h, w)), (held, (0, w)), (moved, (1, w))):
        targets = random.sample(range(len(sources)), len(sources))
        taken = np.array([sources[place] for place in targets])
        if w > 2 or known[0] > 2:  # else one of them is another, too
            assert successor(taken, np.array(targets)) == known
    for sources in ([1, 2, 0], [2, 7, 1]):  # a cycle; a chain from beyond
        assert successor(np.array(sources), np.arange(3)) is None


@given(st.integers(1, 11), st.integers(1, 9), st.integers(0, 1000))
def test_packed_weights_unpack(channels: int, taps: int, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(-8, 8, (channels, taps))
    lanes = assign(15 * np.minimum(weights, 0).sum(1), 15 * np.maximum(weights, 0).sum(1))
    assert sorted(lanes.channels) == list(range(channels))
    packed = pack_nibbles(weights, lanes)
    assert len(packed) == -(-channels * taps // 2)
    nibbles = iter([n for byte in packed for n in (byte & 15, byte >> 4)])
    for tap in range(taps):
        for lane in lane_order(channels, tap):
            assert next(nibbles) - NIBBLE_OFFSET == weights[lanes.channels[lane], tap]


@given(st.integers(1, 11), st.integers(1, 5), st.integers(1, 120), st.integers(0, 1000))
def test_a_byte_product_serves_both_lanes_of_a_pair(
    channels: int, scale: int, taps: int, seed: int
) -> None:
    """The identity the assembly relies on, with sums kept modulo 2**16."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-scale, scale + 1, (channels, taps))
    a = rng.integers(0, 2, taps) * 15
    lanes = assign(15 * np.minimum(weights, 0).sum(1), 15 * np.maximum(weights, 0).sum(1))
    for pair in range(lanes.pairs):
        low, high = (weights[lanes.channels[2 * pair + n]] + NIBBLE_OFFSET for n in (0, 1))
        whole, partial = (a * (16 * high + low)).sum() % 65536, (a * low).sum() % 65536
        left = (whole - partial - 16 * NIBBLE_OFFSET * a.sum() + 16 * lanes.centre[pair]) % 65536
        signed = (left - 65536 if left >= 32768 else left) // 16 - lanes.centre[pair]
        if pair not in lanes.exact:
            assert signed == (a * (high - NIBBLE_OFFSET)).sum()


def test_wide_lanes_are_low_or_exact() -> None:
    low, high = np.array([-10, -4000, -10, -4000]), np.array([10, 4000, 10, 4000])
    lanes = assign(low, high)
    assert lanes.channels == (1, 0, 3, 2) and not lanes.exact
    assert assign(np.full(3, -NARROW), np.full(3, 0)).exact == (0,)
    assert assign(np.array([0, -3000]), np.array([0, 1000])).centre == (3000 - NARROW // 2,)


@given(st.lists(st.integers(-8, 8), min_size=1, max_size=11), st.integers(2, 7), st.integers(0, 15))
def test_weights_as_code_add_the_products(weights: list[int], free: int, a: int) -> None:
    """Interpret the instructions; no multiple overflows its byte."""
    registers = {26: a}
    code = tap_code(weights, 26, range(100, 100 + free))
    assert len(code.formed) <= free
    for register, first, second in code.formed:
        registers[register] = registers[first] + registers[second]
        assert registers[register] < 256
    sums = [0] * len(weights)
    for operation, lane, register in code.added:
        sums[lane] += registers[register] if operation == "add" else -registers[register]
    assert sums == [w * a for w in weights]


@given(st.integers(-128, 127), st.integers(0, 4), st.integers(1, 9), st.integers(-3000, 3000))
def test_sums_that_begin_with_their_bias(bias: int, left: int, shift: int, total: int) -> None:
    """Compute as the assembly does: what the graph does, for results that are not negative."""
    start = Start.of(bias, left, shift)
    wanted = PowerOfTwo(left, left + shift).apply(np.array(total), bias)
    found = start.value + total
    if start.ties:
        found += (1 << (shift - 1)) - 1 + (found >> shift & 1)
    assert max(found >> shift, 0) == max(int(wanted), 0)


def test_recipes_are_as_cheap_as_can_be() -> None:
    assert recipe([1, -1, 0], 6).cycles == 4
    assert recipe([2], 6).cycles == 4  # a + a, twice an addition; a register would cost the same
    assert recipe([2, -2], 6).cycles == 6
    assert recipe([7, 7, 7, 8], 6).cycles == 2 * 4 + 2 * 3 + 4  # 2, 3, 4, 7; 8 = 1 + 7
    assert recipe([7, 7, 7, 8], 3).cycles == 2 * 3 + 4 * 3 + 2  # 2, 4, 8; 7 = 8 - 1
    assert recipe(list(range(-8, 8)), 6).cycles <= 2 * 6 + 2 * 15 + 4


def _buffer(shape: tuple[int, ...], map: Affine | Table, bits: int = 4) -> Buffer:
    return Buffer("b", "t", "sram", shape, bits, map)


def rows_of(width: int, pitch: int, channel: int = 1, rows: int = 3) -> Buffer:
    """Rows in no order, with gaps, of pixels of two channels."""
    cells = tuple(5 + row * 5 % rows * (width * pitch + 1) for row in range(rows))
    return Buffer("b", "t", "sram", (rows, width, 2), 4, Rows(cells, (pitch, channel)))


@pytest.mark.parametrize(
    ("buffer", "kind"),
    [
        (_buffer((2, 3, 2), Affine(5, (6, 2, 1))), "affine"),
        (_buffer((3, 2, 2), Affine(5, (2, 6, 1))), "affine"),
        (_buffer((2, 2, 2), Table((0, 1, 2, 3, 4, 5, 6, 7))), "affine"),
        (_buffer((2, 2, 2), Table((6, 7, 0, 1, 9, 4, 2, 3))), "table"),
        (_buffer((4, 2, 2), Affine(0, (4, 2, 1), (2, 0, 0))), "table"),
        (_buffer((2, 2, 2), Affine(0, (2, 1, 4))), "table"),
        (_buffer((5,), Affine(8, (4,)), 16), "affine"),
        (_buffer((3,), Table((8, 0, 4)), 16), "table"),
        (rows_of(6, 2), "rows"),
        (rows_of(6, 5), "rows"),
        (rows_of(ROW, 2), "rows"),
        (rows_of(ROW + 1, 2), "table"),
        (rows_of(2, 255), "rows"),
        (rows_of(2, 256), "table"),
        (rows_of(4, 2, 9), "table"),
        (rows_of(3, 2, rows=(1 << 16) // ROW - 1), "rows"),
        (rows_of(3, 2, rows=(1 << 16) // ROW), "table"),  # one row is another buffer's
    ],
)
def test_views_find_every_element(buffer: Buffer, kind: str) -> None:
    tables = PixelTables(rows=[99])
    tables.pixels.append(99)  # of another buffer
    view = tables.view(buffer)
    assert view.kind == kind
    elements = as_pixels(buffer)
    for y, x, c in np.ndindex(elements.shape):
        address = tables.address(view, y, x)
        found = address + c * buffer.nibbles
        if address >= SCATTERED:
            found = tables.scatter[address - SCATTERED + c]
        assert found == elements[y, x, c] and 0 <= view.position(y, x) < 1 << 16


def test_c_text() -> None:
    text = rows(range(1000))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert [int(n) for n in text.replace(",", " ").split()] == list(range(1000))
    assert asm("1:\nadd r0, r1 ; sum\n; alone\n\n").splitlines() == [
        '        "1:\\n"',
        '        "    add r0, r1\\n" /* sum */',
        "        /* alone */",
    ]


ONCE = FixedPoint.of([2.0**-20])
"""Requantization of sums that are shifted left by 20."""


@pytest.mark.parametrize("dtype", ["uint4", "int4"])
def test_the_table_has_every_pair(dtype: str) -> None:
    kind = DType.parse(dtype)
    tensors = {
        "a": Tensor("a", (16, 16, 1), kind, (1.0,), 0),
        "b": Tensor("b", (16, 16, 1), kind, (1.0,), 3),
        "c": Tensor("c", (16, 16, 1), kind, (1.0,), -1),
    }
    scales = (FixedPoint.of([0.5]), FixedPoint.of([0.7]))
    op = Add("c", ("a", "b"), "c", operands=("a", "b"), operand_requants=scales, requant=ONCE)
    found = table(op, tensors)
    nibbles = [found[n // 2] >> 4 * (n % 2) & 15 for n in range(256)]
    for a, b in product(range(kind.minimum, kind.maximum + 1), repeat=2):
        given = zip(scales, (a, b - 3), strict=True)
        parts = [s.apply(np.array([x << 20])).item() for s, x in given]
        wanted = ONCE.apply(np.array([sum(parts)])).item() - 1
        wanted = min(max(wanted, kind.minimum), kind.maximum)
        assert nibbles[(a & 15) * 16 + (b & 15)] == wanted & 15


def test_what_would_be_overwritten_is_refused() -> None:
    cells = [np.array([[4, 5, 6], [0, 1, 2], [5, 6, 7]])]
    with pytest.raises(ThimbleError, match="before it reads the next"):
        stretches("sum", cells)
    assert stretches("sum", [cells[0][:2], cells[0][:2] + 3]) == [(4, 0, 6)]
    assert stretches("sum", [cells[0][:2], cells[0][:2] + 4]) == [(4, 0, 3), (8, 4, 3)]


def test_a_tensor_and_itself() -> None:
    chain = Chain((4, 4, 3)).conv("a", 3, 1)
    half, more = FixedPoint.of([0.5]), FixedPoint.of([0.75])
    requants = {"operand_requants": (half, more), "requant": ONCE}
    op = Add("sum", ("a",), "sum", operands=("a", "a"), **requants)  # type: ignore[arg-type]
    found = table(op, chain.add(op, "uint4").tensors)
    assert [found[n // 2] >> 4 * (n % 2) & 15 for n in (0, 0x22, 0x44, 0xFF)] == [0, 3, 5, 15]


def test_what_is_refused() -> None:
    graph = Chain((4, 4, 3)).conv("a", 3, 1).conv("b", 3, 1).plus("sum", "a").graph()
    wide = replace(graph.tensors["b"], dtype=DType(8, False))
    graph = replace(graph, tensors={**graph.tensors, "b": wide})
    with pytest.raises(ThimbleError, match=r"two activations of 4 bits and of one shape"):
        choose(Form.whole(graph.operators[-1], graph), uno("flash"))


UNITS = (1, 2, 3, 4, 5, 8, 11, 16, 17, 18, 19)
PIECES = 9
PROGRAM = Path(__file__).with_name("parts.c").read_text()
RNG = np.random.default_rng(1)
SOURCES = list(range(PIECES - 1))
TARGETS = [*RNG.permutation(PIECES - 3).tolist(), PIECES - 2, PIECES - 1]
CYCLES, CHAINS = decompose(SOURCES, TARGETS)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("permute")
    permutes, cases = Permutations(), ""
    for unit, base in product(UNITS, range(2)):
        each = base + np.arange(unit)
        ends = (unit * np.array(side)[:, None] + each for side in (SOURCES, TARGETS))
        cases += f"case {2 * unit + base}: {permutes.call(next(ends), next(ends), 1)} break;"
    assert permutes.bytes and permutes.nibbles >= set(UNITS)
    size = PIECES * max(UNITS) // 2 + 2
    known = {"permutes": permutes.code(), "cases": cases, "bytes": size}
    headers = {name: static_source(HEADERS[name]) for name in ("nn_cells.h", "nn_memory.h")}
    write(folder, {"main.c": PROGRAM % known, **headers})
    said(["cc", *WARNINGS, *SANITIZERS, "main.c", "-o", "program"], folder)
    return folder / "program"


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("unit", UNITS)
def test_pieces_change_places(unit: int, base: int, program: Path) -> None:
    """Cycles and chains; cells around the pieces, down to the nibble, stay what they are."""
    assert CYCLES and CHAINS
    size = (base + PIECES * unit + 2) // 2
    before = np.random.default_rng(unit).integers(0, 16, 2 * size)
    wanted = before.copy()
    pieces = before[base : base + PIECES * unit].reshape(PIECES, unit)
    wanted[base : base + PIECES * unit].reshape(PIECES, unit)[TARGETS] = pieces[SOURCES]
    sent = (before[::2] | before[1::2] << 4).astype(np.uint8).tobytes()
    words = [program, str(2 * unit + base), str(size)]
    done = subprocess.run(words, input=sent, capture_output=True, check=True)
    after = np.frombuffer(done.stdout, np.uint8)
    equal(np.stack([after & 15, after >> 4], 1).reshape(-1), wanted)
