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

HERE = Path(__file__).parent
STACK_BYTES = 8192

CPP_FLAGS = (
    "-std=gnu++14", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics",
    "-fno-use-cxa-atexit",
)  # fmt: skip


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
    for number, source in enumerate([*sources, HERE / "system.c"]):
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


def onnc(code: Path, clones: Path, name: str, output: Path, hardware: Hardware) -> Path:
    """Tiny ONNC's of two entries: CMSIS-NN's older functions, one of them corrected."""
    folder = code / name / f"{name}01_code"
    (output / "onnc_runtime.h").write_text("")  # made empty by the entries' own scripts
    corrected = output / f"{CORRECTED}.c"
    corrected.write_bytes((code.parent / f"{CORRECTED}.fixed").read_bytes())
    cmsis = clones / "CMSIS_5-b966796"
    sources = [HERE / "onnc.cc", *sorted(folder.glob("*.cpp")), corrected]
    sources += [path for path in cmsis_sources(cmsis) if path.name != corrected.name]
    flags = [f"-I{folder}", f"-I{output}", *cmsis_includes(cmsis)]
    return joined(sources, flags, output, hardware)


MODELS = {"ic": "IC", "vww": "vww", "kws": "KWS", "ad": "AD"}


def tflm(code: Path, clones: Path, name: str, output: Path, hardware: Hardware) -> Path:
    """TensorFlow Lite Micro with CMSIS-NN, as Renesas' entry has both in its project."""
    source, lite = code / "src", code / "src/tensorflow/lite"
    without = {"debug_log.cc", "test_helpers.cc"}
    sources = [HERE / "tflm.cc"]
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


def tvm(code: Path, clones: Path, name: str, output: Path, hardware: Hardware) -> Path:
    """microTVM's, as OctoML's entries have them."""
    folder = code / name
    workspace = re.search(r"-DWORKSPACE_SIZE=(\d+)", (folder / "CMakeLists.txt").read_text())
    assert workspace is not None
    cmsis = clones / "CMSIS_5-51263182d"
    sources = [HERE / "tvm.c", *sorted(folder.glob("model/codegen/host/src/*.c"))]
    sources += [folder / "crt/src/runtime/crt/memory/stack_allocator.c", *cmsis_sources(cmsis)]
    flags = [f"-I{folder / name}" for name in ("include", "crt_config", "crt/include")]
    flags += [*cmsis_includes(cmsis), f"-DWORKSPACE_SIZE={workspace[1]}"]
    flags.append(f"-DOUTPUT_BYTES={OUTPUT_BYTES}")
    return joined(sources, flags, output, hardware)
