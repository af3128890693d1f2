"""Flashing without a board: the exact command, and what is checked before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import flash
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


def test_the_boot_loader_is_not_overwritten(build: Path, arduino: Hardware) -> None:
    (build / "firmware.hex").write_text(BEYOND)
    with pytest.raises(ThimbleError, match=r"writes 1 B beyond the 32256 B .*first at 0x7e00"):
        flash.checked(build, arduino, "/dev/null")


ELSEWHERE = ":0400100001020304E2\n:00000001FF\n"


def test_what_is_written_is_checked(build: Path, arduino: Hardware) -> None:
    found = flash.checked(build, arduino, "PORT")
    assert (found.bytes, found.start, found.stop) == (4, 0, 4)
    assert (found.memory_start, found.memory_bytes) == (0, 32256)
    (build / "firmware.hex").write_text(ELSEWHERE)
    with pytest.raises(ThimbleError, match=r"begins at 0x10, .* looks for its program at 0x0"):
        flash.checked(build, arduino, "PORT")
    (build / "firmware.hex").write_text(":00000001FF\n")
    with pytest.raises(ThimbleError, match="is empty"):
        flash.checked(build, arduino, "PORT")


def test_other_flashers_are_a_matter_of_config(build: Path) -> None:
    for words in (
        "st-flash --format ihex write {hex}",
        "pyocd load -t {part} {hex}",
        "openocd -f board/st_nucleo_f4.cfg -c 'program {hex} verify reset exit'",
    ):
        hardware = load_hardware(flasher=words, part="stm32f446re")
        found = flash.checked(build, hardware, "PORT").text
        assert found == f"cd {build} && {words.format(hex='firmware.hex', part='stm32f446re')}"


@pytest.mark.parametrize("words", ["pyocd load -t {board} {hex}", "pyocd 'load", "pyocd {}"])
def test_a_flasher_that_is_no_command_is_one_line(build: Path, words: str) -> None:
    with pytest.raises(ThimbleError, match=r"hardware.flasher=.* is no command line .*\{port\}"):
        flash.checked(build, load_hardware(flasher=words), "PORT")


def test_a_rate_that_no_computer_has_is_said_before(build: Path) -> None:
    with pytest.raises(ThimbleError, match=r"hardware\.baud=12345"):
        flash.checked(build, load_hardware(baud=12345), "PORT")


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


def test_a_network_that_swaps_says_how_its_image_gets_to_a_card(build: Path) -> None:
    (build / "card.img").write_bytes(bytes(1024))
    with pytest.raises(ThimbleError, match="no driver for a board's card yet") as error:
        flash.checked(build, load_hardware(), "PORT")
    said = str(error.value)
    assert f"dd if={build}/card.img of=DEVICE bs=4M conv=fsync" in said and "\n" not in said


def test_only_the_sealed_image_of_a_network_with_a_key_is_named_for_a_card(build: Path) -> None:
    for name in ("card.img", "card.json"):
        (build / name).write_bytes(bytes(1024))
    with pytest.raises(ThimbleError, match="no driver for a board's card yet") as error:
        flash.checked(build, load_hardware(), "PORT")
    said = str(error.value)
    assert "dd if=card.sealed.img of=DEVICE bs=4M conv=fsync" in said and "card.img" not in said
    assert f"python -m pipeline.sealed_image {build} chip.key card.sealed.img" in said


def test_a_board_without_a_flasher_is_one_line(build: Path) -> None:
    with pytest.raises(ThimbleError, match="has no flasher"):
        flash.checked(build, load_hardware(flasher=""), "/dev/null")


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
