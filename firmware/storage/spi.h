/* What a port gives to sd_device.c, as inline functions; one header each, chosen by the compiler that reads it.
 *
 *     SPI_BYTES_A_MS     as many as pass in a millisecond at the most: waiting is counted in bytes
 *     spi_open()         master, mode 0, at most 400 kHz, the card not selected
 *     spi_fast()         from here on as fast as the card takes it: 25 MHz at the most
 *     spi_select(on)     of the card
 *     spi_begin(byte)    begins to send a byte
 *     spi_end()          waits until it has passed; the one that came meanwhile
 */
#ifndef THIMBLE_SPI_H
#define THIMBLE_SPI_H

#ifdef __AVR__
#include "spi_avr.h"
#else
#include "spi_board.h"
#endif

static inline uint8_t spi_pass(uint8_t byte) {
    spi_begin(byte);
    return spi_end();
}

#endif
