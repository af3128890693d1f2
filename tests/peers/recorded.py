"""Figures that ``python -m tests.peers.cmsis_nn`` measured last."""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("cmsis_nn.json")
MLPERF_TINY = ("pretrainedResnet_quant", "vww_96_int8", "kws_ref_model", "ad01_int8")
CORES = {"M4": "nucleo_l4r5zi", "M7": "nucleo_f767zi", "M0+": "nucleo_g0b1re"}


def recorded() -> dict[str, Any]:
    """``commit``, ``compiler``, …; of networks and cores what ``cmsis_nn`` and ``thimble`` take."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def cmsis_nn(model: str, core: str) -> tuple[int, int]:
    """Instructions and modelled cycles of an inference by CMSIS-NN, without flash waits."""
    taken = recorded()["networks"][model][core]["cmsis_nn"]
    return taken["instructions"], taken["cycles"]
