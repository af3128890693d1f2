"""``python -m tests.targets.published TINY CMSIS``: programs whose time and energy are published,
on the simulated cores: what the cycle model says of them, and how far off it is.

They are those of MLPerf Tiny's results that can be had as source and are of a core that is
simulated: OctoML's of v1.0, microTVM with its own kernels and with CMSIS-NN. TINY is a clone of
github.com/mlcommons/tiny_results_v1.0, CMSIS one of github.com/ARM-software/CMSIS_5 at 51263182d,
which the entries name; more words name networks. The C that was measured is compiled as it is, gcc
-O2, in this project's harness; what was measured is read from the entries' logs. One random input.

Ends with 1 where a time is off by more than a core's model says of itself.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from pipeline import artifacts
from pipeline.hardware import Hardware
from pipeline.targets import builds, cortex_m, qemu, qemu_cycles, toolchain, tools
from pipeline.targets.avr_stack import Bound
from pipeline.targets.harness import harness_sources
from pipeline.targets.toolchain import Size
from tests.targets.conftest import model
from tests.targets.cortex_m import board_named

NETWORKS = {"ic": 3072, "vww": 27648, "kws": 490, "ad": 2560}
"""Bytes of an input."""

STACK_BYTES = 8192

OUTPUT_BYTES = 2560
"""Room for any network's: 640 numbers of 4 bytes."""


@dataclass(frozen=True)
class Entry:
    """``code`` and ``results``: below closed/OctoML/code and results; ``clock_hz`` where the board
    that stands in has another."""

    title: str
    code: str
    results: str
    board: str
    clock_hz: int = 0

    def hardware(self) -> Hardware:
        board = board_named(self.board)
        return replace(board, clock_hz=self.clock_hz or board.clock_hz)


ENTRIES = (
    Entry(
        "microTVM, CMSIS-NN, NUCLEO-L4R5ZI (M4)",
        "microtvm_cmsis_nn/NUCLEO_L4R5ZI", "microtvm_cmsis_nn/NUCLEO_L4R5ZI", "nucleo_l4r5zi",
    ),
    Entry(
        "microTVM, own kernels, NUCLEO-L4R5ZI (M4)",
        "microtvm_native/NUCLEO_L4R5ZI", "microtvm_native/NUCLEO_L4R5ZI", "nucleo_l4r5zi",
    ),
    Entry(
        "microTVM, CMSIS-NN, nRF5340 DK (M33), the U575's flash",
        "microtvm_cmsis_nn/NRF5340DK", "microtvm_cmsis_nn/NRF5340-DK", "nucleo_u575zi", 128_000_000,
    ),
)  # fmt: skip

PLATFORM = """
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
"""What the program asks of its platform: memory, as src/tvmruntime.cpp of the entries has it."""

CMSIS_NN = (
    "ActivationFunctions", "BasicMathFunctions", "ConcatenationFunctions", "ConvolutionFunctions",
    "FullyConnectedFunctions", "NNSupportFunctions", "PoolingFunctions", "ReshapeFunctions",
    "SoftmaxFunctions",
)  # fmt: skip


def compiled(code: Path, cmsis: Path, output: Path, hardware: Hardware) -> Path:
    """The program in ``code``, compiled into ``output``."""
    workspace = re.search(r"-DWORKSPACE_SIZE=(\d+)", (code / "CMakeLists.txt").read_text())
    assert workspace is not None
    (output / "platform.c").write_text(PLATFORM % {"output": OUTPUT_BYTES})
    sources = [output / "platform.c", *sorted(code.glob("model/codegen/host/src/*.c"))]
    sources += [code / "crt/src/runtime/crt/memory/stack_allocator.c"]
    for name in CMSIS_NN:
        sources += sorted((cmsis / "CMSIS/NN/Source" / name).glob("*.c"))
    folders = ("include", "crt_config", "crt/include")
    include = [f"-I{code / name}" for name in folders]
    include += [f"-I{cmsis / name}" for name in ("CMSIS/Core/Include", "CMSIS/NN/Include")]
    wanted = ("-m", "-O", "-f", "-std")
    flags = [flag for flag in hardware.toolchain.flags if flag.startswith(wanted)]
    flags += ["-std=gnu11", "-w", f"-DWORKSPACE_SIZE={workspace[1]}"]
    made = []
    for number, source in enumerate(sources):
        made.append(output / f"published_{number}.o")
        command = [hardware.toolchain.compiler, *flags, *include, "-c", str(source)]
        tools.run([*command, "-o", str(made[-1])], output, f"compiling {source.name}")
    whole = [hardware.toolchain.compiler, *flags, "-r", "-nostdlib", *map(str, made), "-lm"]
    tools.run([*whole, "-o", "published.o"], output, "linking the program")
    return output / "published.o"


def built(
    folder: Path, hardware: Hardware, input_bytes: int, program: Path, outputs: int = 16
) -> Size:
    """The harness, a model that calls ``published`` of the object file ``program``, and that, in
    ``folder``. What it leaves in the arena are its ``outputs`` of 8 bits."""
    header = (Path(__file__).parent / "fixture" / "model.h").read_text()
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


def published(folder: Path) -> tuple[float, float]:
    """Milliseconds and microjoules of an inference, from the logs in ``folder``; 0 for neither."""

    def last(kind: str, pattern: str) -> float:
        log = folder / kind / "results.txt"
        found = re.findall(pattern, log.read_text()) if log.exists() else []
        return float(found[-1]) if found else 0.0

    rate = last("performance", r"Median throughput is +([\d.]+) inf")
    return 1e3 / rate, last("energy", r"Median energy cost is +([\d.]+) uJ")


def main(tiny: Path, cmsis: Path, names: list[str]) -> int:
    worse, octoml = 0, tiny / "closed" / "OctoML"
    print(f"{'program':56} {'':4} {'measured':>9} {'modelled':>9} {'error':>6}  {'band':15} "
          f"{'measured':>9} {'modelled':>9} {'error':>6}")  # fmt: skip
    for entry in ENTRIES:
        hardware = entry.hardware()
        for name in names or NETWORKS:
            input_bytes = NETWORKS[name]
            with tempfile.TemporaryDirectory(prefix="thimble.") as place:
                folder = Path(place)
                program = compiled(octoml / "code" / entry.code / name, cmsis, folder, hardware)
                size = built(folder, hardware, input_bytes, program)
                image = np.random.default_rng(0).integers(0, 256, (1, input_bytes), np.uint8)
                found = qemu.run(folder / "build", vars(size), hardware, image).modelled_cycles
            assert found is not None
            ms = {key: found[key] / hardware.clock_hz * 1e3 for key in qemu_cycles.BAND}
            measured, energy = published(octoml / "results" / entry.results / name)
            off = ms["median"] / measured - 1
            line = f"{measured:6.1f} ms {ms['median']:6.1f} ms {off:+6.1%}"
            line += f"  {ms['low']:.1f}–{ms['high']:.1f}".ljust(17)
            if energy and hardware.power.active_ma:
                watts = hardware.power.supply_volt * hardware.power.active_ma * 1e-3
                ours = ms["median"] * watts * 1e3
                line += f" {energy:6,.0f} µJ {ours:6,.0f} µJ {ours / energy - 1:+6.1%}"
            print(f"{entry.title:56} {name:4} {line}", flush=True)
            said = [each.error_pct for each in qemu_cycles.VALIDATED if each.cpu == hardware.cpu]
            worse += abs(off) * 100 > max(said)
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
