/* The harness: answers frames (frame.h) for the network in model.c. No buffer, no interrupt, no
 * variable outside main: an image byte goes from the line straight into nn_feed, before it is
 * known whether its frame is whole; a frame that is not whole is refused and never invoked. */
#include "frame.h"
#include "model.h"
#include "port.h"

#if NN_INPUT_BYTES > 0xFFF0
typedef uint32_t frame_count_t;
#else
typedef uint16_t frame_count_t;
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

static uint16_t send_output(uint16_t crc) {
    const uint8_t *byte = (const uint8_t *)nn_output(); /* every core here is little-endian */
    for (uint16_t left = NN_OUTPUT_COUNT * sizeof(nn_output_t); left; left--) {
        crc = send(crc, *byte++);
    }
    return crc;
}

static uint16_t send_identity(uint16_t crc) {
    crc = send_word(crc, FRAME_VERSION);
    crc = send_word(crc, (uint16_t)((uint32_t)NN_INPUT_BYTES & 0xFFFF));
    crc = send_word(crc, (uint16_t)((uint32_t)NN_INPUT_BYTES >> 16));
    crc = send_word(crc, NN_OUTPUT_COUNT);
    return send(crc, sizeof(nn_output_t));
}

static uint16_t send_report(uint16_t crc) {
    uint32_t cycles = port_timer_cycles();
    crc = send_word(crc, (uint16_t)cycles);
    crc = send_word(crc, (uint16_t)(cycles >> 16));
    crc = send_word(crc, port_stack_bytes());
    return send_word(crc, port_untouched_bytes());
}

static uint8_t infer(void) {
    port_timer_start();
    port_phase(PORT_INVOKE);
    nn_status_t status = nn_invoke();
    port_phase(PORT_HARNESS);
    port_timer_stop();
    return status == NN_OK ? FRAME_OK : status == NN_CORRUPT ? FRAME_CORRUPT : FRAME_INCOMPLETE;
}

PORT_MAIN int main(void) {
    port_init();
    for (;;) {
        uint16_t crc = FRAME_CRC_INITIAL;
        frame_count_t count = 0; /* unescaped bytes since the last flag, stops above the most */
        uint8_t command = 0;
        uint8_t byte;
        while ((byte = port_read()) != FRAME_FLAG) {
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
                nn_init();
                port_phase(PORT_HARNESS);
            } else if (command == FRAME_INFER && count <= NN_INPUT_BYTES) {
                port_phase(PORT_FEED);
                nn_feed(&byte, 1);
                port_phase(PORT_HARNESS);
            }
            if (count <= NN_INPUT_BYTES + FRAME_FCS_BYTES + 1) {
                count++;
            }
        }
        if (count == 0) {
            continue; /* two flags in a row */
        }
        frame_count_t payload = command == FRAME_INFER ? NN_INPUT_BYTES : 0;
        uint8_t status = FRAME_OK;
        if (count < payload + FRAME_FCS_BYTES + 1) {
            status = FRAME_TRUNCATED;
        } else if (count > payload + FRAME_FCS_BYTES + 1) {
            status = FRAME_OVERSIZED;
        } else if (crc != FRAME_CRC_GOOD) {
            status = FRAME_BAD_CRC;
        } else if (command == FRAME_INFER) {
            status = infer();
        } else if (command != FRAME_IDENTIFY && command != FRAME_REPORT) {
            status = FRAME_UNKNOWN;
        }
        port_write(FRAME_FLAG);
        crc = send(send(FRAME_CRC_INITIAL, command), status);
        if (status == FRAME_OK) {
            crc = command == FRAME_INFER      ? send_output(crc)
                  : command == FRAME_IDENTIFY ? send_identity(crc)
                                              : send_report(crc);
        }
        send_word(crc, (uint16_t)~crc);
        port_write(FRAME_FLAG);
    }
}
