/* The harness: answers frames (frame.h) for the network in model.c. No buffer, no interrupt, no
 * variable outside main: an image byte goes from the line straight into nn_feed, one of the
 * parameters into nn_load, before it is known whether its frame is whole; a frame that is not whole is
 * refused, never invoked, and its parameters never used. */
#include "frame.h"
#include "model.h"
#include "port.h"

#ifndef NN_FRAMES /* that are computed together */
#define NN_FRAMES 1
#endif
#ifndef NN_PARAMETER_BYTES /* the network holds its parameters itself */
#define NN_PARAMETER_BYTES 0
#endif
#ifdef NN_SOUND_BYTES /* a front end makes the input of a sound */
#define FED_BYTES NN_SOUND_BYTES
#define feed nn_listen
#else
#define FED_BYTES NN_INPUT_BYTES
#define feed nn_feed
#endif
#ifdef NN_STATE_BYTES /* a frame follows the one before: what fails, or asks who is there, begins anew */
#define KEEPS_STATE FRAME_KEEPS_STATE
#else
#define KEEPS_STATE 0
#endif
#ifdef NN_INPUT_AGAIN /* it lies here, outside of the network, which reads it again and again */
static nn_input_t image[NN_INPUT_COUNT];
#endif
#ifndef THIMBLE_WAIT_BYTES
#define THIMBLE_WAIT_BYTES 0
#endif
#define MOST_BYTES (FED_BYTES > NN_PARAMETER_BYTES ? FED_BYTES : NN_PARAMETER_BYTES)

#if MOST_BYTES > 0xFFF0
typedef uint32_t frame_count_t;
#else
typedef uint16_t frame_count_t;
#endif

#if NN_OUTPUTS > 1 /* each of its own type: they go as bytes, one after the other */
#define COUNT(values, count) + (uint32_t)(count) * sizeof *(values)
#define OUTPUTS (0 NN_EACH_OUTPUT(COUNT))
#define OUTPUT_BYTES 1
#else
#define OUTPUTS (NN_FRAMES * NN_OUTPUT_COUNT)
#define OUTPUT_BYTES sizeof(nn_output_t)
#endif

_Static_assert((uint32_t)OUTPUTS * OUTPUT_BYTES <= 0xFFFF, "a reply counts its outputs' bytes in 16 bits");

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
_Static_assert(NN_OUTPUTS == 1 && OUTPUT_BYTES == 1, "a reply has the least significant byte of an output first");
#endif

/* Sends one byte of a frame's inside; returns the check continued over it. */
static uint16_t send(uint16_t crc, uint8_t byte) {
    uint8_t sent = byte;
    if (byte == FRAME_FLAG || byte == FRAME_ESCAPE) {
        port_write(FRAME_ESCAPE);
        sent ^= FRAME_ESCAPE_XOR;
    }
    port_write(sent);
    return frame_crc(crc, byte);
}

static uint16_t send_word(uint16_t crc, uint16_t word) {
    return send(send(crc, (uint8_t)word), (uint8_t)(word >> 8));
}

#ifdef NN_OUTPUT_TAKEN
/* Too large for the arena: value by value. Where the card fails meanwhile the reply's check is wrong. */
static uint16_t send_output(uint16_t crc) {
    uint8_t failed = 0;
    for (uint16_t left = OUTPUTS; left; left--) {
        nn_output_t value = 0;
        failed |= nn_take(&value, 1) != NN_OK;
        for (uint8_t n = 0; n < sizeof value; n++) {
            crc = send(crc, ((const uint8_t *)&value)[n]);
        }
    }
    return failed ? (uint16_t)~crc : crc;
}
#else
static uint16_t send_values(uint16_t crc, const void *values, uint16_t left) {
    const uint8_t *byte = (const uint8_t *)values;
    for (; left; left--) {
        crc = send(crc, *byte++);
    }
    return crc;
}

static uint16_t send_output(uint16_t crc) {
#define SEND(values, count) crc = send_values(crc, values, (uint16_t)((count) * sizeof *(values)));
    NN_EACH_OUTPUT(SEND)
    return crc;
}
#endif

#ifdef NN_STEPPED
/* A reply of its own, before that of the frame that is computed. Nobody asks for the time that this takes: there is no
 * timer, which on a simulated core would have the line's memory closed. */
#define port_timer_start() (void)0
#define port_timer_stop() (void)0

void nn_stepped(const uint8_t *arena) {
    port_write(FRAME_FLAG);
    uint16_t crc = send(send(FRAME_CRC_INITIAL, FRAME_STEP), FRAME_OK);
    for (uint32_t at = 0; at < NN_ARENA_BYTES; at++) {
        crc = send(crc, arena[at]);
    }
    send_word(crc, (uint16_t)~crc);
    port_write(FRAME_FLAG);
}
#endif

static uint16_t send_identity(uint16_t crc) {
    crc = send_word(crc, FRAME_VERSION);
    crc = send_word(crc, (uint16_t)((uint32_t)FED_BYTES & 0xFFFF));
    crc = send_word(crc, (uint16_t)((uint32_t)FED_BYTES >> 16));
    crc = send_word(crc, OUTPUTS);
    crc = send(crc, OUTPUT_BYTES | KEEPS_STATE);
    crc = send_word(crc, (uint16_t)((uint32_t)NN_PARAMETER_BYTES & 0xFFFF));
    return send_word(crc, (uint16_t)((uint32_t)NN_PARAMETER_BYTES >> 16));
}

static uint16_t send_report(uint16_t crc) {
    uint32_t cycles = port_timer_cycles();
    crc = send_word(crc, (uint16_t)cycles);
    crc = send_word(crc, (uint16_t)(cycles >> 16));
    crc = send_word(crc, port_stack_bytes());
    return send_word(crc, port_untouched_bytes());
}

/* The command's share of a frame whose byte `at` this is goes to the network. */
static inline void take(uint8_t command, frame_count_t at, uint8_t byte) {
    if (command == FRAME_INFER && at < FED_BYTES) {
#ifdef NN_INPUT_AGAIN
        ((uint8_t *)image)[at] = byte;
#else
        port_phase(PORT_FEED);
        feed(&byte, 1);
        port_phase(PORT_HARNESS);
#endif
#if THIMBLE_WAIT_BYTES
        if ((frame_count_t)(at + 1) % THIMBLE_WAIT_BYTES == 0 && at + 1 < FED_BYTES) {
            port_write(FRAME_READY);
        }
#endif
#if NN_PARAMETER_BYTES
    } else if (command == FRAME_LOAD && at < NN_PARAMETER_BYTES) {
        port_phase(PORT_LOAD);
        nn_load(at, &byte, 1);
        port_phase(PORT_HARNESS);
#endif
    }
}

#if defined(NN_AHEAD) && defined(PORT_AHEAD) && !defined(NN_STEPPED)
#define AHEAD
typedef struct {
    frame_count_t count;
    uint16_t crc;
    uint8_t command, whole;
} frame_t;

/* The next frame, as far as it has come while one is computed; a report of that may be asked for before it. */
static const frame_t none = {.crc = FRAME_CRC_INITIAL};
static frame_t ahead = {.crc = FRAME_CRC_INITIAL};
static uint8_t asked;

void nn_meanwhile(void) {
    while (!ahead.whole && nn_room()) {
        int16_t byte = port_read_ahead();
        if (byte < 0 || byte == FRAME_FLAG) {
            ahead.whole = byte < 0 || ahead.count > 0;
            if (!asked && ahead.whole && ahead.command == FRAME_REPORT && ahead.crc == FRAME_CRC_GOOD) {
                asked = 1;
                ahead = none;
            }
            continue;
        }
        if (byte == FRAME_ESCAPE) {
            byte = port_read_ahead() ^ FRAME_ESCAPE_XOR;
        }
        ahead.crc = frame_crc(ahead.crc, (uint8_t)byte);
        ahead.command = ahead.count ? ahead.command : (uint8_t)byte;
        take(ahead.command, (frame_count_t)(ahead.count - 1), (uint8_t)byte); /* a command is at no place of an input */
        ahead.count += ahead.count <= MOST_BYTES + FRAME_FCS_BYTES + 1;
    }
}
#endif

static uint8_t infer(void) {
    port_timer_start();
    port_phase(PORT_INVOKE);
    nn_status_t status = nn_invoke();
    port_phase(PORT_HARNESS);
    port_timer_stop();
#if NN_PARAMETER_BYTES
    if (status == NN_NO_PARAMETERS) {
        return FRAME_NO_PARAMETERS;
    }
#endif
#ifdef NN_CARD_BLOCKS
    if (status == NN_NO_CARD || status == NN_OTHER_CARD) {
        return status == NN_NO_CARD ? FRAME_NO_CARD : FRAME_OTHER_CARD;
    }
    if (status == NN_CARD_FAILED) {
        return FRAME_CARD_FAILED;
    }
#ifdef NN_CARD_SEALED
    if (status == NN_NO_KEY || status == NN_OTHER_KEY) {
        return status == NN_NO_KEY ? FRAME_NO_KEY : FRAME_OTHER_KEY;
    }
#endif
#ifdef NN_CARD_CHECKED
    if (status == NN_CARD_DAMAGED || status == NN_INPUT_LOST) {
        return status == NN_CARD_DAMAGED ? FRAME_CARD_DAMAGED : FRAME_INPUT_LOST;
    }
#endif
#endif
    return status == NN_OK ? FRAME_OK : status == NN_CORRUPT ? FRAME_CORRUPT : FRAME_INCOMPLETE;
}

#if NN_PARAMETER_BYTES
static uint8_t load(void) {
    port_phase(PORT_LOAD);
    nn_status_t status = nn_loaded();
    port_phase(PORT_HARNESS);
    return status == NN_OK ? FRAME_OK : FRAME_NO_PARAMETERS;
}
#endif

static inline frame_count_t payload_bytes(uint8_t command) {
    return command == FRAME_INFER ? FED_BYTES : command == FRAME_LOAD ? NN_PARAMETER_BYTES : 0;
}

/* What a whole frame asks for, done; the status. */
static uint8_t carry_out(uint8_t command) {
    if (command == FRAME_INFER) {
        return infer();
    }
#if NN_PARAMETER_BYTES
    if (command == FRAME_LOAD) {
        return load();
    }
#endif
    return command == FRAME_IDENTIFY || command == FRAME_REPORT ? FRAME_OK : FRAME_UNKNOWN;
}

PORT_MAIN int main(void) {
    port_init();
#ifdef NN_CARD_BLOCKS
    uint8_t lost = nn_init() != NN_OK; /* looking for a card takes longer than the line waits for it in a frame */
#else
    const uint8_t lost = KEEPS_STATE; /* or it is for each frame */
#endif
#if KEEPS_STATE
    nn_init();
#endif
#ifdef NN_INPUT_AGAIN
    nn_input_at(image);
#endif
    for (;;) {
        uint16_t crc = FRAME_CRC_INITIAL;
        frame_count_t count = 0; /* unescaped bytes since the last flag, stops above the most */
        uint8_t command = 0;
        uint8_t byte;
#ifdef AHEAD
        const frame_t came = asked ? (frame_t){FRAME_FCS_BYTES + 1, FRAME_CRC_GOOD, FRAME_REPORT, 1} : ahead;
        ahead = asked ? ahead : none;
        asked = 0;
        crc = came.crc;
        count = came.count;
        command = came.command;
        while (!came.whole && (byte = port_read()) != FRAME_FLAG) {
#else
        while ((byte = port_read()) != FRAME_FLAG) {
#endif
            if (byte == FRAME_ESCAPE) {
                byte = port_read();
                if (byte == FRAME_FLAG) { /* RFC 1662, 4.3: the sender aborts its frame */
                    crc = 0;
                    break;
                }
                byte ^= FRAME_ESCAPE_XOR;
            }
            crc = frame_crc(crc, byte);
            if (count == 0) {
                command = byte;
                port_phase(PORT_FEED);
                if (!lost) {
                    nn_init();
                }
                port_phase(PORT_HARNESS);
            } else {
                take(command, (frame_count_t)(count - 1), byte);
            }
            if (count <= MOST_BYTES + FRAME_FCS_BYTES + 1) {
                count++;
            }
        }
        if (count == 0) {
            continue; /* two flags in a row */
        }
        frame_count_t whole = (frame_count_t)(payload_bytes(command) + FRAME_FCS_BYTES + 1);
        uint8_t status = count < whole          ? FRAME_TRUNCATED
                         : count > whole        ? FRAME_OVERSIZED
                         : crc != FRAME_CRC_GOOD ? FRAME_BAD_CRC
                                                 : carry_out(command);
#if KEEPS_STATE
        if (status != FRAME_OK || command == FRAME_IDENTIFY) {
            nn_init();
        }
#endif
#ifdef NN_CARD_BLOCKS
        if (status >= FRAME_NO_CARD) {
            lost = nn_init() != NN_OK;
        }
#endif
        port_write(FRAME_FLAG);
        crc = send(send(FRAME_CRC_INITIAL, command), status);
        if (status == FRAME_OK && command != FRAME_LOAD) {
            crc = command == FRAME_INFER      ? send_output(crc)
                  : command == FRAME_IDENTIFY ? send_identity(crc)
                                              : send_report(crc);
        }
        send_word(crc, (uint16_t)~crc);
        port_write(FRAME_FLAG);
    }
}
