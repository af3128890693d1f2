"""Figures that ``python -m tests.peers.cmsis_nn`` measured last."""

import json
from pathlib import Path
from typing import Any

from pipeline.hardware import Hardware
from tests.boards import load_hardware

FILE = Path(__file__).with_name("cmsis_nn.json")
MLPERF_TINY = ("pretrainedResnet_quant", "vww_96_int8", "kws_ref_model", "ad01_int8")
CORES = {
    "M4": "nucleo_l4r5zi", "M7": "nucleo_f767zi", "M0+": "nucleo_g0b1re", "M3": "nucleo_f103rb",
}  # fmt: skip
ROOM = {"M3": {"sram_bytes": 1 << 18, "flash_bytes": 1 << 20, "regions": []}}
"""Memories in place of a board's that has none for all networks."""


def board_of(core: str) -> Hardware:
    return load_hardware(CORES[core], **ROOM.get(core, {}))


def recorded() -> dict[str, Any]:
    """``commit``, ``compiler``, …; of networks and cores what ``cmsis_nn`` and ``thimble`` take."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def cmsis_nn(model: str, core: str) -> tuple[int, int]:
    """Instructions and modelled cycles of an inference by CMSIS-NN, without flash waits."""
    taken = recorded()["networks"][model][core]["cmsis_nn"]
    return taken["instructions"], taken["cycles"]
