#include "sd_card.h"

#include <string.h>

#include "../storage/sd_crc.h"

enum { R1_READY = 0x00, R1_IDLE = 0x01, R1_ILLEGAL = 0x04, R1_CHECK = 0x08, R1_ADDRESS = 0x40 };
enum { DATA = 0xFE, SEVERAL = 0xFC, STOP = 0xFD, OUT_OF_RANGE = 0x08 };
enum { ACCEPTED = 0xE5, WRONG_CHECK = 0xEB, WRITE_ERROR = 0xED };

static int faulty(const struct sd_card *card, enum sd_fault fault) {
    return card->fault == fault && card->passed >= card->after && card->passed - card->after < card->times;
}

static void say(struct sd_card *card, uint8_t byte) { card->answer[card->answers++] = byte; }

static void say_word(struct sd_card *card, uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        say(card, (uint8_t)(word >> shift));
    }
}

static void say_csd(struct sd_card *card) {
    uint8_t csd[16] = {0};
    if (card->high_capacity) {
        const uint32_t size = (card->blocks >> 10) - 1;
        csd[0] = 0x40;
        csd[5] = 9;
        csd[7] = size >> 16 & 0x3F;
        csd[8] = (uint8_t)(size >> 8);
        csd[9] = (uint8_t)size;
    } else { /* units of 4 blocks */
        const uint32_t size = (card->blocks >> 2) - 1;
        csd[5] = 9;
        csd[6] = size >> 10 & 3;
        csd[7] = (uint8_t)(size >> 2);
        csd[8] = (uint8_t)(size << 6);
    }
    uint16_t crc = 0;
    say(card, 0xFF);
    say(card, DATA);
    for (int n = 0; n < 16; n++) {
        say(card, csd[n]);
        crc = sd_crc16(crc, csd[n]);
    }
    say(card, (uint8_t)(crc >> 8));
    say(card, (uint8_t)crc);
}

/* A block to be read, from `free_at` on. */
static void fetch(struct sd_card *card, uint64_t free_at) {
    uint16_t crc = 0;
    card->free_at = free_at;
    card->sent = card->at = 0;
    if (faulty(card, SD_NO_TOKEN)) {
        card->free_at = UINT64_MAX;
        card->passed++;
    }
    if (card->block >= card->blocks) {
        return;
    }
    memcpy(card->data, card->image + (uint64_t)card->block * SD_BLOCK, SD_BLOCK);
    for (int n = 0; n < SD_BLOCK; n++) {
        crc = sd_crc16(crc, card->data[n]);
    }
    card->data[SD_BLOCK] = (uint8_t)(crc >> 8);
    card->data[SD_BLOCK + 1] = (uint8_t)crc;
    if (faulty(card, SD_WRONG_BYTE)) {
        card->data[card->block % SD_BLOCK] ^= 0x10;
    }
    if (faulty(card, SD_WRONG_CHECK)) {
        card->data[SD_BLOCK + 1] ^= 1;
    }
}

static uint8_t started(struct sd_card *card, uint32_t argument, int reads, int several, uint64_t now) {
    card->block = card->high_capacity ? argument : argument / SD_BLOCK;
    if (card->block >= card->blocks || (!card->high_capacity && argument % SD_BLOCK)) {
        return R1_ADDRESS;
    }
    card->several = (uint8_t)several;
    card->state = reads ? SD_READING : SD_EXPECTING;
    if (reads) {
        fetch(card, now + card->read_command + card->read_block);
    }
    return R1_READY;
}

static void obey(struct sd_card *card, uint64_t now) {
    const uint8_t number = card->frame[0] & 0x3F, application = card->application;
    const uint32_t argument = (uint32_t)card->frame[1] << 24 | (uint32_t)card->frame[2] << 16 |
                              (uint32_t)card->frame[3] << 8 | card->frame[4];
    const uint8_t idle = card->ready ? R1_READY : R1_IDLE;
    uint8_t crc = 0;
    for (int n = 0; n < 5; n++) {
        crc = sd_crc7(crc, card->frame[n]);
    }
    card->answers = card->answered = 0;
    card->application = 0;
    if (number == 12 && card->state == SD_READING) {
        card->state = SD_COMMAND;
        say(card, 0xFF); /* in the place of a byte of data */
    }
    say(card, 0xFF);
    if ((card->checks || number == 0 || number == 8) && (crc | 1) != card->frame[5]) {
        say(card, idle | R1_CHECK);
        return;
    }
    switch (number) {
    case 0:
        card->ready = card->checks = 0;
        say(card, R1_IDLE);
        return;
    case 8:
        say(card, card->version > 1 ? idle : idle | R1_ILLEGAL);
        if (card->version > 1) {
            say_word(card, argument & 0xFFF);
        }
        return;
    case 55:
        card->application = 1;
        say(card, idle);
        return;
    case 58:
        say(card, idle);
        say_word(card, 0x00FF8000u | (uint32_t)card->ready << 31 | (uint32_t)(card->ready && card->high_capacity) << 30);
        return;
    case 59:
        card->checks = argument & 1;
        say(card, idle);
        return;
    case 41:
        if (application) {
            const int knows = !card->high_capacity || argument >> 30 & 1;
            card->ready = knows && (card->idle_loops == 0 || --card->idle_loops == 0);
            say(card, card->ready ? R1_READY : R1_IDLE);
            return;
        }
        break;
    default:
        break;
    }
    if (!card->ready) {
        say(card, idle | R1_ILLEGAL);
        return;
    }
    switch (number) {
    case 9:
        say(card, R1_READY);
        say_csd(card);
        return;
    case 12:
        say(card, R1_READY);
        return;
    case 13:
        say(card, R1_READY);
        say(card, card->bad_status);
        card->bad_status = 0;
        return;
    case 16:
        say(card, argument == SD_BLOCK ? R1_READY : R1_ADDRESS);
        return;
    case 17: case 18: case 24: case 25:
        say(card, started(card, argument, number < 24, number == 18 || number == 25, now));
        return;
    default:
        say(card, R1_ILLEGAL);
    }
}

/* A block that has come with its check. */
static void store(struct sd_card *card, uint64_t now) {
    uint16_t crc = 0;
    for (int n = 0; n < SD_BLOCK + 2; n++) {
        crc = sd_crc16(crc, card->data[n]);
    }
    const int wrong = (card->checks && crc) || faulty(card, SD_WRONG_CHECK);
    const int refused = faulty(card, SD_WRITE_ERROR) || card->block >= card->blocks;
    card->answers = card->answered = 0;
    say(card, wrong ? WRONG_CHECK : refused ? WRITE_ERROR : ACCEPTED);
    if (faulty(card, SD_BAD_STATUS)) {
        card->bad_status = 0x04;
    } else if (!wrong && !refused) {
        memcpy(card->image + (uint64_t)card->block * SD_BLOCK, card->data, SD_BLOCK);
    }
    card->busy = 1;
    card->free_at = faulty(card, SD_BUSY) ? UINT64_MAX : now + card->write_block;
    card->block++;
    card->passed++;
    card->state = card->several ? SD_EXPECTING : SD_COMMAND;
    if (!card->several) {
        card->free_at += card->free_at == UINT64_MAX ? 0 : card->write_command;
    }
}

/* The next byte of what is read. */
static uint8_t read_on(struct sd_card *card, uint64_t now) {
    if (now < card->free_at) {
        return 0xFF;
    }
    if (card->sent == 0 && (card->block >= card->blocks || faulty(card, SD_ERROR_TOKEN))) {
        card->state = SD_COMMAND;
        card->passed++;
        return OUT_OF_RANGE;
    }
    const uint32_t at = card->sent++;
    const uint8_t byte = at == 0 ? DATA : card->data[at - 1];
    const int short_block = faulty(card, SD_SHORT) && at >= 100;
    if (at == SD_BLOCK + 2) {
        card->passed++;
        card->block++;
        card->state = card->several ? SD_READING : SD_COMMAND;
        if (card->several) {
            fetch(card, now + card->read_block);
        }
    }
    return short_block ? 0xFF : byte;
}

void sd_card_select(struct sd_card *card, uint8_t on) {
    if (card->selected && !on) { /* whatever was under way ends; what is stored goes on being stored */
        card->state = SD_COMMAND;
        card->framed = card->answers = card->answered = 0;
        if (card->free_at == UINT64_MAX) {
            card->busy = 0;
        }
    }
    card->selected = on;
}

/* What comes from the master, where no data is expected. */
static void listen(struct sd_card *card, uint8_t in, uint64_t now) {
    if (card->framed || (in & 0xC0) == 0x40) {
        card->frame[card->framed++] = in;
    }
    if (card->framed == sizeof card->frame) {
        card->framed = 0;
        obey(card, now);
    }
}

uint8_t sd_card_pass(struct sd_card *card, uint8_t in, uint64_t now) {
    uint8_t out = 0xFF;
    if (!card->selected || (card->fault == SD_GONE && card->passed >= card->after)) {
        return 0xFF;
    }
    if (card->answered < card->answers) {
        out = card->answer[card->answered++];
    } else if (card->busy && now < card->free_at) {
        return 0;
    } else if (card->state == SD_READING) {
        out = read_on(card, now);
    }
    card->busy = card->busy && now < card->free_at;
    if (card->state == SD_WRITING) {
        card->data[card->at++] = in;
        if (card->at == SD_BLOCK + 2) {
            store(card, now);
        }
    } else if (card->state == SD_EXPECTING && in == (card->several ? SEVERAL : DATA)) {
        card->state = SD_WRITING;
        card->at = 0;
    } else if (card->state == SD_EXPECTING && card->several && in == STOP) {
        card->state = SD_COMMAND;
        card->busy = 1;
        card->free_at = now + card->write_command;
    } else {
        listen(card, in, now);
    }
    return out;
}
