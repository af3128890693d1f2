/* An SD card on SPI (SD Physical Layer Simplified Specification, 7), its checks switched on. A command, or up to
 * POLL_BYTES bytes, pass with each poll. There is no clock: what takes too long is told by how many bytes passed.
 *
 * What fails, by a check, by what the card says or by what it does not say in time, is tried again, TRIES times in
 * all. */
#include "block_device.h"

#ifdef STORAGE_SD
#include "sd_commands.h"
#include "sd_crc.h"
#include "spi.h"

enum { POLL_BYTES = 64 /* a part of a block */, TRIES = 4, READY_LOOPS = 4000 /* of 18 bytes or more: a second at 400 kHz */ };
#define READ_PATIENCE (100ul * SPI_BYTES_A_MS) /* the specification's most, in bytes (4.6.2) */
#define BUSY_PATIENCE (500ul * SPI_BYTES_A_MS)

enum { R1_IDLE = 0x01, R1_ILLEGAL = 0x04 };
enum { START = 0xFE, START_OF_SEVERAL = 0xFC, STOP = 0xFD, NOTHING = 0xFF };
enum { RESPONSE = 0x1F, ACCEPTED = 0x05 };
#define CSD_BYTES 16

static struct {
    uint32_t blocks, block, count; /* of the card; of the transfer */
    uint32_t done;                 /* blocks of the transfer */
    uint32_t patience;             /* bytes that may still pass before something happens */
    uint16_t crc, byte;            /* of the block under way: its check so far, how many bytes have passed */
    enum { IDLE, BEGINNING, AWAITING, READING, WRITING, BUSY, ENDING } state;
    storage_direction_t direction;
    uint8_t by_bytes; /* addresses count bytes: the shift */
    uint8_t tries, several, failed, came;
    block_places_t places;
} nn_sd;

static uint8_t command(uint8_t number, uint32_t argument) {
    const uint8_t said[] = {(uint8_t)(0x40 | number), (uint8_t)(argument >> 24), (uint8_t)(argument >> 16),
                            (uint8_t)(argument >> 8), (uint8_t)argument};
    uint8_t crc = 0, answer = NOTHING;
    (void)spi_pass(NOTHING);
    for (uint8_t n = 0; n < sizeof said; n++) {
        (void)spi_pass(said[n]);
        crc = sd_crc7(crc, said[n]);
    }
    (void)spi_pass(crc | 1);
    if (number == STOP_TRANSMISSION) {
        (void)spi_pass(NOTHING); /* still of the data */
    }
    for (uint8_t n = 0; n < 10 && answer & 0x80; n++) {
        answer = spi_pass(NOTHING);
    }
    return answer;
}

static uint32_t word(void) {
    uint32_t value = 0;
    for (uint8_t n = 0; n < 4; n++) {
        value = value << 8 | spi_pass(NOTHING);
    }
    return value;
}

/* Whether one of some bytes was 0xFF (`high`), or something else (not `high`): nn_sd.came. */
static uint8_t came(uint8_t high) {
    for (uint8_t n = POLL_BYTES; n && nn_sd.patience; n--, nn_sd.patience--) {
        nn_sd.came = spi_pass(NOTHING);
        if ((nn_sd.came == NOTHING) == high) {
            return 1;
        }
    }
    return 0;
}

/* The card's size in blocks from its CSD (5.3); 0: it did not say it. */
static uint32_t size(void) {
    uint8_t csd[CSD_BYTES + 2];
    uint16_t crc = 0;
    nn_sd.patience = READ_PATIENCE;
    if (command(SEND_CSD, 0) != 0) {
        return 0;
    }
    while (!came(0)) {
        if (nn_sd.patience == 0) {
            return 0;
        }
    }
    if (nn_sd.came != START) {
        return 0;
    }
    for (uint8_t n = 0; n < sizeof csd; n++) {
        csd[n] = spi_pass(NOTHING);
        crc = sd_crc16(crc, csd[n]);
    }
    if (crc) {
        return 0;
    }
    if (csd[0] >> 6 == 1) {
        return (((csd[7] & 0x3Ful) << 16 | (uint32_t)csd[8] << 8 | csd[9]) + 1) << 10;
    }
    const uint32_t units = ((csd[6] & 3u) << 10 | (uint32_t)csd[7] << 2 | csd[8] >> 6) + 1;
    const uint8_t unit = (csd[9] & 3) << 1 | csd[10] >> 7, block = csd[5] & 15;
    return csd[0] >> 6 || block < 9 || block > 11 ? 0 : units << (unit + 2) << (block - 9);
}

/* From idle to ready (7.2.1). */
static storage_status_t find(void) {
    uint32_t high = HIGH_CAPACITY;
    if (command(GO_IDLE, 0) != R1_IDLE || command(CRC_ON_OFF, 1) != R1_IDLE) {
        return STORAGE_FAILED;
    }
    const uint8_t answer = command(SEND_IF_COND, VOLTAGE_AND_PATTERN);
    if (answer == (R1_IDLE | R1_ILLEGAL)) { /* a card of version 1 */
        high = 0;
    } else if (answer != R1_IDLE || (word() & 0xFFF) != VOLTAGE_AND_PATTERN) {
        return STORAGE_FAILED;
    }
    uint8_t ready = R1_IDLE;
    for (uint16_t loops = READY_LOOPS; ready == R1_IDLE && loops; loops--) {
        (void)command(APPLICATION, 0);
        ready = command(APPLICATION_OP_COND, high);
    }
    if (ready || command(READ_OCR, 0) & ~R1_IDLE) { /* QEMU's card says there that it is idle */
        return STORAGE_FAILED;
    }
    nn_sd.by_bytes = word() & high ? 0 : 9;
    if (nn_sd.by_bytes && command(SET_BLOCKLEN, BLOCK_BYTES)) {
        return STORAGE_FAILED;
    }
    nn_sd.blocks = size();
    return nn_sd.blocks ? STORAGE_OK : STORAGE_FAILED;
}

static void release(void) {
    spi_select(0);
    (void)spi_pass(NOTHING);
}

storage_status_t block_device_open(void) {
    storage_status_t status = STORAGE_FAILED;
    nn_sd.state = IDLE;
    nn_sd.blocks = 0;
    spi_open();
    for (uint8_t tries = TRIES; tries && status != STORAGE_OK; tries--) {
        for (uint8_t n = 0; n < 10; n++) { /* 74 clocks or more before it is first selected */
            (void)spi_pass(NOTHING);
        }
        spi_select(1);
        status = find();
        release();
    }
    spi_fast();
    return status;
}

uint32_t block_device_blocks(void) { return nn_sd.blocks; }

static void go_to(uint8_t state, uint32_t patience) {
    nn_sd.state = state;
    nn_sd.patience = patience;
}

/* One try. */
static void begin(void) {
    spi_select(1);
    nn_sd.failed = 0;
    go_to(BEGINNING, BUSY_PATIENCE);
}

storage_status_t block_device_start(
    storage_direction_t direction, uint32_t block, uint32_t count, const block_places_t *places) {
    if (block > nn_sd.blocks || count > nn_sd.blocks - block) {
        return STORAGE_FAILED;
    }
    nn_sd.direction = direction;
    nn_sd.block = block;
    nn_sd.count = count;
    nn_sd.places = *places;
    nn_sd.done = 0;
    nn_sd.tries = TRIES;
    begin();
    return STORAGE_BUSY;
}

/* No more blocks pass, well or not. */
static void end(uint8_t failed) {
    nn_sd.failed = failed;
    if (nn_sd.several && nn_sd.direction == STORAGE_READ) {
        (void)command(STOP_TRANSMISSION, 0);
    } else if (nn_sd.several) {
        (void)spi_pass(STOP);
        (void)spi_pass(NOTHING);
    }
    go_to(ENDING, BUSY_PATIENCE);
}

/* The command, from the first block on that is not done. */
static void tell(void) {
    const uint8_t reads = nn_sd.direction == STORAGE_READ;
    nn_sd.several = nn_sd.count - nn_sd.done > 1;
    const uint8_t number = reads ? (nn_sd.several ? READ_MULTIPLE : READ_SINGLE)
                                 : (nn_sd.several ? WRITE_MULTIPLE : WRITE_SINGLE);
    nn_sd.crc = nn_sd.byte = 0;
    if (command(number, (nn_sd.block + nn_sd.done) << nn_sd.by_bytes)) {
        end(1);
    } else {
        go_to(reads ? AWAITING : WRITING, READ_PATIENCE);
    }
}

/* `count` bytes from the card to memory, or to nowhere. While one passes the check goes on over the one before. */
static void receive(uint8_t *to, uint8_t count) {
    uint16_t crc = nn_sd.crc;
    if (count) {
        spi_begin(NOTHING);
    }
    while (count--) {
        const uint8_t byte = spi_end();
        if (count) {
            spi_begin(NOTHING);
        }
        crc = sd_crc16(crc, byte);
        if (to) {
            *to++ = byte;
        }
    }
    nn_sd.crc = crc;
}

static void send(const uint8_t *from, uint8_t count) {
    uint16_t crc = nn_sd.crc;
    for (; count; count--) {
        spi_begin(*from);
        crc = sd_crc16(crc, *from++);
        (void)spi_end();
    }
    nn_sd.crc = crc;
}

/* The next POLL_BYTES of a block, of which only some may be wanted. */
static void receive_some(void) {
    const block_places_t *const places = &nn_sd.places;
    if (places->bytes == 0) {
        receive(block_place(places, nn_sd.done, nn_sd.count) + nn_sd.byte, POLL_BYTES);
        return;
    }
    const int32_t at = (int32_t)(nn_sd.done * BLOCK_BYTES + nn_sd.byte) - places->skipped; /* of what is wanted */
    const int32_t left = (int32_t)places->bytes - at;
    const uint8_t before = (uint8_t)(at >= 0 ? 0 : at > -POLL_BYTES ? -at : POLL_BYTES);
    const uint8_t until = (uint8_t)(left >= POLL_BYTES ? POLL_BYTES : left > 0 ? left : 0);
    const uint8_t wanted = until > before ? (uint8_t)(until - before) : 0;
    receive(0, before);
    receive(wanted ? places->memory + (at + before) : 0, wanted);
    receive(0, (uint8_t)(POLL_BYTES - before - wanted));
}

/* Some bytes of a block; with its check the block is done, or its command fails. */
static void take(void) {
    receive_some();
    nn_sd.byte += POLL_BYTES;
    if (nn_sd.byte < BLOCK_BYTES) {
        return;
    }
    const uint16_t sum = nn_sd.crc;
    nn_sd.crc = sd_crc16(nn_sd.crc, spi_pass(NOTHING));
    if (sd_crc16(nn_sd.crc, spi_pass(NOTHING)) || !storage_sum(STORAGE_READ, nn_sd.block + nn_sd.done, sum)) {
        end(1);
    } else if (++nn_sd.done == nn_sd.count) {
        end(0);
    } else {
        nn_sd.crc = nn_sd.byte = 0;
        go_to(AWAITING, READ_PATIENCE);
    }
}

/* Some bytes of a block, which the card takes or refuses when it has its check. */
static void give(void) {
    const uint8_t *const block = block_place(&nn_sd.places, nn_sd.done, nn_sd.count);
    if (nn_sd.byte == 0) {
        (void)spi_pass(NOTHING);
        (void)spi_pass(nn_sd.several ? START_OF_SEVERAL : START);
    }
    send(block + nn_sd.byte, POLL_BYTES);
    nn_sd.byte += POLL_BYTES;
    if (nn_sd.byte < BLOCK_BYTES) {
        return;
    }
    (void)spi_pass((uint8_t)(nn_sd.crc >> 8));
    (void)spi_pass((uint8_t)nn_sd.crc);
    nn_sd.failed = (spi_pass(NOTHING) & RESPONSE) != ACCEPTED;
    (void)storage_sum(STORAGE_WRITE, nn_sd.block + nn_sd.done, nn_sd.crc);
    go_to(BUSY, BUSY_PATIENCE);
}

/* A block has been written. */
static void free_again(uint8_t in_time) {
    if (nn_sd.failed || !in_time) {
        end(1);
    } else if (++nn_sd.done == nn_sd.count) {
        end(0);
    } else {
        nn_sd.crc = nn_sd.byte = 0;
        nn_sd.state = WRITING;
    }
}

/* A try is over. Reading goes on where it failed; writing begins anew, because what the card has accepted may still
 * have failed. */
static storage_status_t ended(uint8_t in_time) {
    const uint8_t writes = nn_sd.direction == STORAGE_WRITE;
    uint8_t failed = nn_sd.failed || !in_time;
    if (!failed && writes) {
        failed = (command(SEND_STATUS, 0) | spi_pass(NOTHING)) != 0;
    }
    release();
    if (failed && --nn_sd.tries) {
        nn_sd.done = writes ? 0 : nn_sd.done;
        begin();
        return STORAGE_BUSY;
    }
    nn_sd.state = IDLE;
    return failed ? STORAGE_FAILED : STORAGE_OK;
}

storage_status_t block_device_poll(void) {
    uint8_t found;
    switch (nn_sd.state) {
    case BEGINNING: /* when it is no longer busy */
        if (came(1)) {
            tell();
        } else if (nn_sd.patience == 0) {
            return ended(0);
        }
        break;
    case AWAITING:
        found = came(0);
        if (found && nn_sd.came == START) {
            nn_sd.state = READING;
        } else if (found || nn_sd.patience == 0) {
            end(1);
        }
        break;
    case READING:
        take();
        break;
    case WRITING:
        give();
        break;
    case BUSY:
        found = came(1);
        if (found || nn_sd.patience == 0) {
            free_again(found);
        }
        break;
    case ENDING:
        found = came(1);
        if (found || nn_sd.patience == 0) {
            return ended(found);
        }
        break;
    case IDLE:
        return STORAGE_OK;
    }
    return STORAGE_BUSY;
}
#endif
