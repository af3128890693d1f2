/* Functions that the program needs: memory, as src/tvmruntime.cpp of the entries has it. */
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/stack_allocator.h>
#include "tvmgen_default.h"

static uint8_t memory[WORKSPACE_SIZE] __attribute__((aligned(16)));
static uint8_t out[OUTPUT_BYTES] __attribute__((aligned(16)));
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
