"""The simulated chip: hand-counted cycles, the paced line, noise, and writes that must not be; and
cycles by layer: of the steps of nn_invoke, of functions, and of an image without zeros."""

import json
import struct
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.strategies.in_place import Herringbone
from pipeline.targets import device, simavr, toolchain
from pipeline.targets.layers import REST, Layers, of_functions
from pipeline.targets.protocol import Command
from pipeline.targets.runs import Runs
from pipeline.targets.simavr import Chip, Exchange
from pipeline.targets.toolchain import Size
from pipeline.targets.zeros import BYTE, IF_ZERO, TEST, UNLESS_ZERO, no_skips
from tests.comparing import equal
from tests.programs import program
from tests.strategies.chains import Chain
from tests.targets.conftest import (
    MODEL,
    expected,
    generate,
    load_hardware,
    model,
    needs_avr,
    on_avr,
)
from tests.targets.cortex_m import built
from tests.tiers import quick

pytestmark = [needs_avr, pytest.mark.usefixtures("no_host")]
IMAGE = bytes(range(100, 116))


def build(folder: Path, hardware: Hardware, source: str) -> tuple[Path, Size]:
    """Only the board's program: quicker than toolchain.build."""
    generated = generate(folder / "generated", hardware, source)
    return folder, toolchain.build(generated, folder, hardware)


def asm(*lines: str) -> str:
    text = "".join(f'"{line}\\n"' for line in lines)
    return f'__asm__ volatile({text} ::: "r0", "r1", "r24", "r25", "r30", "r31");'


CLEAR = "clr r1"
COUNTED = [
    (("nop",), 1),
    (("mul r24, r25", CLEAR), 3),
    (("muls r24, r25", CLEAR), 3),
    (("push r24", "pop r24"), 4),
    (("ldi r30, 0", "ldi r31, 1", "ld r24, Z"), 4),
    (("ldi r30, 0", "ldi r31, 1", "lpm r24, Z+"), 5),
    (("lds r24, 0x0100", "adiw r30, 1", "swap r24"), 5),
    (("ldi r24, 100", "1: dec r24", "brne 1b"), 1 + 100 * 3 - 1),
    (("ldi r24, 1", "ldi r25, 1", "cpse r24, r25", "lds r24, 0x0100"), 2 + 3),
    (("rcall 1f", "rjmp 2f", "1: ret", "2:"), 3 + 2 + 4),
    (("call 1f", "jmp 2f", "1: ret", "2:"), 4 + 3 + 4),
]


def measured(folder: Path, hardware: Hardware, shim: Path, source: str) -> Exchange:
    _, size = build(folder, hardware, source)
    with Chip(shim, folder / "firmware.elf", hardware, size.sections) as chip:
        return chip.ask(Command.INFER, IMAGE)[1]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, arduino: Hardware, shim: Path) -> Exchange:
    return measured(tmp_path_factory.mktemp("empty"), arduino, shim, model())


@pytest.mark.parametrize(("lines", "cycles"), COUNTED, ids=lambda v: str(v)[:30])
def test_cycles_are_those_of_the_instruction_set_manual(
    tmp_path: Path, arduino: Hardware, shim: Path, empty: Exchange, lines: list[str], cycles: int
) -> None:
    """In nn_invoke they count once, in nn_feed once a byte; in the latency the last byte's."""
    source = model(feed=on_avr(asm(*lines)), invoke=on_avr(asm(*lines) + asm(*lines)))
    done = measured(tmp_path, arduino, shim, source)
    assert done.invoke_cycles - empty.invoke_cycles == 2 * cycles
    assert done.feed_cycles - empty.feed_cycles == 16 * cycles
    assert done.latency_cycles - empty.latency_cycles == 3 * cycles


def test_waiting_for_the_line_is_in_no_figure(built: tuple[Path, Size], shim: Path) -> None:
    folder, size = built
    figures = set()
    for baud in (115_200, 1_000_000):
        hardware = load_hardware(baud=baud)
        for line in ("paced", "instant"):
            with Chip(shim, folder / "firmware.elf", hardware, size.sections, line=line) as chip:  # type: ignore[arg-type]
                _, done = chip.ask(Command.INFER, IMAGE)
                figures.add((done.feed_cycles, done.invoke_cycles))
                assert done.byte_cycles == (1360 if line == "paced" else 0)
                assert done.latency_cycles < 2000
    assert len(figures) == 1


@pytest.mark.parametrize(("baud", "byte_cycles"), [(9600, 16640), (115_200, 1360), (500_000, 320)])
def test_the_line_runs_at_the_configured_rate(
    tmp_path: Path, shim: Path, baud: int, byte_cycles: int
) -> None:
    """10 bits of 8 x (UBRR0 + 1) cycles, as the data sheet's table for 16 MHz with U2X0 has it."""
    hardware = load_hardware(baud=baud)
    assert measured(tmp_path, hardware, shim, model()).byte_cycles == byte_cycles


def test_power_on_garbage_is_really_there(tmp_path: Path, arduino: Hardware, shim: Path) -> None:
    """In memory and registers that no start-up code or function sets; no figure depends on it."""
    source = model(
        'static uint8_t nn_left[4] __attribute__((used, section(".noinit")));\n'
        '#ifdef __AVR__\n__attribute__((naked, used, section(".init0"))) static void keep(void) {'
        '__asm__ volatile("out 0x2A, r2");}\n#endif',  # GPIOR1, before anything has run
        invoke=on_avr("for (uint8_t i = 0; i < 4; i++) nn_arena[i] = nn_left[i];")
        + on_avr("nn_arena[4] = GPIOR1;"),
    )
    folder, size = build(tmp_path, arduino, source)
    memory, register, figures = set(), set(), set()
    for seed in range(5):
        with Chip(shim, folder / "firmware.elf", arduino, size.sections, seed=seed) as chip:
            reply, done = chip.ask(Command.INFER, IMAGE)
            memory.add(reply.payload[:4])
            register.add(reply.payload[4])
            figures.add((done.feed_cycles, done.invoke_cycles, done.latency_cycles))
    assert len(memory) == 5 and len(register) > 2 and len(figures) == 1


def run(folder: Path, size: Size, hardware: Hardware) -> None:
    simavr.run(folder, {"sections": size.sections}, hardware, np.full((3, 16), 7, np.uint8))


WRONG = [
    (
        model("static int8_t nn_weights[4] = {1, 2, 3, 4};", invoke="nn_weights[2]++;"),
        "constants or below its stack 1 times, first at 0x102",
    ),
    (
        model(invoke=on_avr("*(volatile uint8_t *)0x700 = 1;")),
        "constants or below its stack 1 times, first at 0x700",
    ),
    (
        model(feed="for (volatile uint16_t i = 0; i < 999; i++) {}"),
        "late for .* bytes of the line.*hardware.streams_input=false",
    ),
    (
        model(
            "static uint8_t nn_filler[2000];",
            feed="nn_filler[nn_arena[0]] += 1; nn_arena[2] = nn_filler[count];",
            invoke="volatile uint8_t deep[40]; for (uint8_t i = 0; i < 40; i++) deep[i] = i;"
            "nn_arena[1] = deep[nn_arena[0]];",
        ),
        r"a stack of \d+ B ran \d+ B into the statics",
    ),
    (model(invoke="for (;;) {}"), "gave no answer for 60 s"),
    (model(invoke=on_avr('__asm__ volatile("sleep");')), "sleeps"),
    (model(invoke="return NN_CORRUPT;"), "memory was overwritten"),
    (model(invoke="return NN_INCOMPLETE;"), "refused infer: incomplete"),
]


@pytest.mark.parametrize(
    ("source", "said"),
    quick(3, WRONG),
    ids=["constants", "below the stack", "late", "overlap", "silent", "sleep", "canary", "input"],
)
def test_what_a_firmware_must_not_do_is_one_line(
    tmp_path: Path, shim: Path, source: str, said: str
) -> None:
    slow = load_hardware(clock_hz=1_000_000, baud=9600)  # its 60 s of silence pass sooner
    folder, size = build(tmp_path, slow, source)
    with pytest.raises(ThimbleError, match=said):
        run(folder, size, slow)


def test_half_a_stack_pointer_is_none(tmp_path: Path, arduino: Hardware, shim: Path) -> None:
    """Enter a frame of 254 B, its high byte first: with the old low one it is 2 B lower."""
    deep = "volatile uint8_t deep[254]; for (uint8_t i = 0; i < 254; i++) deep[i] = i;"
    found = measured(tmp_path, arduino, shim, model(invoke=deep + "nn_arena[1] = deep[*nn_arena];"))
    assert found.stack_bytes == 254 + 7


@pytest.mark.ci
def test_a_firmware_that_is_waited_for_is_not_late(tmp_path: Path, shim: Path) -> None:
    """Every fourth byte takes it longer than three take on the line."""
    keeps = "nn_arena.bytes[8 + nn_position++] = *bytes++;"
    busy = "if (nn_position % 4 == 0) for (volatile uint16_t i = 0; i < 999; i++) {}"
    source = (MODEL / "model.c").read_text().replace(keeps, keeps + busy)
    images = np.random.default_rng(0).integers(0, 256, (3, 16)).astype(np.uint8)
    hardware = load_hardware(clock_hz=1_000_000, baud=9600, wait_bytes=4)
    folder, size = build(tmp_path, hardware, source)
    runs = simavr.run(folder, {"sections": size.sections}, hardware, images)
    equal(runs.outputs, expected(images))
    never = load_hardware(clock_hz=1_000_000, baud=9600)
    with pytest.raises(
        ThimbleError, match=r"late for .* bytes of the line.*hardware\.wait_bytes=N"
    ):
        simavr.run(folder, {"sections": size.sections}, never, images)
    other = load_hardware(clock_hz=1_000_000, baud=9600, wait_bytes=3)
    with pytest.raises(
        ThimbleError, match=r"within an input: was it built for another hardware\.wait"
    ):
        simavr.run(folder, {"sections": size.sections}, other, images)


def test_a_missing_simulator_names_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for said in (
        "simavr_shim.c:25:10: fatal error: simavr/sim_avr.h: No such file or directory",
        "/usr/bin/ld: cannot find -lelf: No such file or directory",
    ):
        compiler = program(tmp_path, "cc", f"echo '{said}' >&2\nexit 1")
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(ThimbleError, match=r"simavr is not installed .*libsimavr-dev"):
            simavr.compile_shim(tmp_path)
    compiler.unlink()
    with pytest.raises(ThimbleError, match="cc is not installed"):
        simavr.compile_shim(tmp_path)


def test_a_file_that_is_no_firmware_is_one_line(
    tmp_path: Path, arduino: Hardware, shim: Path
) -> None:
    (tmp_path / "firmware.elf").write_bytes(b"not an ELF")
    with (
        Chip(shim, tmp_path / "firmware.elf", arduino, {}) as chip,
        pytest.raises(ThimbleError, match=r"the simulator ended: .*cannot load"),
    ):
        chip.exchange(b"")


STEPS = {"feed": "pooled", "invoke": ["a", "moves", "a", "moves", "b"]}


def test_steps_add_up_by_layer_and_to_the_whole() -> None:
    layers = Layers.of(STEPS)
    assert layers.names == ("pooled", "a", "moves", "b", REST)
    assert layers.add_up(7, 200, (10, 1, 20, 2, 30)).tolist() == [7, 30, 3, 30, 137]
    layers = Layers.of({"feed": "a", "invoke": ["a", "b"]})  # begun while the input arrives
    assert layers.names == ("a", "b", REST)
    assert layers.add_up(7, 100, (10, 20)).tolist() == [17, 20, 70]
    with pytest.raises(ThimbleError, match=r"nn_invoke made 2 steps, size\.json knows 5: run"):
        Layers.of(STEPS).add_up(7, 100, (10, 20))
    assert Layers.of({}).add_up(7, 100, (10, 20)).shape == (0,)


def test_the_figures_are_of_the_median_image() -> None:
    cycles = np.array([50, 90, 70, 60])
    by_layer = np.stack([cycles - 20, np.full(4, 20)], axis=1)
    runs = Runs(np.zeros((4, 3)), cycles, cycles, ("a", REST), by_layer)
    assert device._by_layer(runs, ()) == [("a", 40), (REST, 20)]
    assert device._by_layer(Runs(np.zeros((4, 3)), cycles, cycles), ()) is None


WORK = Path(__file__).with_name("work.c").read_text()


@pytest.mark.usefixtures("compiled_once")
def test_the_chip_sees_each_call_of_nn_invoke(tmp_path: Path, arduino: Hardware) -> None:
    """A loop takes 3 cycles a turn; what a step calls is part of it; only a return is added."""
    source = model(WORK, invoke="one(); two(); one();")
    folder = generate(tmp_path / "g", arduino, source)
    steps = {"feed": "input", "invoke": ["x", "y", "x"]}
    (folder / "steps.json").write_text(json.dumps(steps))
    size = toolchain.build(folder, tmp_path, arduino)
    assert size.steps == steps and size.sections["nn_invoke"][1] > 0
    runs = simavr.run(tmp_path, asdict(size), arduino, np.zeros((2, 16), np.uint8))
    one, leaf = 3 * 100 + 4, 3 * 10 + 4
    assert runs.layers == ("input", "x", "y", REST)
    assert set(runs.layer_cycles[:, 1]) == {2 * one}
    assert 3 * 200 + 2 * leaf + 4 < runs.layer_cycles[0, 2] <= 3 * 200 + 2 * leaf + 4 + 2 * 4
    equal(runs.layer_cycles.sum(axis=1), runs.compute_cycles)


@pytest.mark.usefixtures("compiled_once")
def test_the_chip_counts_functions_where_it_is_not_told_steps(
    tmp_path: Path, arduino: Hardware
) -> None:
    """Count what a function calls with it only where it is the compiler's own."""
    folder = generate(tmp_path / "g", arduino, model(WORK, invoke="one(); two(); one();"))
    size = toolchain.build(folder, tmp_path, arduino)
    assert not size.steps and not any(name.startswith("__") for name in size.code)
    runs = simavr.run(tmp_path, asdict(size), arduino, np.zeros((2, 16), np.uint8))
    taken = dict(zip(runs.functions, runs.function_cycles[0].tolist(), strict=True))
    assert 0 < sum(taken.values()) <= runs.compute_cycles[0]
    assert 2 * 3 * 100 < taken["one"] < 2 * (3 * 100 + 20)
    assert 3 * 200 < taken["two"] < 3 * 200 + 20 and 2 * 3 * 10 < taken["leaf"] < 2 * (3 * 10 + 9)


def test_functions_are_the_layers_that_they_are_called_as() -> None:
    functions = {
        "nn_invoke": 5, "nn_conv1": 100, "nn_conv1_row": 20, "nn_conv10": 7, "memcpy": 3,
        "nn_a_b_0123456789ab": 1,
    }  # fmt: skip
    names = ["conv1", "conv10", "conv1_row", "unseen"]
    assert of_functions(functions, 140, names) == [
        ("conv1", 100), ("conv10", 7), ("conv1_row", 20), ("rest", 13),
    ]  # fmt: skip
    assert of_functions(functions, 140, ["conv1", "conv10"])[0] == ("conv1", 120)
    mine = of_functions({"nn_invoke": 1, "nn_run_x": 9}, 10, ["run_x", "x"])
    assert mine == [("run_x", 9), ("rest", 1)]
    for function in ("my_a_b", "my_a_b_row"):
        found = of_functions({"my_invoke": 1, function: 9}, 10, ["a b"])
        assert found == [("a b", 9), ("rest", 1)], function
    assert of_functions({"nn_invoke": 10}, 10, ["conv1"]) == [] == of_functions({}, 10, ["a"])


@pytest.mark.usefixtures("compiled_once")
@pytest.mark.parametrize("weights_in", ["sram", "flash"])
def test_an_image_without_zeros_takes_what_is_announced(
    weights_in: str, tmp_path: Path, shim: Path
) -> None:
    graph = Chain((5, 5, 3)).conv("a", 4).conv("b", 5).dense("d", 3).graph()
    for values in graph.constants.values():
        values[:] = np.abs(values) % 7 + 1  # so that every sum is large
    hardware = load_hardware(weights_in=weights_in)
    plan = Herringbone().plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    full, empty = np.full((1, 5, 5, 3), 3, np.uint8), np.zeros((1, 5, 5, 3), np.uint8)
    assert all((each > 0).all() for each in graph.run(full.astype(np.int64)).values())
    taken = {}
    for name, image in (("full", full), ("empty", empty)):
        runs = simavr.run(tmp_path / "build", asdict(size), hardware, image)
        equal(runs.outputs, graph.evaluate(image.astype(np.int64)))
        taken[name] = int(runs.latency_cycles[0]), runs.unskipped_cycles
    (without, announced), (with_zeros, of_zeros) = taken["full"], taken["empty"]
    assert announced == without
    assert of_zeros is not None and of_zeros > 1.2 * with_zeros
    assert abs(of_zeros - without) < 0.02 * without  # sums of other numbers end a little faster


def image_of(code: list[int]) -> bytes:
    """As much of one as is looked at: a segment of flash at byte 100."""
    head = bytearray(100)
    struct.pack_into("<I", head, 28, 52)
    struct.pack_into("<2H", head, 42, 32, 1)
    struct.pack_into("<4I", head, 52, 1, 100, 0, 0)
    return bytes(head) + struct.pack(f"<{len(code)}H", *code)


def test_skips_in_functions_are_patched_whatever_registers_they_test() -> None:
    """Bytes of two activations, and of one; only in functions."""
    of_r20, of_weights, back = TEST | 0x40, TEST | 0xB0, UNLESS_ZERO | (0x7F & -3) << 3
    here, near, jump = IF_ZERO | 5 << 3, IF_ZERO | 1 << 3, 0xC000 | 0xFFF & -3
    for code, functions, made in (
        ([BYTE, IF_ZERO | 50 << 3, of_r20, here, of_weights, 0x9F4B], [(0, 12)],
         [BYTE, 0, of_r20, 0, of_weights, 0x9F4B]),
        ([TEST, here, TEST, back, TEST, near, 0x2411, IF_ZERO], [(0, 8), (12, 4)],
         [TEST, 0, TEST, jump, TEST, near, 0x2411, IF_ZERO]),
    ):  # fmt: skip
        assert no_skips(image_of(code), functions) == (image_of(made), 2)
        assert no_skips(image_of(code), []) == (image_of(code), 0)
