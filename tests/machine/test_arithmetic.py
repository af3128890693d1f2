"""Identities that kernels rest on, for every bit pattern: C runs through them in seconds."""

from pathlib import Path

import pytest

from pipeline.codegen.render import KERNELS
from tests.programs import said


@pytest.mark.slow
def test_no_fraction_makes_the_inverse_saturate(tmp_path: Path) -> None:
    """``nn_inverse_above_one`` has none of gemmlowp's saturations."""
    source = Path(__file__).with_name("inverse.c")
    includes = [f"-I{KERNELS / name}" for name in ("int8", "frame")]
    said(["gcc", "-O3", *includes, source, "-o", "all"], tmp_path)
    said([str(tmp_path / "all")], tmp_path)
