/* A model of an SD card on SPI (SD Physical Layer Simplified Specification, 7): a byte in, a byte out. It is strict
 * where cards may be: commands it does not expect, of a wrong check or with the card not ready are refused, and
 * once told to check data it does. What it takes is counted in the caller's time. */
#ifndef THIMBLE_SD_CARD_H
#define THIMBLE_SD_CARD_H

#include <stdint.h>

enum { SD_BLOCK = 512 };

/* Done to blocks from number `after` of all that pass on, `times` of them. */
enum sd_fault {
    SD_SOUND,
    SD_WRONG_BYTE,   /* read: one is another */
    SD_WRONG_CHECK,  /* read, and written: as if the line had changed one */
    SD_SHORT,        /* read: the block ends early */
    SD_ERROR_TOKEN,  /* read: instead of the block */
    SD_NO_TOKEN,     /* read: nothing comes */
    SD_WRITE_ERROR,  /* written: refused */
    SD_BUSY,         /* written: for ever, or until it is not selected */
    SD_BAD_STATUS,   /* written: accepted, but not stored */
    SD_GONE          /* from then on nothing answers */
};

struct sd_card {
    uint8_t *image;
    uint32_t blocks;
    uint8_t high_capacity, version; /* 1 or 2 */
    uint64_t read_command, read_block, write_command, write_block; /* time until the data, and while it is busy */
    uint32_t idle_loops;                                           /* until ACMD41 says ready */
    enum sd_fault fault;
    uint32_t after, times;
    uint32_t passed; /* blocks so far */

    /* The rest is the model's own, and 0 to begin with. */
    uint8_t selected, ready, checks, application, bad_status;
    uint8_t frame[6], answer[40];
    uint32_t framed, answers, answered;
    enum { SD_COMMAND, SD_READING, SD_EXPECTING, SD_WRITING } state;
    uint8_t several, data[SD_BLOCK + 2];
    uint32_t block, at, sent;
    uint64_t free_at; /* when data comes, or it is no longer busy */
    uint8_t busy;
};

void sd_card_select(struct sd_card *card, uint8_t on);
uint8_t sd_card_pass(struct sd_card *card, uint8_t in, uint64_t now);

#endif
