/* A native program: frames come from standard input and go to standard output; it ends with its
 * input. Nothing is timed and no stack is painted: those figures are a chip's. */
#ifndef THIMBLE_PORT_HOST_H
#define THIMBLE_PORT_HOST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PORT_MAIN

static inline void port_phase(uint8_t phase) { (void)phase; }

static inline void port_init(void) {}

static inline uint8_t port_read(void) {
    int byte = getchar_unlocked();
    if (byte == EOF) {
        exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    return (uint8_t)byte;
}

static inline void port_write(uint8_t byte) { putchar_unlocked(byte); }

static inline void port_timer_start(void) {}
static inline void port_timer_stop(void) {}
static inline uint32_t port_timer_cycles(void) { return 0; }
static inline uint16_t port_stack_bytes(void) { return 0; }
static inline uint16_t port_untouched_bytes(void) { return 0; }

#endif
