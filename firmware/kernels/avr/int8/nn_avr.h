/* What kernels in assembly for an AVR have in C, for other machines. */
#ifndef NN_AVR_H
#define NN_AVR_H

#include "nn_int8.h"

/* Three bytes, the least significant first. */
static inline int32_t nn_signed_24(int32_t low, int32_t middle, int32_t high) {
    return low + middle * 256 + (int8_t)high * 65536;
}

#endif
