"""Programs of others that are published, each as one object file, in this project's harness."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from pipeline import artifacts
from pipeline.hardware import Hardware
from pipeline.targets import builds, cortex_m, toolchain, tools
from pipeline.targets.avr_stack import Bound
from pipeline.targets.harness import harness_sources
from pipeline.targets.toolchain import Size
from tests.targets.conftest import model

STACK_BYTES = 8192

CPP_FLAGS = (
    "-std=gnu++14", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics",
    "-fno-use-cxa-atexit",
)  # fmt: skip

SYSTEM = """
static char heap[16384] __attribute__((aligned(8)));
void *_sbrk(int bytes) {
    static int taken;
    if (bytes < 0 || taken + bytes > (int)sizeof heap) return (void *)-1;
    taken += bytes;
    return heap + taken - bytes;
}
void __attribute__((noreturn)) _exit(int code) { for (;;) (void)code; }
int _kill(int process, int signal) { (void)process, (void)signal; return -1; }
int _getpid(void) { return 1; }
int _fstat(int file, void *found) { (void)file, (void)found; return -1; }
int _read(int file, char *bytes, int count) { (void)file, (void)bytes, (void)count; return -1; }
int _write(int file, char *bytes, int count) { (void)file, (void)bytes, (void)count; return -1; }
int _lseek(int file, int at, int from) { (void)file, (void)at, (void)from; return -1; }
int _close(int file) { (void)file; return -1; }
int _isatty(int file) { (void)file; return 0; }
"""
"""Functions that the C library asks of a system."""


def joined(
    sources: Sequence[Path],
    flags: Sequence[str],
    output: Path,
    hardware: Hardware,
    cpp_flags: Sequence[str] = (),
) -> Path:
    """Compile ``sources`` into one object in ``output``; ``flags`` overrule the board's."""
    wanted = ("-m", "-O", "-f")
    kept = [flag for flag in hardware.toolchain.flags if flag.startswith(wanted)]
    compiler = hardware.toolchain.compiler
    made = []
    (output / "system.c").write_text(SYSTEM)
    for number, source in enumerate([*sources, output / "system.c"]):
        made.append(output / f"published_{number}.o")
        plain = source.suffix == ".c"
        command = [compiler if plain else compiler.replace("gcc", "g++"), *kept, *flags, "-w"]
        command += ["-std=gnu11"] if plain else [*CPP_FLAGS, *cpp_flags]
        command += ["-c", str(source), "-o", str(made[-1])]
        tools.run(command, output, f"compiling {source.name}")
    whole = [compiler, *kept, "-r", "-nostdlib", *map(str, made), "-lm"]
    tools.run([*whole, "-o", "published.o"], output, "linking the program")
    return output / "published.o"


def built(
    folder: Path, hardware: Hardware, input_bytes: int, program: Path, outputs: int = 16
) -> Size:
    """The harness, a model that calls ``published`` of the object file ``program``, and that, in
    ``folder``. What it leaves in the arena are its ``outputs`` of 8 bits."""
    header = (Path(__file__).parent.parent / "fixture" / "model.h").read_text()
    for word, value in {
        "NN_INPUT_BYTES 16": f"NN_INPUT_BYTES {input_bytes}",
        "NN_OUTPUT_COUNT 3": f"NN_OUTPUT_COUNT {outputs}",
        "NN_ARENA_BYTES 32": f"NN_ARENA_BYTES {-(-outputs // 32) * 32}",
        "int16_t nn_output_t": "int8_t nn_output_t",
    }.items():
        assert word in header
        header = header.replace(word, value)
    code = model(
        globals="static uint8_t nn_given[NN_INPUT_BYTES] __attribute__((aligned(16)));\n"
        "static uint32_t nn_at;\nint published(void *, void *);",
        feed="for (uint32_t n = 0; n < count; n++) nn_given[nn_at++ % NN_INPUT_BYTES] = bytes[n];",
        invoke="nn_at = 0; if (published(nn_given, nn_arena)) return NN_CORRUPT;",
    ).replace("static uint8_t nn_arena", "__attribute__((aligned(16))) static uint8_t nn_arena")
    files = {**harness_sources(hardware), "model.h": header, "model.c": code}
    for name, content in files.items():
        wide = content.replace("uint16_t count", "uint32_t count")
        artifacts.write_text(folder / "generated" / name, wide if "model" in name else content)
    unknown = Bound(STACK_BYTES, ())  # calls through pointers have none
    with (
        patch.object(toolchain, "build_host"),
        patch.object(toolchain, "objects", beside(program)),
        patch.object(cortex_m, "_bound", return_value=unknown),
    ):
        return builds.build(folder / "generated", folder / "build", hardware)


def beside(program: Path):  # type: ignore[no-untyped-def]
    """``toolchain.objects``, with another in the folder."""
    usual = toolchain.objects

    @contextmanager
    def objects(*arguments: object) -> Iterator[Path]:
        with usual(*arguments) as folder:  # type: ignore[arg-type]
            (folder / program.name).write_bytes(program.read_bytes())
            yield folder

    return objects


FOLDERS = (
    "ActivationFunctions", "BasicMathFunctions", "ConcatenationFunctions", "ConvolutionFunctions",
    "FullyConnectedFunctions", "NNSupportFunctions", "PoolingFunctions", "ReshapeFunctions",
    "SoftmaxFunctions",
)  # fmt: skip


def cmsis_sources(clone: Path) -> list[Path]:
    """List the sources of called functions in a clone of github.com/ARM-software/CMSIS_5."""
    return [
        path for name in FOLDERS for path in sorted((clone / "CMSIS/NN/Source" / name).glob("*.c"))
    ]


def cmsis_includes(clone: Path) -> list[str]:
    return [f"-I{clone / 'CMSIS' / name}" for name in ("Core/Include", "NN/Include", "DSP/Include")]


CORRECTED = "arm_convolve_HWC_q7_fast_nonsquare"

ONNC = """
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


def onnc(code: Path, clones: Path, name: str, output: Path, hardware: Hardware) -> Path:
    """Tiny ONNC's of two entries: CMSIS-NN's older functions, one of them corrected."""
    folder = code / name / f"{name}01_code"
    (output / "platform.cc").write_text(ONNC)
    (output / "onnc_runtime.h").write_text("")  # made empty by the entries' own scripts
    corrected = output / f"{CORRECTED}.c"
    corrected.write_bytes((code.parent / f"{CORRECTED}.fixed").read_bytes())
    cmsis = clones / "CMSIS_5-b966796"
    sources = [output / "platform.cc", *sorted(folder.glob("*.cpp")), corrected]
    sources += [path for path in cmsis_sources(cmsis) if path.name != corrected.name]
    flags = [f"-I{folder}", f"-I{output}", *cmsis_includes(cmsis)]
    return joined(sources, flags, output, hardware)


MODELS = {"ic": "IC", "vww": "vww", "kws": "KWS", "ad": "AD"}

TFLM = """
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


def tflm(code: Path, clones: Path, name: str, output: Path, hardware: Hardware) -> Path:
    """TensorFlow Lite Micro with CMSIS-NN, as Renesas' entry has both in its project."""
    (output / "platform.cc").write_text(TFLM)
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


OUTPUT_BYTES = 2560
"""Room for any network's: 640 numbers of 4 bytes."""

TVM = """
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/stack_allocator.h>
#include "tvmgen_default.h"

static uint8_t memory[WORKSPACE_SIZE] __attribute__((aligned(16)));
static uint8_t out[%(output)d] __attribute__((aligned(16)));
static tvm_workspace_t space;

void TVMLogf(const char *text, ...) { (void)text; }
void TVMAPISetLastError(const char *text) { (void)text; }
void __attribute__((noreturn)) TVMPlatformAbort(tvm_crt_error_t error) { for (;;) (void)error; }

void *TVMBackendAllocWorkspace(int type, int id, uint64_t bytes, int code, int bits) {
    void *found = 0;
    return StackMemoryManager_Allocate(&space, bytes, &found) == kTvmErrorNoError ? found : 0;
}
int TVMBackendFreeWorkspace(int type, int id, void *at) {
    return StackMemoryManager_Free(&space, at);
}
int published(void *input, void *output) {
    (void)output;
    void *given[] = {input}, *made[] = {out};
    StackMemoryManager_Init(&space, memory, sizeof memory);
    return tvmgen_default_run((void *)given, (void *)made);
}
"""
"""Functions that the program needs: memory, as src/tvmruntime.cpp of the entries has it."""


def tvm(code: Path, clones: Path, name: str, output: Path, hardware: Hardware) -> Path:
    """microTVM's, as OctoML's entries have them."""
    folder = code / name
    workspace = re.search(r"-DWORKSPACE_SIZE=(\d+)", (folder / "CMakeLists.txt").read_text())
    assert workspace is not None
    (output / "platform.c").write_text(TVM % {"output": OUTPUT_BYTES})
    cmsis = clones / "CMSIS_5-51263182d"
    sources = [output / "platform.c", *sorted(folder.glob("model/codegen/host/src/*.c"))]
    sources += [folder / "crt/src/runtime/crt/memory/stack_allocator.c", *cmsis_sources(cmsis)]
    flags = [f"-I{folder / name}" for name in ("include", "crt_config", "crt/include")]
    flags += [*cmsis_includes(cmsis), f"-DWORKSPACE_SIZE={workspace[1]}"]
    return joined(sources, flags, output, hardware)
