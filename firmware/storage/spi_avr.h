/* ATmega328P and its relatives: SPI on PB3 to PB5, the card's select on PB2, an Uno's pins 11 to 13 and 10. */
#ifndef THIMBLE_SPI_AVR_H
#define THIMBLE_SPI_AVR_H

#include <avr/io.h>
#include <stdint.h>

#define SPI_BYTES_A_MS (F_CPU / 16 / 1000)

static inline void spi_select(uint8_t on) {
    if (on) {
        PORTB &= (uint8_t)~_BV(PB2);
    } else {
        PORTB |= _BV(PB2);
    }
}

static inline void spi_open(void) {
    spi_select(0);
    DDRB |= _BV(PB2) | _BV(PB3) | _BV(PB5);
    PORTB |= _BV(PB4); /* without a card the line is high */
    SPCR = _BV(SPE) | _BV(MSTR) | _BV(SPR1); /* a 64th of the clock */
    SPSR = 0;
}

/* Half of the clock. */
static inline void spi_fast(void) {
    SPCR = _BV(SPE) | _BV(MSTR);
    SPSR = _BV(SPI2X);
}

static inline void spi_begin(uint8_t byte) { SPDR = byte; }

static inline uint8_t spi_end(void) {
    while (!(SPSR & _BV(SPIF))) {
    }
    return SPDR;
}

#endif
