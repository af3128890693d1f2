/* The data cache of a Cortex-M7 (M55, M85), line by line (Armv7-M ARM, B2.2.7 and B3.2.2; CMSIS:
 * SCB_CleanDCache_by_Addr, SCB_InvalidateDCache_by_Addr). Where it is off, or the lines are not in it, as those of
 * tightly coupled memory never are, nothing happens. */
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#include "data_cache.h"

#if STORAGE_LINE_BYTES > 1
#define CLEAN_LINE (*(volatile uint32_t *)0xE000EF68)   /* DCCMVAC */
#define DISCARD_LINE (*(volatile uint32_t *)0xE000EF5C) /* DCIMVAC */

/* Before the first line all writes have been made, after the last one all that was told is done. */
static void barrier(void) { __asm__ volatile("dsb" ::: "memory"); }

void data_cache_clean(const uint8_t *memory, uint32_t bytes) {
    const uint32_t end = (uint32_t)memory + bytes;
    barrier();
    for (uint32_t line = (uint32_t)memory & ~(STORAGE_LINE_BYTES - 1u); line < end; line += STORAGE_LINE_BYTES) {
        CLEAN_LINE = line;
    }
    barrier();
}

void data_cache_discard(uint8_t *memory, uint32_t bytes) {
    const uint32_t end = (uint32_t)memory + bytes;
    barrier();
    for (uint32_t line = (uint32_t)memory & ~(STORAGE_LINE_BYTES - 1u); line < end; line += STORAGE_LINE_BYTES) {
        DISCARD_LINE = line;
    }
    barrier();
}
#endif
#endif
