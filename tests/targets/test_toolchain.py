"""Builds: what they take, what is refused, and equal bytes from equal sources; and flashing without
a board: the exact command, and what is checked before it."""

import hashlib
from pathlib import Path

import pytest

from pipeline import ihex
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import elf, flash, parameters, toolchain
from pipeline.targets.toolchain import Size
from tests import programs
from tests.programs import program, refusal
from tests.targets.conftest import generate, load_hardware, model, needs_avr
from tests.targets.cortex_m import board_named

HEX = ":0400000001020304F2\n:00000001FF\n"


@needs_avr
def test_the_harness_has_no_variable_of_its_own(built: tuple[Path, Size]) -> None:
    _, size = built
    assert size.status == "ok"
    assert size.ram_objects == {"nn_arena": 32, "nn_position": 1, "nn_weights": 48}
    assert size.statics_bytes == sum(size.ram_objects.values())
    assert size.sram_bytes == size.statics_bytes + size.stack_bound_bytes
    assert size.stack_bound_bytes <= 12
    assert size.flash_bytes < 2048


@needs_avr
def test_sizes_are_those_of_avr_size(built: tuple[Path, Size]) -> None:
    folder, size = built
    lines = programs.said(["avr-size", "firmware.elf"], folder).splitlines()
    text, data, bss = (int(word) for word in lines[1].split()[:3])
    assert (size.flash_bytes, size.statics_bytes) == (text + data, data + bss)
    assert len(ihex.flash_image(folder / "firmware.hex")) == size.flash_bytes


@needs_avr
def test_two_folders_give_the_same_bytes(tmp_path: Path, arduino: Hardware) -> None:
    hashes = []
    for name in ("here", "somewhere/quite/else"):
        folder = generate(tmp_path / name / "generated", arduino)
        toolchain.build(folder, tmp_path / name / "build", arduino)
        files = sorted((tmp_path / name / "build").iterdir())
        assert {"firmware.elf", "firmware.hex", "host"} <= {f.name for f in files}
        hashes.append({f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files})
    assert hashes[0] == hashes[1]


@needs_avr
def test_too_little_sram_is_a_result(tmp_path: Path, generated: Path) -> None:
    size = toolchain.build(generated, tmp_path, load_hardware(sram_bytes=80))
    assert (size.status, size.resource) == ("infeasible", "SRAM")
    assert size.needed_bytes == size.statics_bytes + size.stack_bound_bytes > 80
    assert size.available_bytes == 80
    assert "nn_weights" in size.where and "main" in size.where
    assert "weights_in=flash" in size.advice


@needs_avr
def test_an_arena_beyond_the_chips_sram_still_links(tmp_path: Path, arduino: Hardware) -> None:
    folder = generate(tmp_path / "g", arduino, model())
    header = (folder / "model.h").read_text()
    (folder / "model.h").write_text(header.replace("NN_ARENA_BYTES 32", "NN_ARENA_BYTES 5000"))
    size = toolchain.build(folder, tmp_path, arduino)
    assert (size.status, size.statics_bytes) == ("infeasible", 5000)
    assert size.where.startswith("nn_arena")


@needs_avr
@pytest.mark.parametrize(("tables", "table_bytes"), [(1, 31_200), (2, 20_000), (7, 30_000)])
def test_too_little_flash_is_a_result(
    tmp_path: Path, arduino: Hardware, tables: int, table_bytes: int
) -> None:
    names = [f"nn_table{i}" for i in range(tables)]
    source = model(
        "".join(f"const uint8_t {n}[{table_bytes}] PROGMEM = {{1}};\n" for n in names),
        invoke="".join(f"nn_arena[1] += pgm_read_byte({n} + nn_arena[0]);\n" for n in names),
    )
    folder = generate(tmp_path / "g", arduino, f"#ifdef __AVR__\n{source}#else\n{model()}#endif\n")
    size = toolchain.build(folder, tmp_path, arduino)
    assert (size.status, size.resource) == ("infeasible", "flash")
    assert size.needed_bytes > tables * table_bytes
    assert size.available_bytes == 32256
    assert size.where.startswith("nn_table")


@needs_avr
@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("static const volatile int8_t table[8] = {3, 1, 4, 1, 5, 9, 2, 6};", r"put table \(8 B\)"),
        ('static const char *volatile table = "eight by";', r"table \(2 B\), 10 B without a name"),
        ("static volatile uint8_t table[3];", r"put table \(3 B\)"),
    ],
)
def test_tables_in_ram_are_named(
    tmp_path: Path, arduino: Hardware, declared: str, said: str
) -> None:
    source = model(declared, invoke="nn_arena[1] = (uint8_t)table[nn_arena[0]];")
    with pytest.raises(ThimbleError, match=said):
        toolchain.build(generate(tmp_path / "g", arduino, source), tmp_path, arduino)


@needs_avr
def test_a_source_that_does_not_compile_is_one_line(tmp_path: Path, arduino: Hardware) -> None:
    folder = generate(tmp_path / "g", arduino, '#include "model.h"\nint unused(void) { x; }\n')
    said = refusal(lambda: toolchain.build(folder, tmp_path / "build", arduino))
    assert "compiling model.c failed: avr-gcc: model.c:2:" in said
    assert list((tmp_path / "build").iterdir()) == []


@needs_avr
def test_symbols_are_read_with_the_chips_own_addresses(built: tuple[Path, Size]) -> None:
    program = elf.read(built[0] / "firmware.elf", "avr-objdump")
    arena = next(s for s in program.ram_objects if s.name == "nn_arena")
    assert 0x100 <= arena.address < 0x900
    assert program.sections[".data"].address == 0x100
    assert program.statics_end == 0x100 + program.statics_bytes
    assert "main" in program.labels.values()


@pytest.mark.parametrize("count", [0, 1, 16, 0x10000, 0x10000 + 37])
def test_what_is_dumped_is_loaded(tmp_path: Path, count: int) -> None:
    content = (bytes(range(256)) * 300)[:count]
    (tmp_path / "x.hex").write_text(ihex.dump(content))
    assert ihex.flash_image(tmp_path / "x.hex") == content


def test_a_damaged_hex_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "x.hex"
    file.write_text(HEX)
    assert ihex.flash_image(file) == bytes([1, 2, 3, 4])
    file.write_text(":020000040001F9\n:0100000055AA\n:00000001FF\n")
    assert ihex.load(file) == {0x10000: 0x55}
    for text, said in (
        (HEX.replace("F2", "F3"), "checksum"),
        (HEX.replace("0304", "03"), "no Intel HEX"),
        (HEX[:19], "ends too early"),
        ("garbage\n", "no Intel HEX"),
    ):
        file.write_text(text)
        with pytest.raises(ThimbleError, match=said):
            ihex.load(file)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    (tmp_path / "firmware.hex").write_text(HEX)
    return tmp_path


def test_without_a_port_it_says_what_it_would_run(build: Path, arduino: Hardware) -> None:
    with pytest.raises(ThimbleError, match=r"needs target.port.*avrdude -p atmega328p .*hex:i"):
        flash.write(build, arduino, "")
    with pytest.raises(ThimbleError, match="no board at /dev/nothing-here"):
        flash.write(build, arduino, "/dev/nothing-here")


def test_what_is_written_is_checked(build: Path, arduino: Hardware) -> None:
    found = flash.checked(build, arduino, "PORT")
    assert (found.bytes, found.start, found.stop) == (4, 0, 4)
    assert (found.memory_start, found.memory_bytes) == (0, 32256)
    for text, said in (
        # one byte at 32256, where the boot loader begins
        (":017E00005C25\n:00000001FF\n", r"writes 1 B beyond the 32256 B .*first at 0x7e00"),
        (
            HEX.replace("040000", "040010").replace("F2", "E2"),
            r"begins at 0x10, .* looks for its program at 0x0",
        ),
        (":00000001FF\n", "is empty"),
    ):
        (build / "firmware.hex").write_text(text)
        with pytest.raises(ThimbleError, match=said):
            flash.checked(build, arduino, "/dev/null")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"flasher": "pyocd load -t {board} {hex}"}, r"flasher=.* is no command line .*\{port\}"),
        ({"flasher": "pyocd 'load"}, r"hardware.flasher=.* is no command line"),
        ({"flasher": "pyocd {}"}, r"hardware.flasher=.* is no command line"),
        ({"flasher": ""}, "has no flasher"),
        ({"baud": 12345}, r"hardware\.baud=12345"),  # a rate that no computer has
    ],
)
def test_what_cannot_be_flashed_is_one_line(
    build: Path, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(ThimbleError, match=said):
        flash.checked(build, load_hardware(**changes), "PORT")


def test_a_folders_name_is_no_tcl_for_openocd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its -c takes Tcl, in which braces end a word and brackets are commands."""
    folder = tmp_path / "my runs} [exec touch pwned] {:"
    folder.mkdir()
    (folder / "firmware.hex").write_text(":020000040800F2\n" + HEX)
    program(tmp_path, "openocd", f'test -f firmware.hex && echo "$@" > {tmp_path}/s')
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    text = flash.write(folder, board_named("nucleo_f446re"), "/dev/null")
    assert text.startswith(f"cd '{folder}' && openocd -f ")
    said = (tmp_path / "s").read_text()
    assert said.endswith("-c program {firmware.hex} verify reset exit\n") and "exec" not in said


def test_no_more_than_the_board_has(build: Path) -> None:
    (build / "firmware.hex").write_text(":020000040800F2\n" + HEX)
    large = board_named("nucleo_f446re", flash_bytes=3_000_000)
    assert flash.checked(build, large, "PORT").memory_bytes == 524_288
    with pytest.raises(ThimbleError, match=r"sram_bytes=900000: .* has 131072 B in one piece"):
        flash.checked(build, board_named("nucleo_f446re", sram_bytes=900_000), "PORT")


@pytest.mark.parametrize("sealed", [False, True])
def test_a_network_that_swaps_says_how_its_image_gets_to_a_card(build: Path, sealed: bool) -> None:
    """Only the sealed image, where the network has a key."""
    for name in ("card.img", "card.json") if sealed else ("card.img",):
        (build / name).write_bytes(bytes(1024))
    with pytest.raises(ThimbleError, match="no driver for a board's card yet") as error:
        flash.checked(build, load_hardware(), "PORT")
    said = str(error.value)
    named = "card.sealed.img" if sealed else f"{build}/card.img"
    assert f"dd if={named} of=DEVICE bs=4M conv=fsync" in said and "\n" not in said
    seals = f"python -m pipeline.sealed_image {build} chip.key card.sealed.img"
    assert (seals in said) == sealed


def test_the_flasher_runs_and_its_failure_is_one_line(
    build: Path, arduino: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build / "bin"
    program(folder, "avrdude", f'echo "$@" > {build}/said')
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    text = flash.write(build, arduino, "/dev/null")
    said = "-p atmega328p -c arduino -P /dev/null -b 115200 -D -U flash:w:firmware.hex:i"
    assert (build / "said").read_text().strip() == said and text == f"cd {build} && avrdude {said}"
    avrdude = program(
        folder, "avrdude", "echo 'avrdude: error: programmer is not responding' >&2; exit 1"
    )
    with pytest.raises(ThimbleError, match=r"flashing failed: avrdude: .*not responding"):
        flash.write(build, arduino, "/dev/null")
    avrdude.unlink()
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(ThimbleError, match="apt-get install avrdude"):
        flash.write(build, arduino, "/dev/null")


def test_parameters_that_are_sent_are_in_a_file_beside_the_program(tmp_path: Path) -> None:
    assert parameters.wanted(tmp_path, 0) == b""
    with pytest.raises(ThimbleError, match=r"parameters\.hex is missing: run stages generate"):
        parameters.wanted(tmp_path, 100)
    file, content = tmp_path / "parameters.hex", bytes(range(100))
    file.write_text(ihex.dump(content))
    assert parameters.wanted(tmp_path, 100) == content
    with pytest.raises(ThimbleError, match="has 100 B, the firmware takes 101 B of parameters"):
        parameters.wanted(tmp_path, 101)
    file.write_text(ihex.dump(content).replace("0000", "0001", 1))
    with pytest.raises(ThimbleError, match="damaged"):
        parameters.wanted(tmp_path, 100)
