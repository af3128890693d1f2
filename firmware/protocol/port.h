/* What a port gives to main.c; one header each, chosen by the compiler that reads it.
 *
 *     PORT_MAIN                  attributes of main
 *     port_init()                line, timer
 *     port_read()                waits for one byte; the wait is phase PORT_WAIT
 *     port_read_ahead()          the next byte, below 0 at the end: of a port with PORT_AHEAD, in nn_invoke
 *     port_write(byte)           waits until the line takes it
 *     port_phase(phase)          says what the processor is doing from here on
 *     port_timer_start(), port_timer_stop(), port_timer_cycles()
 *     port_stack_bytes()         most bytes of stack ever used, found in painted memory
 *     port_untouched_bytes()     bytes between the statics and the stack never written
 */
#ifndef THIMBLE_PORT_H
#define THIMBLE_PORT_H

enum port_phase {
    PORT_WAIT = 0,   /* for the line: in no figure */
    PORT_FEED = 1,   /* in nn_init or nn_feed */
    PORT_INVOKE = 2, /* in nn_invoke */
    PORT_HARNESS = 3, /* framing, checking, answering */
    PORT_LOAD = 4     /* in nn_load or nn_loaded: parameters are written */
};

#ifdef __AVR__
#include "port_avr.h"
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#ifdef PORT_UART /* a board; else a simulated one */
#include "port_uart_cortex_m.h"
#else
#include "port_cortex_m.h"
#endif
#else
#include "port_host.h"
#endif

#endif
