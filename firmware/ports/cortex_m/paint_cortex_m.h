/* What of the stack was ever used, by painted memory. Both numbers are 65535 when they are more than a
 * report can say. */
#ifndef THIMBLE_PAINT_CORTEX_M_H
#define THIMBLE_PAINT_CORTEX_M_H

#include <stdint.h>

#include "memory_cortex_m.h"

static inline const uint32_t *port_deepest(void) {
    const uint32_t *at = (const uint32_t *)port_ram_start;
    while (at < (const uint32_t *)port_stack_top && *at == PORT_PAINT) {
        at++;
    }
    return at;
}

static inline uint16_t port_said(uint32_t bytes) { return bytes < UINT16_MAX ? (uint16_t)bytes : UINT16_MAX; }

static inline uint16_t port_untouched_bytes(void) {
    return port_said((uint32_t)((const uint8_t *)port_deepest() - port_ram_start));
}

static inline uint16_t port_stack_bytes(void) {
    return port_said((uint32_t)(port_stack_top - (const uint8_t *)port_deepest()));
}

#endif
