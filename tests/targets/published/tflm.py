"""TensorFlow Lite Micro with CMSIS-NN, as Renesas' entry has both in its project."""

from __future__ import annotations

from pathlib import Path

from pipeline.hardware import Hardware
from tests.targets.published.build import joined

MODELS = {"ic": "IC", "vww": "vww", "kws": "KWS", "ad": "AD"}

PLATFORM = """
#include <stdint.h>
#include <stdlib.h>
#include "tensorflow/lite/micro/examples/main_functions.h"

extern "C" int published(void *input, void *output) {
    static bool ready;
    (void)output;
    if (!ready) ready = Setup();
    if (!ready) return 1;
    EEMBC_LoadTensor_PreInf((const int8_t *)input);
    return EEMBC_Inference();
}
extern "C" void DebugLog(const char *text) { (void)text; }
void *operator new[](unsigned bytes) { return malloc(bytes); }
void operator delete[](void *made) noexcept { free(made); }
void operator delete(void *made) noexcept { free(made); }
void operator delete(void *made, unsigned) noexcept { free(made); }
"""


def program(code: Path, clones: Path, name: str, output: Path, hardware: Hardware) -> Path:
    (output / "platform.cc").write_text(PLATFORM)
    source, lite = code / "src", code / "src/tensorflow/lite"
    without = {"debug_log.cc", "test_helpers.cc"}
    sources = [output / "platform.cc"]
    sources += [
        path
        for pattern in ("**/*.cc", "**/*.c")
        for path in sorted(lite.glob(pattern))
        if path.name not in without and path.parent.name != "examples"
    ]
    examples = lite / "micro/examples"
    sources += [examples / "main_functions.cc", examples / f"TFLite_model_{MODELS[name]}.cc"]
    cmsis = lite / "micro/tools/make/downloads/cmsis/CMSIS"
    flags = [f"-I{source}", f"-I{source / 'third_party/flatbuffers/include'}"]
    flags += [f"-I{source / 'third_party/gemmlowp'}"]
    flags += [f"-I{cmsis / each}" for each in ("NN/Include", "DSP/Include")]
    flags += [f"-I{code / 'ra/arm/CMSIS_5/CMSIS/Core/Include'}", f"-DEEMBC{name.upper()}"]
    headers = [f"-isystem{clones / each}" for each in ("c++", "c++/arm-none-eabi")]
    headers += ["-include", "limits"]  # older compilers' headers bring it along
    return joined(sources, flags, output, hardware, headers)
