/* ChaCha20-Poly1305 (RFC 8439): encrypts and authenticates, or only authenticates, without tables, branches or
 * addresses that depend on a secret. Nothing is kept between calls, on the stack neither, and nothing allocated. */
#ifndef THIMBLE_CHACHA20_POLY1305_H
#define THIMBLE_CHACHA20_POLY1305_H

#include <stdint.h>

enum { AEAD_KEY_BYTES = 32, AEAD_NONCE_BYTES = 12, AEAD_TAG_BYTES = 16 };

/* A message is `about`, which is authenticated, and `bytes` bytes that are encrypted, too. One key must not see a
 * nonce twice. `to` may be `from`. */
typedef struct {
    const uint8_t *key, *nonce, *about;
    uint32_t about_bytes;
} aead_t;

void aead_seal(const aead_t *with, uint8_t *to, const uint8_t *from, uint32_t bytes, uint8_t *tag);

/* Whether `tag` is that of the message; only then is anything written to `to`. */
int aead_open(const aead_t *with, uint8_t *to, const uint8_t *from, uint32_t bytes, const uint8_t *tag);

/* The first 32 bytes of ChaCha20's block of `key` whose counter and nonce are the 16 bytes `salt`: another key, which
 * says nothing about the first. */
void aead_derive(const uint8_t *key, const uint8_t *salt, uint8_t *derived);

/* Overwrites a secret with zeros, which no compiler leaves out because nothing reads them. */
void aead_forget(void *secret, uint32_t bytes);

/* Whether `count` bytes are equal, in a time that depends on `count` alone. */
int aead_equal(const uint8_t *a, const uint8_t *b, uint32_t count);

#endif
