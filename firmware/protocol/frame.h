/* Frames as RFC 1662 (HDLC-like framing) has them:
 *
 *     0x7E | code | payload ... | FCS low | FCS high | 0x7E
 *
 * 0x7E and 0x7D inside a frame are sent as 0x7D followed by the byte XOR 0x20, so a flag always
 * ends a frame: after noise, a lost byte or a frame cut short the next one is understood again,
 * with no clock and no length field. The FCS is RFC 1662's 16-bit one (CRC-16/X-25) over the
 * unescaped code and payload. Running the check over a whole frame, FCS included, leaves
 * FRAME_CRC_GOOD, so a receiver needs no look-ahead and no buffer.
 *
 * A request's code is a command; infer is followed by the input, load by the network's parameters
 * (only firmware that does not hold them itself knows load: identify says how many bytes it wants).
 * A parameter frame that is refused leaves none: load again. Nothing ever waits for a clock: a frame
 * cut short ends with the next flag. The firmware does not listen while it computes or answers, so who
 * has not had an answer to the last frame first sends a flag, and waits for what comes of it.
 *
 * A reply is: command | status | payload; the payload is
 *
 *     identify  uint16 version, uint32 input bytes, uint16 outputs, uint8 bytes an output,
 *               uint32 bytes of parameters to load
 *     infer     the outputs, little-endian; of several tensors, which identify counts as bytes, one
 *               after the other
 *     load      nothing
 *     step      all bytes of the arena, after each step: without a request, from firmware that is checked alone
 *     report    uint32 cycles of the last nn_invoke, uint16 bytes of stack ever used,
 *               uint16 bytes of SRAM never touched
 *
 * and empty when the status is not FRAME_OK. Firmware that computes on an input as it comes may take longer for
 * some of its bytes than the line gives it. It can be built so that the host waits after every
 * THIMBLE_WAIT_BYTES of an input but the last for FRAME_READY, a byte outside of any frame. pipeline/targets/protocol.py is the other end. */
#ifndef THIMBLE_FRAME_H
#define THIMBLE_FRAME_H

#include <stdint.h>

#define FRAME_VERSION 2
#define FRAME_FLAG 0x7E
#define FRAME_ESCAPE 0x7D
#define FRAME_ESCAPE_XOR 0x20
#define FRAME_KEEPS_STATE 0x80 /* beside the bytes of an output: each input follows the one before */
#define FRAME_READY 0x11 /* XON */
#define FRAME_FCS_BYTES 2
#define FRAME_CRC_INITIAL 0xFFFFu
#define FRAME_CRC_GOOD 0xF0B8u

enum frame_command { FRAME_IDENTIFY = 'I', FRAME_INFER = 'F', FRAME_LOAD = 'L', FRAME_REPORT = 'R', FRAME_STEP = 'S' };

enum frame_status {
    FRAME_OK = 0,
    FRAME_TRUNCATED = 1, /* fewer bytes than the command needs */
    FRAME_OVERSIZED = 2, /* more */
    FRAME_BAD_CRC = 3,
    FRAME_UNKNOWN = 4,    /* no such command */
    FRAME_INCOMPLETE = 5, /* the network has not had its whole input */
    FRAME_CORRUPT = 6,    /* the network found its canary overwritten */
    FRAME_NO_PARAMETERS = 7, /* none have been loaded, or not this network's */
    FRAME_NO_CARD = 8,       /* none answers */
    FRAME_OTHER_CARD = 9,    /* too small, or without this network's image */
    FRAME_CARD_FAILED = 10,  /* a transfer did */
    FRAME_NO_KEY = 11,       /* the chip has none, or cannot count its starts */
    FRAME_OTHER_KEY = 12,    /* the card was sealed with another */
    FRAME_CARD_DAMAGED = 13, /* weights are not what was sealed */
    FRAME_INPUT_LOST = 14    /* the input is not what was fed */
};

/* One byte of RFC 1662's FCS (polynomial x^16 + x^12 + x^5 + 1, bits reflected), by nibbles
 * instead of the RFC's table: the table would cost 512 bytes. */
static inline uint16_t frame_crc(uint16_t crc, uint8_t byte) {
    uint8_t low = (uint8_t)(byte ^ crc);
    low ^= (uint8_t)(low << 4);
    return (uint16_t)(((uint16_t)low << 8 | crc >> 8) ^ (uint8_t)(low >> 4) ^ (uint16_t)low << 3);
}

#endif
