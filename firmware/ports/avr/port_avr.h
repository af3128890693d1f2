/* ATmega328P and its relatives: USART0 polled, no interrupt. Costs no SRAM: a register of timer 1
 * keeps the last run's time; the phase is a write to GPIOR0 (1 cycle, 2 with its constant), which
 * nothing on a board notices and a simulator can watch. An image byte costs 4 such writes. */
#ifndef THIMBLE_PORT_AVR_H
#define THIMBLE_PORT_AVR_H

#include <avr/io.h>
#include <stdint.h>

#ifndef THIMBLE_BAUD
#define THIMBLE_BAUD 115200UL
#endif
#define PORT_DIVISOR ((F_CPU + THIMBLE_BAUD * 4) / (THIMBLE_BAUD * 8) - 1) /* U2X0, nearest */
#define PORT_PAINT 0xC5
#define PORT_TIMER_DIVISOR 64

#define PORT_MAIN __attribute__((OS_main))

extern uint8_t _end; /* the linker's: first byte after all statics */

/* Runs after the stack pointer is set and before data is copied; colours all that is free. */
__attribute__((naked, used, section(".init3"))) static void port_paint(void) {
    __asm__ volatile(
        "ldi r30, lo8(_end)\n"
        "ldi r31, hi8(_end)\n"
        "ldi r24, %0\n"
        "ldi r25, %1\n"
        "1: cpi r30, %2\n"
        "cpc r31, r25\n"
        "brsh 2f\n"
        "st Z+, r24\n"
        "rjmp 1b\n"
        "2:\n" ::"M"(PORT_PAINT),
        "M"((RAMEND + 1) >> 8), "M"((RAMEND + 1) & 0xFF));
}

static inline uint16_t port_untouched_bytes(void) {
    const uint8_t *byte = &_end;
    while ((uint16_t)byte <= RAMEND && *byte == PORT_PAINT) {
        byte++;
    }
    return (uint16_t)(byte - &_end);
}

static inline uint16_t port_stack_bytes(void) {
    return (uint16_t)(RAMEND + 1 - (uint16_t)&_end - port_untouched_bytes());
}

static inline void port_phase(uint8_t phase) { GPIOR0 = phase; }

static inline void port_init(void) {
    UBRR0 = PORT_DIVISOR;
    UCSR0A = _BV(U2X0);
    UCSR0B = _BV(RXEN0) | _BV(TXEN0);
    UCSR0C = _BV(UCSZ01) | _BV(UCSZ00);
}

static inline uint8_t port_read(void) {
    port_phase(PORT_WAIT);
    while (!(UCSR0A & _BV(RXC0))) {
    }
    port_phase(PORT_HARNESS);
    return UDR0;
}

static inline void port_write(uint8_t byte) {
    while (!(UCSR0A & _BV(UDRE0))) {
    }
    UDR0 = byte;
}

static inline void port_timer_start(void) {
    TCCR1B = _BV(CS11) | _BV(CS10); /* PORT_TIMER_DIVISOR */
    TCNT1 = 0;
    TIFR1 = _BV(TOV1);
}

/* The time is kept in a compare register that nothing compares with. */
static inline void port_timer_stop(void) {
    uint16_t ticks = TCNT1;
    OCR1A = TIFR1 & _BV(TOV1) ? UINT16_MAX : ticks;
}

/* All ones when the run took longer than the timer can say (65535 x 64 cycles, 262 ms). */
static inline uint32_t port_timer_cycles(void) {
    uint16_t ticks = OCR1A;
    return ticks == UINT16_MAX ? UINT32_MAX : (uint32_t)ticks * PORT_TIMER_DIVISOR;
}

#endif
