"""Tiny ONNC's programs, as Skymizer's and Nuvoton's entries have them: calls of CMSIS-NN's older
functions, one of which the entries correct."""

from __future__ import annotations

from pathlib import Path

from pipeline.hardware import Hardware
from tests.targets.published import cmsis_nn
from tests.targets.published.build import joined

CORRECTED = "arm_convolve_HWC_q7_fast_nonsquare"

PLATFORM = """
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "onnc_main.h"

extern "C" int published(void *input, void *output) {
    (void)output;
    struct onnc_input_tensor_t given = onnc_get_input_tensor();
    memcpy((void *)given.data, input, given.size);
    onnc_main();
    return 0;
}
"""


def program(code: Path, clones: Path, name: str, output: Path, hardware: Hardware) -> Path:
    folder = code / name / f"{name}01_code"
    (output / "platform.cc").write_text(PLATFORM)
    (output / "onnc_runtime.h").write_text("")  # made empty by the entries' own scripts
    corrected = output / f"{CORRECTED}.c"
    corrected.write_bytes((code.parent / f"{CORRECTED}.fixed").read_bytes())
    cmsis = clones / "CMSIS_5-b966796"
    sources = [output / "platform.cc", *sorted(folder.glob("*.cpp")), corrected]
    sources += [path for path in cmsis_nn.sources(cmsis) if path.name != corrected.name]
    flags = [f"-I{folder}", f"-I{output}", *cmsis_nn.includes(cmsis)]
    return joined(sources, flags, output, hardware)
