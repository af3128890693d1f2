/* The network as a function, of programs with TensorFlow Lite Micro.  */
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
