/* A card on the SDMMC1 of an STM32F7, moved by DMA2 (RM0385; SD Physical Layer Simplified Specification, 4): what a
 * driver for a part of your own looks like. Compiled and linked in the tests, never tried on a board.
 *
 * Nothing waits but block_device_open. Every answer of the card, every end of a transfer and every fault interrupts,
 * and storage_interrupted() asks block_device_poll what became of it. As a DMA's stream moves to one place, blocks that
 * have up to three are as many commands. */
#ifdef STORAGE_STM32F7
#include "block_device.h"
#include "stm32f7_device.h"

enum { TRIES = 4, READY_LOOPS = 4000 };

static struct {
    uint32_t blocks, address; /* of the card: its size, what it is called */
    uint32_t block, count;    /* of the transfer, what is left of it */
    uint32_t piece;           /* blocks of the command under way */
    block_places_t places;
    storage_direction_t direction;
    enum { IDLE, COMMANDED, MOVING, STOPPING, ASKING } state;
    uint8_t by_bytes, tries, failed;
} card;

/* --- finding the card: polled */

static int told(uint32_t command, uint32_t argument) {
    sdmmc_command(command, argument);
    while (!(SDMMC_STATUS & (COMMAND_OVER | COMMAND_FAULTS))) {
    }
    const uint32_t status = SDMMC_STATUS;
    SDMMC_CLEAR = CLEAR_ALL;
    const int unchecked = (command & 63) == APPLICATION_OP_COND; /* its answer has no check */
    return !(status & COMMAND_FAULTS & ~(unchecked ? COMMAND_CRC_FAULT : 0u));
}

static int told_application(uint32_t command, uint32_t argument) {
    return told(APPLICATION | SHORT_ANSWER, card.address) && told(command, argument);
}

static uint32_t size(void) {
    const uint32_t high = SDMMC_ANSWER(2), low = SDMMC_ANSWER(3);
    if (SDMMC_ANSWER(1) >> 30) {
        return (((high & 0x3F) << 16 | low >> 16) + 1) << 10;
    }
    const uint32_t units = ((high & 0x3FF) << 2 | low >> 30) + 1, unit = low >> 15 & 7, length = high >> 16 & 15;
    return length < 9 ? 0 : units << (unit + 2) << (length - 9);
}

static int found(void) {
    card.address = 0;
    (void)told(GO_IDLE, 0);
    const uint32_t high = told(SEND_IF_COND | SHORT_ANSWER, VOLTAGE_AND_PATTERN) ? HIGH_CAPACITY : 0;
    uint32_t loops = READY_LOOPS;
    do {
        if (!told_application(APPLICATION_OP_COND | SHORT_ANSWER, VOLTAGES | high)) {
            return 0;
        }
    } while (!(SDMMC_ANSWER(1) & READY) && --loops);
    card.by_bytes = SDMMC_ANSWER(1) & HIGH_CAPACITY ? 0 : 9;
    if (!loops || !told(ALL_SEND_CID | LONG_ANSWER, 0) || !told(SEND_ADDRESS | SHORT_ANSWER, 0)) {
        return 0;
    }
    card.address = SDMMC_ANSWER(1) & 0xFFFF0000u;
    if (!told(SEND_CSD | LONG_ANSWER, card.address)) {
        return 0;
    }
    card.blocks = size();
    if (!told(SELECT | SHORT_ANSWER, card.address) || !told_application(BUS_WIDTH | SHORT_ANSWER, FOUR_BITS)) {
        return 0;
    }
    sdmmc_fast();
    return card.blocks && told(SET_BLOCKLEN | SHORT_ANSWER, BLOCK_BYTES);
}

storage_status_t block_device_open(void) {
    card.state = IDLE;
    card.blocks = 0;
    sdmmc_open();
    if (!found()) {
        return STORAGE_FAILED;
    }
    sdmmc_interrupts();
    return STORAGE_OK;
}

uint32_t block_device_blocks(void) { return card.blocks; }

/* --- transfers: in the interrupt */

static void command(uint32_t number, uint32_t argument, uint8_t state) {
    card.state = state;
    sdmmc_listen();
    sdmmc_command(number | SHORT_ANSWER, argument);
}

/* The blocks that go to one place: the first, the last, or those between. */
static void begin(void) {
    const int reads = card.direction == STORAGE_READ;
    const uint32_t ends = card.places.last ? 1 : 0;
    uint8_t *place = card.places.memory;
    card.piece = card.count - ends;
    if (card.places.first) {
        place = card.places.first;
        card.piece = 1;
    } else if (card.piece == 0) {
        place = card.places.last;
        card.piece = 1;
    }
    card.failed = 0;
    dma_move(place, reads);
    sdmmc_data(card.piece * BLOCK_BYTES);
    if (reads) { /* its data may come with the answer */
        sdmmc_move(reads);
    }
    const uint32_t one = reads ? READ_SINGLE : WRITE_SINGLE, several = reads ? READ_MULTIPLE : WRITE_MULTIPLE;
    command(card.piece > 1 ? several : one, card.block << card.by_bytes, COMMANDED);
}

storage_status_t block_device_start(
    storage_direction_t direction, uint32_t block, uint32_t count, const block_places_t *places) {
    if (block > card.blocks || count > card.blocks - block) {
        return STORAGE_FAILED;
    }
    card.direction = direction;
    card.block = block;
    card.count = count;
    card.places = *places;
    card.tries = TRIES;
    begin();
    return STORAGE_BUSY;
}

/* A command is over, well or not: what is left to be done of it or after it. */
static storage_status_t over(void) {
    if (card.failed) {
        if (--card.tries == 0) {
            card.state = IDLE;
            return STORAGE_FAILED;
        }
    } else {
        card.block += card.piece;
        card.count -= card.piece;
        if (card.places.first) {
            card.places.first = 0;
        } else {
            card.places.memory += card.piece * BLOCK_BYTES;
        }
    }
    if (card.count == 0) {
        card.state = IDLE;
        return STORAGE_OK;
    }
    begin();
    return STORAGE_BUSY;
}

/* Until the card has taken what was written; it has no other sign of that. */
static void ask(void) { command(SEND_STATUS, card.address, ASKING); }

static void stop(uint8_t failed) {
    card.failed = failed;
    dma_stop();
    sdmmc_stop();
    if (card.piece > 1 || failed) {
        command(STOP_TRANSMISSION, 0, STOPPING);
    } else {
        ask();
    }
}

storage_status_t block_device_poll(void) {
    const uint32_t status = SDMMC_STATUS, answer = SDMMC_ANSWER(1);
    if (card.state == IDLE) {
        return STORAGE_OK;
    }
    sdmmc_listen();
    if (card.state == MOVING) {
        if (status & DATA_FAULTS || dma_failed()) {
            stop(1);
        } else if (status & DATA_OVER && !dma_busy()) {
            stop(0);
        }
        return STORAGE_BUSY;
    }
    if (!(status & (COMMAND_OVER | COMMAND_FAULTS))) {
        return STORAGE_BUSY;
    }
    SDMMC_CLEAR = COMMAND_OVER | COMMAND_FAULTS;
    const uint32_t faults = card.state == STOPPING ? ANSWER_FAULTS & ~OUT_OF_RANGE : ANSWER_FAULTS;
    const int refused = status & COMMAND_FAULTS || answer & faults;
    if (card.state == COMMANDED && refused) {
        stop(1);
    } else if (card.state == COMMANDED) {
        card.state = MOVING;
        if (card.direction == STORAGE_WRITE) {
            sdmmc_move(0);
        }
    } else if (card.state == STOPPING && !refused) {
        ask();
    } else if (refused || answer & READY_FOR_DATA) {
        card.failed |= refused != 0;
        return over();
    } else {
        ask();
    }
    return STORAGE_BUSY;
}

#ifdef STORAGE_INTERRUPTS
/* Both interrupts, of one priority, so that none comes in the other's handler. */
void port_card_interrupt(void) {
    sdmmc_heard();
    storage_interrupted();
}

/* The barriers have the handler run before the next instruction does (Armv7-M ARM, B3.2.4 and A3.7.3). */
void storage_interrupt(void) {
    PEND_SDMMC;
    __asm__ volatile("dsb\nisb" ::: "memory");
}
#endif
#endif
