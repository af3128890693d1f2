/* A board with a Cortex-M: frames over a UART that is polled, at the clock that the chip has after reset, or that the
 * setup switches on. Which UART, by its layout of registers (uart_*.h), and which registers switch it and its pins on,
 * the build says (pipeline/targets/cortex_m_board.py, from the board's YAML). No board was at hand. */
#ifndef THIMBLE_PORT_UART_CORTEX_M_H
#define THIMBLE_PORT_UART_CORTEX_M_H

#include <stdint.h>

#include "memory_cortex_m.h"

#define PORT_MAIN

#include PORT_UART_LAYOUT

typedef struct {
    uint32_t address, clear, set;
} port_setup_t;

static uint32_t port_cycles;

/* Cycles: of the data watchpoint unit, 32 bits; a Cortex-M0+ has none, but SysTick, 24 bits, of eighths where there
 * is a reference clock. */
#if __ARM_ARCH == 6
#define TICK_CONTROL PORT_REGISTER(0xE000E010)
#define TICK_RELOAD PORT_REGISTER(0xE000E014)
#define TICK_VALUE PORT_REGISTER(0xE000E018)
#define TICK_MOST 0xFFFFFFu
#define TICK_PASSED_ZERO (1u << 16)
#ifndef TICK_CYCLES
#define TICK_CYCLES 8
#endif
#define TICK_ON (TICK_CYCLES == 1 ? 1u << 2 | 1u : 1u)
static inline void port_counter_init(void) { TICK_RELOAD = TICK_MOST; }

static inline void port_timer_start(void) {
    TICK_VALUE = 0;
    TICK_CONTROL = TICK_ON;
    (void)TICK_CONTROL; /* forgets that it has passed zero */
}

/* All ones when they are more than the timer can say. */
static inline void port_timer_stop(void) {
    const uint32_t left = TICK_VALUE;
    port_cycles = TICK_CONTROL & TICK_PASSED_ZERO ? UINT32_MAX : (TICK_MOST - left) * TICK_CYCLES;
    TICK_CONTROL = 0;
}
#else
#define TRACE_CONTROL PORT_REGISTER(0xE000EDFC)
#define TRACE_ON (1u << 24)
#define WATCH_CONTROL PORT_REGISTER(0xE0001000)
#define WATCH_CYCLES PORT_REGISTER(0xE0001004)
#define WATCH_LOCK PORT_REGISTER(0xE0001FB0) /* a Cortex-M7 has it locked */
#define WATCH_KEY 0xC5ACCE55u
static inline void port_counter_init(void) {
    TRACE_CONTROL |= TRACE_ON;
    WATCH_LOCK = WATCH_KEY;
    WATCH_CONTROL |= 1;
}

static inline void port_timer_start(void) { WATCH_CYCLES = 0; }

static inline void port_timer_stop(void) { port_cycles = WATCH_CYCLES; }
#endif

static inline uint32_t port_timer_cycles(void) { return port_cycles; }

/* Where it sets what it clears it waits for that. A register at an odd address has 8 bits, at another that is no
 * multiple of 4, 16. */
static inline void port_set_up(const port_setup_t *at) {
    if (at->set && at->clear == at->set) {
        while ((PORT_REGISTER(at->address) & at->set) != at->set) {
        }
    } else if (at->address & 1) {
        volatile uint8_t *const place = (volatile uint8_t *)at->address;
        *place = (uint8_t)((*place & ~at->clear) | at->set);
    } else if (at->address & 2) {
        volatile uint16_t *const place = (volatile uint16_t *)at->address;
        *place = (uint16_t)((*place & ~at->clear) | at->set);
    } else {
        PORT_REGISTER(at->address) = (PORT_REGISTER(at->address) & ~at->clear) | at->set;
    }
}

static inline void port_init(void) {
    static const port_setup_t setup[] = {PORT_UART_SETUP};
    for (uint32_t n = 0; n < sizeof setup / sizeof setup[0]; n++) {
        port_set_up(&setup[n]);
    }
    uart_open();
    port_counter_init();
}

static inline void port_phase(uint8_t phase) { (void)phase; }

static inline uint8_t port_read(void) {
    while (!uart_received()) {
    }
    return uart_take();
}

static inline void port_write(uint8_t byte) {
    while (!uart_free()) {
    }
    uart_put(byte);
}

#include "paint_cortex_m.h"

#endif
