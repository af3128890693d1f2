"""Comparisons with onnxruntime come out the same on a processor without VNNI and AVX-512."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys

import pytest

from pipeline.home import ROOT
from tests.runner.project import clean_environment

HASWELL = "Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm"
"""Without what qemu warns that it lacks."""
SATURATED = [
    "integers.py::test_operators_on_integers[QLinearAdd-uint8]",
    "integers.py::test_what_onnxruntimes_tool_makes[0-QOperator]",
    "quantized.py::test_what_onnxruntime_quantizes[channel-QInt8-QOperator]",
]
"""Some of the 14 that failed there while onnxruntime was given int8 weights."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="apt-get install qemu-user")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the emulated Python is this one")
def test_on_an_emulated_haswell() -> None:
    tests = [f"tests/importers/test_onnx_{name}" for name in SATURATED]
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        ["qemu-x86_64", "-cpu", HASWELL, *pytest_, *tests],
        cwd=ROOT, env=clean_environment(), capture_output=True, text=True,
        timeout=1200, check=False,
    )  # fmt: skip
    assert f"\n{len(tests)} passed" in done.stdout, done.stdout + done.stderr
