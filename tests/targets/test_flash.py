"""Flashing without a board: the exact command, and what is checked before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import ihex
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import flash, parameters
from tests.targets.conftest import load_hardware
from tests.targets.cortex_m import board_named

HEX = ":0400000001020304F2\n:00000001FF\n"
BEYOND = ":017E00005C25\n:00000001FF\n"  # one byte at 32256, where the boot loader begins


@pytest.fixture
def build(tmp_path: Path) -> Path:
    (tmp_path / "firmware.hex").write_text(HEX)
    return tmp_path


def test_the_command_is_the_flashers_own(build: Path, arduino: Hardware) -> None:
    found = flash.checked(build, arduino, "/dev/ttyACM0")
    assert found.text == (
        f"cd {build} && avrdude -p atmega328p -c arduino -P /dev/ttyACM0 -b 115200 -D "
        "-U flash:w:firmware.hex:i"
    )


def test_without_a_port_it_says_what_it_would_run(build: Path, arduino: Hardware) -> None:
    with pytest.raises(ThimbleError, match=r"needs target.port.*avrdude -p atmega328p .*hex:i"):
        flash.write(build, arduino, "")
    with pytest.raises(ThimbleError, match="no board at /dev/nothing-here"):
        flash.write(build, arduino, "/dev/nothing-here")


ELSEWHERE = ":0400100001020304E2\n:00000001FF\n"


def test_what_is_written_is_checked(build: Path, arduino: Hardware) -> None:
    found = flash.checked(build, arduino, "PORT")
    assert (found.bytes, found.start, found.stop) == (4, 0, 4)
    assert (found.memory_start, found.memory_bytes) == (0, 32256)
    for text, said in (
        (BEYOND, r"writes 1 B beyond the 32256 B .*first at 0x7e00"),
        (ELSEWHERE, r"begins at 0x10, .* looks for its program at 0x0"),
        (":00000001FF\n", "is empty"),
    ):
        (build / "firmware.hex").write_text(text)
        with pytest.raises(ThimbleError, match=said):
            flash.checked(build, arduino, "/dev/null")


def test_other_flashers_are_a_matter_of_config(build: Path) -> None:
    for words in (
        "st-flash --format ihex write {hex}",
        "pyocd load -t {part} {hex}",
        "openocd -f board/st_nucleo_f4.cfg -c 'program {hex} verify reset exit'",
    ):
        hardware = load_hardware(flasher=words, part="stm32f446re")
        found = flash.checked(build, hardware, "PORT").text
        assert found == f"cd {build} && {words.format(hex='firmware.hex', part='stm32f446re')}"


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
    (tmp_path / "openocd").write_text(
        f'#!/bin/sh\ntest -f firmware.hex && echo "$@" > {tmp_path}/s'
    )
    (tmp_path / "openocd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    text = flash.write(folder, board_named("nucleo_f446re"), "/dev/null")
    assert text.startswith(f"cd '{folder}' && openocd -f ")
    said = (tmp_path / "s").read_text()
    assert said.endswith("-c program {firmware.hex} verify reset exit\n") and "exec" not in said


def test_no_more_than_the_board_has(build: Path) -> None:
    """Whatever was planned for."""
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
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    avrdude = folder / "avrdude"
    avrdude.write_text(f'#!/bin/sh\necho "$@" > {build}/said\n')
    avrdude.chmod(0o755)
    text = flash.write(build, arduino, "/dev/null")
    assert text == f"cd {build} && avrdude {(build / 'said').read_text().strip()}"
    avrdude.write_text(
        "#!/bin/sh\necho 'avrdude: error: programmer is not responding' >&2; exit 1\n"
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
