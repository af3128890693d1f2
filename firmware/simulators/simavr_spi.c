/* A byte passes when it is written, and is there when its eight clocks are over, at the rate that SPCR sets. simavr's
 * own SPI takes 100 us for every byte. */
#include <stdio.h>
#include <stdlib.h>

#include "sd_card.h"
#include "simavr_spi.h"

enum { PORTB = 0x25, SPCR = 0x4C, SPSR = 0x4D, SPDR = 0x4E };
enum { PB2 = 1 << 2, SPR = 3, SPI2X = 1 << 0, SPIF = 1 << 7 };
enum { CARD_UNIT = 1024 }; /* blocks: the least that a card can say it has */

static struct sd_card card;
static uint8_t came;
static avr_cycle_count_t until;

static void write_data(struct avr_t *chip, avr_io_addr_t address, uint8_t byte, void *unused) {
    static const uint8_t divisors[] = {4, 16, 64, 128};
    (void)address, (void)unused;
    const unsigned divisor = divisors[chip->data[SPCR] & SPR] / (chip->data[SPSR] & SPI2X ? 2 : 1);
    sd_card_select(&card, !(chip->data[PORTB] & PB2));
    came = card.image ? sd_card_pass(&card, byte, chip->cycle) : 0xFF;
    until = chip->cycle + 8 * divisor;
}

static uint8_t read_status(struct avr_t *chip, avr_io_addr_t address, void *unused) {
    (void)unused;
    return (uint8_t)((chip->data[address] & SPI2X) | (chip->cycle >= until ? SPIF : 0));
}

static uint8_t read_data(struct avr_t *chip, avr_io_addr_t address, void *unused) {
    (void)chip, (void)address, (void)unused;
    return came;
}

void spi_insert_card(char **argv) {
    FILE *file = fopen(argv[0], "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        fprintf(stderr, "cannot read %s\n", argv[0]);
        exit(1);
    }
    const long bytes = ftell(file);
    rewind(file);
    card.blocks = (uint32_t)(bytes / SD_BLOCK / CARD_UNIT + 1) * CARD_UNIT;
    card.image = calloc(card.blocks, SD_BLOCK);
    if (!card.image || fread(card.image, 1, (size_t)bytes, file) != (size_t)bytes) {
        fprintf(stderr, "cannot read %s\n", argv[0]);
        exit(1);
    }
    fclose(file);
    card.high_capacity = 1;
    card.version = 2;
    card.idle_loops = 2;
    card.read_command = (uint64_t)atol(argv[1]);
    card.read_block = (uint64_t)atol(argv[2]);
    card.write_command = (uint64_t)atol(argv[3]);
    card.write_block = (uint64_t)atol(argv[4]);
}

void spi_connect(struct avr_t *chip) {
    chip->io[AVR_DATA_TO_IO(SPSR)].r.c = read_status;
    chip->io[AVR_DATA_TO_IO(SPDR)].r.c = read_data;
    chip->io[AVR_DATA_TO_IO(SPDR)].w.c = write_data;
}
