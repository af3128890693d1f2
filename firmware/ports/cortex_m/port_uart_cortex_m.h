/* A board with a Cortex-M: frames over a UART that is polled, at the clock that the chip has after reset.
 * Which UART, and which registers switch it and its pins on, the build says (pipeline/targets/cortex_m.py,
 * from the board's YAML). No board was at hand: tried on a simulated STM32F405 only. */
#ifndef THIMBLE_PORT_UART_CORTEX_M_H
#define THIMBLE_PORT_UART_CORTEX_M_H

#include <stdint.h>

#include "memory_cortex_m.h"

#define PORT_MAIN

#define UART_ENABLES(enable) ((enable) | 1u << 3 | 1u << 2) /* transmitter, receiver */
#define UART_RECEIVED (1u << 5)
#define UART_FREE (1u << 7)
#ifdef PORT_UART_SR /* STM32F1, F2, F4, L1 */
#define UART_STATUS PORT_REGISTER(PORT_UART)
#define UART_RECEIVE PORT_REGISTER(PORT_UART + 0x04)
#define UART_SEND UART_RECEIVE
#define UART_DIVISOR PORT_REGISTER(PORT_UART + 0x08)
#define UART_CONTROL PORT_REGISTER(PORT_UART + 0x0C)
#define UART_ON UART_ENABLES(1u << 13)
static inline void port_uart_overrun(void) {} /* reading status and data clears it */
#else
#define UART_CONTROL PORT_REGISTER(PORT_UART)
#define UART_DIVISOR PORT_REGISTER(PORT_UART + 0x0C)
#define UART_STATUS PORT_REGISTER(PORT_UART + 0x1C)
#define UART_CLEAR PORT_REGISTER(PORT_UART + 0x20)
#define UART_RECEIVE PORT_REGISTER(PORT_UART + 0x24)
#define UART_SEND PORT_REGISTER(PORT_UART + 0x28)
#define UART_ON UART_ENABLES(1u << 0)
#define UART_OVERRUN (1u << 3)
static inline void port_uart_overrun(void) { UART_CLEAR = UART_OVERRUN; }
#endif

typedef struct {
    uint32_t address, clear, set;
} port_setup_t;

static uint32_t port_cycles;

/* Cycles: of the data watchpoint unit, 32 bits; a Cortex-M0+ has none, but SysTick, 24 bits of eighths. */
#if __ARM_ARCH == 6
#define TICK_CONTROL PORT_REGISTER(0xE000E010)
#define TICK_RELOAD PORT_REGISTER(0xE000E014)
#define TICK_VALUE PORT_REGISTER(0xE000E018)
#define TICK_MOST 0xFFFFFFu
#define TICK_PASSED_ZERO (1u << 16)
static inline void port_counter_init(void) { TICK_RELOAD = TICK_MOST; }

static inline void port_timer_start(void) {
    TICK_VALUE = 0;
    TICK_CONTROL = 1; /* the reference clock: an eighth of the core's */
}

/* All ones when they are more than the timer can say. */
static inline void port_timer_stop(void) {
    const uint32_t left = TICK_VALUE;
    port_cycles = TICK_CONTROL & TICK_PASSED_ZERO ? UINT32_MAX : (TICK_MOST - left) * 8;
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

static inline void port_init(void) {
    static const port_setup_t setup[] = {PORT_UART_SETUP};
    for (uint32_t n = 0; n < sizeof setup / sizeof setup[0]; n++) {
        PORT_REGISTER(setup[n].address) = (PORT_REGISTER(setup[n].address) & ~setup[n].clear) | setup[n].set;
    }
    UART_DIVISOR = PORT_UART_DIVISOR;
    UART_CONTROL = UART_ON;
    port_counter_init();
}

static inline void port_phase(uint8_t phase) { (void)phase; }

static inline uint8_t port_read(void) {
    while (!(UART_STATUS & UART_RECEIVED)) {
        port_uart_overrun(); /* the frame is lost, which its check will say */
    }
    return (uint8_t)UART_RECEIVE;
}

static inline void port_write(uint8_t byte) {
    while (!(UART_STATUS & UART_FREE)) {
    }
    UART_SEND = byte;
}

#include "paint_cortex_m.h"

#endif
