"""``python -m tests.targets.published CLONES [NETWORK …]``: programs whose time and energy are
published, on the simulated cores: what the cycle model says of them, and how far off it is.

They are those of MLPerf Tiny's results that can be had as source and are of a core that is
simulated. CLONES is a folder of clones: tiny_results_v0.7, tiny_results_v1.0 and tiny_results_v1.1
of github.com/mlcommons, and CMSIS_5-51263182d and CMSIS_5-b966796 of
github.com/ARM-software/CMSIS_5 at these commits, which the entries name; c++ is the folder of the
compiler's C++ headers (Debian's libstdc++-arm-none-eabi-dev). The programs are compiled as they
are, with the entry's level of optimization, in this project's harness; what was measured is read
from the entries' logs. One random input.

Ends with 1 where a time is off by more than a core's model says of itself, boards apart whose
memory it does not know.
"""

import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipeline.hardware import Hardware
from pipeline.targets import qemu, qemu_cycles
from tests.targets.cortex_m import board_named
from tests.targets.published.build import built, onnc, tflm, tvm

NETWORKS = {"ic": 3072, "vww": 27648, "kws": 490, "ad": 640}
"""Numbers of an input."""

INFERENCES = 2
"""The second counts: the first may set up."""


@dataclass(frozen=True)
class Entry:
    """``code`` and ``results``: below ``clone``; ``number_bytes`` of AD's input, which is of 4
    bytes where the program quantizes it; ``clock_hz`` and ``wait_states`` where the board that
    stands in has others; ``unknown``: what of the board's memory the model has no notion of."""

    title: str
    clone: str
    code: str
    results: str
    program: Callable[[Path, Path, str, Path, Hardware], Path]
    board: str
    clock_hz: int = 0
    wait_states: int = 0
    unknown: str = ""
    level: str = "-O2"
    number_bytes: int = 1

    def hardware(self) -> Hardware:
        board = board_named(self.board)
        flash = board.flash_timing
        waits = self.wait_states or flash.wait_states
        timing, clock_hz = replace(flash, wait_states=waits), self.clock_hz or board.clock_hz
        tools = replace(board.toolchain, flags=(*board.toolchain.flags, self.level))
        return replace(board, clock_hz=clock_hz, flash_timing=timing, toolchain=tools)

    def input_bytes(self, network: str) -> int:
        return NETWORKS[network] * (self.number_bytes if network == "ad" else 1)


def octoml(title: str, code: str, results: str, board: str, clock_hz: int = 0) -> Entry:
    place = "closed/OctoML"
    return Entry(
        title, "tiny_results_v1.0", f"{place}/code/{code}", f"{place}/results/{results}",
        tvm, board, clock_hz, number_bytes=4,
    )  # fmt: skip


def tiny_onnc(title: str, place: str, results: str, **others: object) -> Entry:
    return Entry(
        title, "tiny_results_v1.1", f"closed/{place}/code/{results}",
        f"closed/{place}/results/{results}", onnc, **others,
    )  # type: ignore[arg-type]  # fmt: skip


ENTRIES = (
    octoml(
        "microTVM, CMSIS-NN, NUCLEO-L4R5ZI (M4)",
        "microtvm_cmsis_nn/NUCLEO_L4R5ZI", "microtvm_cmsis_nn/NUCLEO_L4R5ZI", "nucleo_l4r5zi",
    ),
    octoml(
        "microTVM, own kernels, NUCLEO-L4R5ZI (M4)",
        "microtvm_native/NUCLEO_L4R5ZI", "microtvm_native/NUCLEO_L4R5ZI", "nucleo_l4r5zi",
    ),
    tiny_onnc(
        "Tiny ONNC, Mbed OS, NUCLEO-L4R5ZI (M4), -O3", "Skymizer", "NUCLEO_L4R5ZI-mbed_os",
        board="nucleo_l4r5zi", level="-O3",
    ),
    tiny_onnc(
        "Tiny ONNC, Zephyr, NUCLEO-L4R5ZI (M4)", "Skymizer", "NUCLEO_L4R5ZI-zephyr",
        board="nucleo_l4r5zi",
    ),
    tiny_onnc(
        "Tiny ONNC, Zephyr, NuMaker-M467HJ (M4), the L4R5's flash", "Nuvoton",
        "NUMAKER_M467HJ-zephyr", board="nucleo_l4r5zi", clock_hz=200_000_000,
    ),
    octoml(
        "microTVM, CMSIS-NN, nRF5340 DK (M33), the U575's flash",
        "microtvm_cmsis_nn/NRF5340DK", "microtvm_cmsis_nn/NRF5340-DK", "nucleo_u575zi", 128_000_000,
    ),
    Entry(
        "TFLM, CMSIS-NN, EK-RA6M4 (M33), the U575's cache, -O3", "tiny_results_v0.7",
        "closed/renesas/code/EK_RA6M4", "closed/renesas/results/EK-RA6M4", tflm,
        "nucleo_u575zi", 200_000_000, wait_states=3, level="-O3",
        unknown="RAM that makes the core wait at more than 100 MHz",
    ),
)  # fmt: skip


def published(folder: Path) -> tuple[float, float]:
    """Milliseconds and microjoules of an inference, from the logs in ``folder``; 0 for neither."""

    def last(kind: str, pattern: str) -> float:
        log = folder / kind / "results.txt"
        found = re.findall(pattern, log.read_text()) if log.exists() else []
        return float(found[-1]) if found else 0.0

    rate = last("performance", r"Median throughput is +([\d.]+) inf")
    return 1e3 / rate, last("energy", r"Median energy cost is +([\d.]+) uJ")


def main(clones: Path, names: list[str]) -> int:
    worse = 0
    print(f"{'program':56} {'':4} {'measured':>9} {'modelled':>9} {'error':>6}  {'band':15} "
          f"{'measured':>9} {'modelled':>9} {'error':>6}")  # fmt: skip
    for entry in ENTRIES:
        hardware = entry.hardware()
        for name in names or NETWORKS:
            input_bytes = entry.input_bytes(name)
            with tempfile.TemporaryDirectory(prefix="thimble.") as place:
                folder = Path(place)
                code = clones / entry.clone / entry.code
                program = entry.program(code, clones, name, folder, hardware)
                size = built(folder, hardware, input_bytes, program)
                image = np.random.default_rng(0).integers(0, 256, (1, input_bytes), np.uint8)
                images = np.repeat(image, INFERENCES, 0)
                found = qemu.run(folder / "build", vars(size), hardware, images).modelled_cycles
            assert found is not None
            ms = {key: found[key] / hardware.clock_hz * 1e3 for key in qemu_cycles.BAND}
            measured, energy = published(clones / entry.clone / entry.results / name)
            off = ms["median"] / measured - 1
            line = f"{measured:6.1f} ms {ms['median']:6.1f} ms {off:+6.1%}"
            line += f"  {ms['low']:.1f}–{ms['high']:.1f}".ljust(17)
            if energy and hardware.power.active_ma and not entry.clock_hz:
                watts = hardware.power.supply_volt * hardware.power.active_ma * 1e-3
                ours = ms["median"] * watts * 1e3
                line += f" {energy:6,.0f} µJ {ours:6,.0f} µJ {ours / energy - 1:+6.1%}"
            print(f"{entry.title:56} {name:4} {line}", flush=True)
            said = [each.error_pct for each in qemu_cycles.VALIDATED if each.cpu == hardware.cpu]
            worse += abs(off) * 100 > max(said) and not entry.unknown
        if entry.unknown:
            print(f"  not in the model: {entry.unknown}")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
