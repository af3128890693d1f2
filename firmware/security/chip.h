/* What a chip keeps to itself: one file of this folder for each kind, chosen by the compiler that reads it. */
#ifndef THIMBLE_CHIP_H
#define THIMBLE_CHIP_H

#include <stdint.h>

/* Its key, of AEAD_KEY_BYTES; 0 where it has none, or one of another length. */
int chip_key(uint8_t *key);

/* The number of this start, 1 or more: one that was never given before and never will be again, because it is written
 * down before this returns, where a card's owner cannot set it back. 0 where it cannot be. */
uint32_t chip_start(void);

#endif
