"""microTVM's programs, as OctoML's entries have them."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.hardware import Hardware
from tests.targets.published import cmsis_nn
from tests.targets.published.build import joined

OUTPUT_BYTES = 2560
"""Room for any network's: 640 numbers of 4 bytes."""

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


def program(code: Path, clones: Path, name: str, output: Path, hardware: Hardware) -> Path:
    folder = code / name
    workspace = re.search(r"-DWORKSPACE_SIZE=(\d+)", (folder / "CMakeLists.txt").read_text())
    assert workspace is not None
    (output / "platform.c").write_text(PLATFORM % {"output": OUTPUT_BYTES})
    cmsis = clones / "CMSIS_5-51263182d"
    sources = [output / "platform.c", *sorted(folder.glob("model/codegen/host/src/*.c"))]
    sources += [folder / "crt/src/runtime/crt/memory/stack_allocator.c", *cmsis_nn.sources(cmsis)]
    flags = [f"-I{folder / name}" for name in ("include", "crt_config", "crt/include")]
    flags += [*cmsis_nn.includes(cmsis), f"-DWORKSPACE_SIZE={workspace[1]}"]
    return joined(sources, flags, output, hardware)
