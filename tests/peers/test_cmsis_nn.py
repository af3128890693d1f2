"""Figures beside CMSIS-NN were measured with it, and nothing that compared nothing ends well."""

import os
import re
from pathlib import Path

import pytest

from pipeline.home import ROOT
from tests import public_models
from tests.codegen.cortex_m import bench
from tests.peers import cmsis_nn
from tests.peers.recorded import CORES, MLPERF_TINY, board_of, recorded

PLAIN = "without dead_channels"
FOUND = recorded()
CLONE = os.environ.get("THIMBLE_CMSIS_NN", "")


def test_the_record_says_what_was_compared() -> None:
    assert re.fullmatch("[0-9a-f]{40}", FOUND["commit"]) and not FOUND["changed"]
    assert "arm-none-eabi-gcc" in FOUND["compiler"] and "QEMU" in FOUND["simulator"]
    assert FOUND["boards"] == CORES and all("-O2" in each for each in FOUND["options"].values())
    assert FOUND["networks"].keys() == {*MLPERF_TINY}


@pytest.mark.parametrize("name", MLPERF_TINY)
def test_layers_add_up_and_the_benches_compare_with_the_whole(name: str) -> None:
    found = FOUND["networks"][name]
    assert found.keys() == CORES.keys()
    for key, whole in found["M4"]["cmsis_nn"].items():
        layers = found["M4"]["layers"]
        assert sum(each["cmsis_nn"][key] for each in layers) == pytest.approx(whole, rel=0.01)
        ours = sum(each["thimble"][key] for each in layers if each["thimble"])
        assert 0.95 * found["M4"]["thimble"][PLAIN][key] < ours < whole
    for core, taken in bench.PEERS[name].items():
        assert vars(taken) == found[core]["cmsis_nn"]


def test_readme_says_like_for_like() -> None:
    ratios = {
        name: taken["M4"]["thimble"][PLAIN]["instructions"]
        / taken["M4"]["cmsis_nn"]["instructions"]
        for name, taken in FOUND["networks"].items()
    }
    (line,) = (each for each in (ROOT / "README.md").read_text().splitlines() if "CMSIS-NN" in each)
    assert f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f}" in line
    said = re.search(r"visual wake words (\d\.\d\d)", line)  # by the bench, of today's kernels
    assert said and float(said[1]) == pytest.approx(ratios["vww_96_int8"], abs=0.01)


def test_without_cmsis_nn_nothing_was_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_models, "MODELS", tmp_path)
    with pytest.raises(SystemExit, match=r"no clone of .*nothing was compared"):
        cmsis_nn.main(tmp_path, [])


@pytest.mark.slow
@pytest.mark.skipif(not CLONE, reason="THIMBLE_CMSIS_NN names no clone of CMSIS-NN")
def test_it_is_measured_as_recorded(tmp_path: Path) -> None:
    made = cmsis_nn.library(Path(CLONE), tmp_path / "lib", board_of("M4"))
    found = cmsis_nn.compared("ad01_int8", "M4", Path(CLONE), made)
    assert found == FOUND["networks"]["ad01_int8"]["M4"]
