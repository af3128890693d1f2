/* A simulated Cortex-M: frames come from the file `requests` and go to the file `replies`; at the end of
 * the requests the whole RAM goes to `memory`, and the arena after it where that lies outside. Its timer ticks with simulated time, in which each
 * instruction takes a nanosecond (QEMU's -icount shift=0): what it counts are instructions. */
#ifndef THIMBLE_PORT_CORTEX_M_H
#define THIMBLE_PORT_CORTEX_M_H

#include <stdint.h>

#include "memory_cortex_m.h"
#include "semihosting.h"

#define PORT_MAIN
#define PORT_LINE_BYTES 4096
#define PORT_TIMER_CONTROL PORT_REGISTER(PORT_TIMER) /* CMSDK APB timer (Arm DDI 0479, 4.4) */
#define PORT_TIMER_VALUE PORT_REGISTER(PORT_TIMER + 4)
#define PORT_TIMER_RELOAD PORT_REGISTER(PORT_TIMER + 8)

/* Hints that do nothing, for who watches the instructions: an inference begins, ends. */
#define PORT_BEGINS ".inst.n 0xBF70"
#define PORT_ENDS ".inst.n 0xBF80"

PORT_ON_DESK static struct {
    int32_t requests, replies;
    uint32_t next, read, written, instructions;
    uint8_t in[PORT_LINE_BYTES], out[PORT_LINE_BYTES];
} port;

static inline int32_t port_open(const char *name, uint32_t length, enum semihosting_mode mode) {
    const int32_t file = semihosting_open(name, length, mode);
    if (file < 0) {
        semihosting_exit(3);
    }
    return file;
}
#define PORT_OPEN(name, mode) port_open(name, sizeof name - 1, mode)

static inline void port_init(void) {
    port.requests = PORT_OPEN("requests", SEMIHOSTING_TO_READ);
    port.replies = PORT_OPEN("replies", SEMIHOSTING_TO_WRITE);
    port.next = port.read = port.written = port.instructions = 0;
}

static inline void port_phase(uint8_t phase) { (void)phase; }

static inline void port_flush(void) {
    if (semihosting_write(port.replies, port.out, port.written)) {
        semihosting_exit(4);
    }
    port.written = 0;
}

__attribute__((noreturn)) static inline void port_end(void) {
    (void)semihosting_close(port.replies);
    const int32_t memory = PORT_OPEN("memory", SEMIHOSTING_TO_WRITE);
    const uint32_t outside = port_activations_bytes ? (uint32_t)(port_arena_end - port_arena_start) : 0;
    if (semihosting_write(memory, port_ram_start, (uint32_t)port_ram_bytes) ||
        (outside && semihosting_write(memory, port_arena_start, outside))) {
        semihosting_exit(4);
    }
    semihosting_exit(0);
}

__attribute__((noinline)) static void port_refill(void) {
    port_flush();
    port.next = 0;
    port.read = PORT_LINE_BYTES - semihosting_read(port.requests, port.in, PORT_LINE_BYTES);
    if (port.read == 0) {
        port_end();
    }
}

static inline uint8_t port_read(void) {
    if (port.next == port.read) {
        port_refill();
    }
    return port.in[port.next++];
}

#define PORT_AHEAD
/* The next byte, while something is computed; below 0 at the end. */
static inline int16_t port_read_ahead(void) {
    port_open_desk();
    if (port.next == port.read) {
        port.next = 0;
        port.read = PORT_LINE_BYTES - semihosting_read(port.requests, port.in, PORT_LINE_BYTES);
    }
    const int16_t byte = port.next < port.read ? port.in[port.next++] : -1;
    port_close_desk();
    return byte;
}

static inline void port_write(uint8_t byte) {
    if (port.written == PORT_LINE_BYTES) {
        port_flush();
    }
    port.out[port.written++] = byte;
}

static inline void port_timer_start(void) {
    PORT_TIMER_RELOAD = UINT32_MAX;
    PORT_TIMER_VALUE = UINT32_MAX;
    PORT_TIMER_CONTROL = 1;
    port_close_desk();
    __asm__ volatile(PORT_BEGINS ::: "memory");
}

/* All ones when they are more than that, or than the timer can say. */
static inline void port_timer_stop(void) {
    __asm__ volatile(PORT_ENDS ::: "memory");
    port_open_desk();
    const uint32_t ticks = UINT32_MAX - PORT_TIMER_VALUE;
    PORT_TIMER_CONTROL = 0;
    port.instructions = ticks > UINT32_MAX / PORT_TICK ? UINT32_MAX : ticks * PORT_TICK;
}

static inline uint32_t port_timer_cycles(void) { return port.instructions; }

#include "paint_cortex_m.h"

#endif
