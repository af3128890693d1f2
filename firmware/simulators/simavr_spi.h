/* The SPI of a simulated AVR, where the ATmega328P has it, with an SD card whose select is PB2. */
#ifndef THIMBLE_SIMAVR_SPI_H
#define THIMBLE_SIMAVR_SPI_H

#include <simavr/sim_avr.h>

/* File of the card's content, cycles for a command and a block, reading, then writing. Ends the program where it
 * cannot be read. */
void spi_insert_card(char **argv);

void spi_connect(struct avr_t *chip);

#endif
