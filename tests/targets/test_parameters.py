"""Parameters that are sent: the file beside the program, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import ihex
from pipeline.errors import ThimbleError
from pipeline.targets import parameters


def test_a_firmware_that_holds_its_parameters_needs_no_file(tmp_path: Path) -> None:
    assert parameters.wanted(tmp_path, 0) == b""


def test_the_file_beside_the_program_is_read(tmp_path: Path) -> None:
    (tmp_path / "parameters.hex").write_text(ihex.dump(bytes(range(100))))
    assert parameters.wanted(tmp_path, 100) == bytes(range(100))


def test_a_missing_damaged_or_foreign_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=r"parameters\.hex is missing: run stages generate"):
        parameters.wanted(tmp_path, 100)
    (tmp_path / "parameters.hex").write_text(ihex.dump(bytes(100)))
    with pytest.raises(ThimbleError, match="has 100 B, the firmware takes 101 B of parameters"):
        parameters.wanted(tmp_path, 101)
    (tmp_path / "parameters.hex").write_text(ihex.dump(bytes(100)).replace("0000", "0001", 1))
    with pytest.raises(ThimbleError, match="damaged"):
        parameters.wanted(tmp_path, 100)
