/* The checks of the SD protocol: CRC7 of commands, CRC16 of data (SD Physical Layer Simplified Specification, 4.5). */
#ifndef THIMBLE_SD_CRC_H
#define THIMBLE_SD_CRC_H

#include <stdint.h>

#ifdef __AVR__
#include <util/crc16.h>
#endif

/* One byte of x^7 + x^3 + 1, kept in the upper seven bits: with the lowest bit set it is a command's last byte. */
static inline uint8_t sd_crc7(uint8_t crc, uint8_t byte) {
    crc ^= byte;
    for (uint8_t bit = 0; bit < 8; bit++) {
        crc = (uint8_t)(crc & 0x80 ? crc << 1 ^ 0x12 : crc << 1);
    }
    return crc;
}

/* One byte of x^16 + x^12 + x^5 + 1; continued over the check itself it is 0. */
static inline uint16_t sd_crc16(uint16_t crc, uint8_t byte) {
#ifdef __AVR__
    return _crc_xmodem_update(crc, byte); /* the same, in assembly */
#else
    crc = (uint16_t)(crc >> 8 | crc << 8);
    crc ^= byte;
    crc ^= (uint8_t)(crc & 0xFF) >> 4;
    crc ^= (uint16_t)(crc << 12);
    crc ^= (uint16_t)((crc & 0xFF) << 5);
    return crc;
#endif
}

#endif
