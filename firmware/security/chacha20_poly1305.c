#include "chacha20_poly1305.h"

#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are read as the memory has them, which is little-endian in RFC 8439"
#endif

enum { BLOCK_BYTES_OF_CHACHA = 64, COUNTER = 12, BLOCK_BYTES_OF_POLY = 16, DOUBLE_ROUNDS = 10, STACK_WORDS = 128 };

static inline uint32_t word(const uint8_t *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void put(uint8_t *to, uint32_t value) { memcpy(to, &value, sizeof value); }

static inline uint32_t left(uint32_t value, unsigned by) { return value << by | value >> (32 - by); }

/* RFC 8439, 2.1. */
#define QUARTER(a, b, c, d)                                                                                            \
    (a += b, d = left(d ^ a, 16), c += d, b = left(b ^ c, 12), a += b, d = left(d ^ a, 8), c += d, b = left(b ^ c, 7))

/* 2.3: twenty rounds over `state`, and `state` added, to `block`. */
static void chacha20_block(const uint32_t *state, uint32_t *block) {
    uint32_t x0 = state[0], x1 = state[1], x2 = state[2], x3 = state[3], x4 = state[4], x5 = state[5], x6 = state[6],
             x7 = state[7], x8 = state[8], x9 = state[9], x10 = state[10], x11 = state[11], x12 = state[12],
             x13 = state[13], x14 = state[14], x15 = state[15];
    for (unsigned n = 0; n < DOUBLE_ROUNDS; n++) {
        QUARTER(x0, x4, x8, x12);
        QUARTER(x1, x5, x9, x13);
        QUARTER(x2, x6, x10, x14);
        QUARTER(x3, x7, x11, x15);
        QUARTER(x0, x5, x10, x15);
        QUARTER(x1, x6, x11, x12);
        QUARTER(x2, x7, x8, x13);
        QUARTER(x3, x4, x9, x14);
    }
    block[0] = x0 + state[0], block[1] = x1 + state[1], block[2] = x2 + state[2], block[3] = x3 + state[3];
    block[4] = x4 + state[4], block[5] = x5 + state[5], block[6] = x6 + state[6], block[7] = x7 + state[7];
    block[8] = x8 + state[8], block[9] = x9 + state[9], block[10] = x10 + state[10], block[11] = x11 + state[11];
    block[12] = x12 + state[12], block[13] = x13 + state[13], block[14] = x14 + state[14], block[15] = x15 + state[15];
}

/* `last`: the words after the key. */
static void begin(uint32_t *state, const uint8_t *key, const uint8_t *last) {
    static const uint32_t constants[4] = {0x61707865u, 0x3320646Eu, 0x79622D32u, 0x6B206574u};
    memcpy(state, constants, sizeof constants);
    memcpy(state + 4, key, AEAD_KEY_BYTES);
    memcpy(state + COUNTER, last, 16);
}

/* 2.4: `to` is `from` with the key stream from the state's counter on. */
static void chacha20(uint32_t *state, uint8_t *to, const uint8_t *from, uint32_t bytes) {
    uint32_t block[BLOCK_BYTES_OF_CHACHA / 4];
    for (; bytes >= BLOCK_BYTES_OF_CHACHA; bytes -= BLOCK_BYTES_OF_CHACHA) {
        chacha20_block(state, block);
        state[COUNTER]++;
        for (unsigned n = 0; n < BLOCK_BYTES_OF_CHACHA; n += 4) {
            put(to + n, word(from + n) ^ block[n / 4]);
        }
        to += BLOCK_BYTES_OF_CHACHA;
        from += BLOCK_BYTES_OF_CHACHA;
    }
    if (bytes) {
        chacha20_block(state, block);
        for (uint32_t n = 0; n < bytes; n++) {
            to[n] = (uint8_t)(from[n] ^ ((const uint8_t *)block)[n]);
        }
    }
}

/* A sum modulo 2^130 - 5 in words of 32 bits, `h[4]` of a few: r's two lowest bits of each word but the first are 0,
 * so that r * 2^128 is r / 4 * 5 modulo that, a word of five quarters for each of r's. */
typedef struct {
    uint32_t r[4], pad[4], h[5];
} poly1305_t;

static void poly1305_begin(poly1305_t *poly, const uint32_t *key) {
    static const uint32_t clamp[4] = {0x0FFFFFFFu, 0x0FFFFFFCu, 0x0FFFFFFCu, 0x0FFFFFFCu};
    for (unsigned n = 0; n < 4; n++) {
        poly->r[n] = key[n] & clamp[n];
        poly->pad[n] = key[4 + n];
    }
    memset(poly->h, 0, sizeof poly->h);
}

/* 2.5: h = (h + block + 2^128) * r, for whole blocks. */
static void poly1305_blocks(poly1305_t *poly, const uint8_t *from, uint32_t blocks) {
    const uint32_t r0 = poly->r[0], r1 = poly->r[1], r2 = poly->r[2], r3 = poly->r[3];
    const uint32_t q0 = (r0 >> 2) * 5, q1 = (r1 >> 2) + r1, q2 = (r2 >> 2) + r2, q3 = (r3 >> 2) + r3;
    uint32_t h0 = poly->h[0], h1 = poly->h[1], h2 = poly->h[2], h3 = poly->h[3], h4 = poly->h[4];
    for (; blocks; blocks--, from += BLOCK_BYTES_OF_POLY) {
        uint64_t carry = (uint64_t)h0 + word(from);
        h0 = (uint32_t)carry;
        carry = (carry >> 32) + h1 + word(from + 4);
        h1 = (uint32_t)carry;
        carry = (carry >> 32) + h2 + word(from + 8);
        h2 = (uint32_t)carry;
        carry = (carry >> 32) + h3 + word(from + 12);
        h3 = (uint32_t)carry;
        h4 += (uint32_t)(carry >> 32) + 1; /* at most 6: products with it stay below 2^32 */
        const uint64_t x0 =
            (uint64_t)h0 * r0 + (uint64_t)h1 * q3 + (uint64_t)h2 * q2 + (uint64_t)h3 * q1 + h4 * q0;
        const uint64_t x1 =
            (uint64_t)h0 * r1 + (uint64_t)h1 * r0 + (uint64_t)h2 * q3 + (uint64_t)h3 * q2 + h4 * q1;
        const uint64_t x2 =
            (uint64_t)h0 * r2 + (uint64_t)h1 * r1 + (uint64_t)h2 * r0 + (uint64_t)h3 * q3 + h4 * q2;
        const uint64_t x3 =
            (uint64_t)h0 * r3 + (uint64_t)h1 * r2 + (uint64_t)h2 * r1 + (uint64_t)h3 * r0 + h4 * q3;
        const uint32_t x4 = h4 * (r0 & 3);
        carry = (x0 >> 32) + x1; /* the sums are below 2^63 */
        const uint32_t s1 = (uint32_t)carry;
        carry = (carry >> 32) + x2;
        const uint32_t s2 = (uint32_t)carry;
        carry = (carry >> 32) + x3;
        const uint32_t s3 = (uint32_t)carry, top = (uint32_t)(carry >> 32) + x4;
        carry = (uint64_t)(top >> 2) * 5 + (uint32_t)x0; /* 2^130 is 5 */
        h0 = (uint32_t)carry;
        carry = (carry >> 32) + s1;
        h1 = (uint32_t)carry;
        carry = (carry >> 32) + s2;
        h2 = (uint32_t)carry;
        carry = (carry >> 32) + s3;
        h3 = (uint32_t)carry;
        h4 = (top & 3) + (uint32_t)(carry >> 32);
    }
    poly->h[0] = h0, poly->h[1] = h1, poly->h[2] = h2, poly->h[3] = h3, poly->h[4] = h4;
}

/* `bytes` of them, and zeros to the end of a block (2.8). */
static void poly1305_padded(poly1305_t *poly, const uint8_t *from, uint32_t bytes) {
    const uint32_t rest = bytes % BLOCK_BYTES_OF_POLY;
    poly1305_blocks(poly, from, bytes / BLOCK_BYTES_OF_POLY);
    if (rest) {
        uint8_t block[BLOCK_BYTES_OF_POLY] = {0};
        memcpy(block, from + (bytes - rest), rest);
        poly1305_blocks(poly, block, 1);
    }
}

static void poly1305_end(const poly1305_t *poly, uint8_t *tag) {
    uint32_t reduced[4], h4 = poly->h[4];
    uint64_t carry = 5; /* h + 5 reaches 2^130 where h is 2^130 - 5 or more */
    for (unsigned n = 0; n < 4; n++) {
        carry += poly->h[n];
        reduced[n] = (uint32_t)carry;
        carry >>= 32;
    }
    const uint32_t chosen = 0u - ((h4 + (uint32_t)carry) >> 2); /* all ones where it does */
    carry = 0;
    for (unsigned n = 0; n < 4; n++) {
        carry += (uint64_t)((poly->h[n] & ~chosen) | (reduced[n] & chosen)) + poly->pad[n];
        put(tag + 4 * n, (uint32_t)carry);
        carry >>= 32;
    }
}

/* 2.8: the tag of a message whose second part is encrypted already; the counter is at 1 afterwards. */
static void tagged(const aead_t *with, uint32_t *state, const uint8_t *from, uint32_t bytes, uint8_t *tag) {
    uint32_t block[BLOCK_BYTES_OF_CHACHA / 4];
    const uint32_t lengths[4] = {with->about_bytes, 0, bytes, 0};
    poly1305_t poly;
    state[COUNTER] = 0;
    chacha20_block(state, block);
    poly1305_begin(&poly, block);
    poly1305_padded(&poly, with->about, with->about_bytes);
    poly1305_padded(&poly, from, bytes);
    poly1305_blocks(&poly, (const uint8_t *)lengths, 1);
    poly1305_end(&poly, tag);
    state[COUNTER] = 1;
}

static void with_nonce(const aead_t *with, uint32_t *state) {
    uint8_t last[16] = {1, 0, 0, 0};
    memcpy(last + 4, with->nonce, AEAD_NONCE_BYTES);
    begin(state, with->key, last);
}

static __attribute__((noinline)) void seal(
    const aead_t *with, uint8_t *to, const uint8_t *from, uint32_t bytes, uint8_t *tag) {
    uint32_t state[BLOCK_BYTES_OF_CHACHA / 4];
    with_nonce(with, state);
    chacha20(state, to, from, bytes);
    tagged(with, state, to, bytes, tag);
}

static __attribute__((noinline)) int unseal(
    const aead_t *with, uint8_t *to, const uint8_t *from, uint32_t bytes, const uint8_t *tag) {
    uint32_t state[BLOCK_BYTES_OF_CHACHA / 4];
    uint8_t found[AEAD_TAG_BYTES];
    with_nonce(with, state);
    tagged(with, state, from, bytes, found);
    if (!aead_equal(found, tag, sizeof found)) {
        return 0;
    }
    chacha20(state, to, from, bytes);
    return 1;
}

static __attribute__((noinline)) void derive(const uint8_t *key, const uint8_t *salt, uint8_t *derived) {
    uint32_t state[BLOCK_BYTES_OF_CHACHA / 4], block[BLOCK_BYTES_OF_CHACHA / 4];
    begin(state, key, salt);
    chacha20_block(state, block);
    memcpy(derived, block, AEAD_KEY_BYTES);
}

void aead_forget(void *secret, uint32_t bytes) {
    memset(secret, 0, bytes);
    __asm__ volatile("" ::"r"(secret) : "memory");
}

/* Keys, key streams and what compilers put aside of both: all that a call of the three above had of the stack. */
static __attribute__((noinline)) void forget_calls(void) {
    volatile uint32_t below[STACK_WORDS]; /* not by memset, which goes byte by byte in some C libraries */
    for (volatile uint32_t *at = below; at < below + STACK_WORDS; at += 8) {
        at[0] = 0, at[1] = 0, at[2] = 0, at[3] = 0, at[4] = 0, at[5] = 0, at[6] = 0, at[7] = 0;
    }
    __asm__ volatile("" ::"r"(below) : "memory");
}

void aead_seal(const aead_t *with, uint8_t *to, const uint8_t *from, uint32_t bytes, uint8_t *tag) {
    seal(with, to, from, bytes, tag);
    forget_calls();
}

int aead_open(const aead_t *with, uint8_t *to, const uint8_t *from, uint32_t bytes, const uint8_t *tag) {
    const int right = unseal(with, to, from, bytes, tag);
    forget_calls();
    return right;
}

void aead_derive(const uint8_t *key, const uint8_t *salt, uint8_t *derived) {
    derive(key, salt, derived);
    forget_calls();
}

int aead_equal(const uint8_t *a, const uint8_t *b, uint32_t count) {
    uint32_t different = 0;
    while (count--) {
        different |= (uint32_t)(*a++ ^ *b++);
    }
    return (int)(1 & ((different - 1) >> 8)); /* no branch on what was compared */
}
