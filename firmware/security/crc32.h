/* A CRC of 32 bits for words in registers: without a table, which a core's flash would be slower to give than the shifts
 * are. Its polynomial is x^32 + x^9 + x^3 + x^2 + 1, which is primitive: it finds any one and any two bits of a tile, and
 * whatever is changed within one word; of all else it misses one in 2^32. It is no secret, and stops nobody. */
#ifndef THIMBLE_CRC32_H
#define THIMBLE_CRC32_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are little-endian"
#endif

/* sum * x^32 + word: x^32 is x^9 + x^3 + x^2 + 1, and so again is what of that lies above x^31. */
static inline uint32_t crc32_word(uint32_t sum, uint32_t word) {
    const uint32_t above = sum >> 23 ^ sum >> 29 ^ sum >> 30;
    const uint32_t low = sum ^ sum << 2 ^ sum << 3 ^ sum << 9;
    return word ^ low ^ above ^ above << 2 ^ above << 3 ^ above << 9;
}

/* Continued over `bytes` bytes, and zeros to the end of a word. */
static uint32_t crc32_bytes(uint32_t sum, const uint8_t *from, uint32_t bytes) {
    uint32_t word;
    for (; bytes >= sizeof word; bytes -= sizeof word, from += sizeof word) {
        memcpy(&word, from, sizeof word);
        sum = crc32_word(sum, word);
    }
    if (bytes) {
        word = 0;
        memcpy(&word, from, bytes);
        sum = crc32_word(sum, word);
    }
    return sum;
}

#endif
