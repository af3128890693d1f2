/* Keeps a core's data cache in step with memory that a DMA reads and writes, by address: every line that has one of the
 * bytes. A part with another cache gives these two functions instead of data_cache.c.
 *
 * Both are also barriers, cache or not: a DMA is begun by a write to a device's register, and the architecture lets
 * that one overtake writes to ordinary memory (Armv7-M ARM, A3.7.3). */
#ifndef THIMBLE_DATA_CACHE_H
#define THIMBLE_DATA_CACHE_H

#include <stdint.h>

#include "storage.h"

#if STORAGE_LINE_BYTES > 1
/* What the core wrote is in memory when this returns, and nothing of it is left to be written later. */
void data_cache_clean(const uint8_t *memory, uint32_t bytes);

/* What the cache holds is forgotten: the core reads memory next. */
void data_cache_discard(uint8_t *memory, uint32_t bytes);
#else
static inline void data_cache_barrier(void) {
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    __asm__ volatile("dsb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

static inline void data_cache_clean(const uint8_t *memory, uint32_t bytes) {
    (void)memory, (void)bytes;
    data_cache_barrier();
}

static inline void data_cache_discard(uint8_t *memory, uint32_t bytes) {
    (void)memory, (void)bytes;
    data_cache_barrier();
}
#endif

#endif
