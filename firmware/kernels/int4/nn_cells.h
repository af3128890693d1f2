/* Cells of the arena, the same on the chip and on the host.
 *
 * An address counts nibbles: byte n of the arena holds cells 2n (low) and 2n + 1 (high). Elements of
 * 8 bits and more begin at even cells, least significant byte first. A pixel is a row of elements;
 * where one is scattered, its address has the flag NN_SCATTERED and is an index into nn_scatter.
 */
#ifndef NN_CELLS_H
#define NN_CELLS_H

#include "nn_memory.h"

#define NN_SCATTERED 0x8000u

/* Nibble `index` of packed unsigned nibbles. */
#define nn_nibble(byte, index) ((uint8_t)((index) & 1 ? (byte) >> 4 : (byte) & 15))

/* Nibbles exchanged: one instruction where there is one. */
static inline uint8_t nn_swap(uint8_t byte) { return (uint8_t)(byte << 4 | byte >> 4); }

static inline uint8_t nn_get4(const uint8_t *arena, uint16_t cell) {
    return nn_nibble(arena[cell >> 1], cell);
}

static inline void nn_put4(uint8_t *arena, uint16_t cell, uint8_t value) {
    uint8_t *byte = &arena[cell >> 1];
    if (cell & 1) {
        *byte = (uint8_t)((*byte & 0x0F) | (value << 4));
    } else {
        *byte = (uint8_t)((*byte & 0xF0) | (value & 0x0F));
    }
}

#define nn_get8(arena, cell) ((arena)[(cell) >> 1])
#define nn_put8(arena, cell, value) ((arena)[(cell) >> 1] = (value))
#define nn_get16(arena, cell) nn_load_u16(&(arena)[(cell) >> 1])
#define nn_put16(arena, cell, value) nn_store_16(&(arena)[(cell) >> 1], value)
#define nn_get32(arena, cell) nn_load_u32(&(arena)[(cell) >> 1])
#define nn_put32(arena, cell, value) nn_store_32(&(arena)[(cell) >> 1], value)

#endif
