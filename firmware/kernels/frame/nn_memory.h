/* Where the network's data lie: constants in flash, the arena, and what compilers are told of them. */
#ifndef NN_MEMORY_H
#define NN_MEMORY_H

#include <stdint.h>
#include <string.h>

#if defined(__AVR__)
#include <avr/pgmspace.h>
#if defined(__clang__) /* has no attribute progmem, and other rules for assembly */
#define NN_FLASH __attribute__((section(".progmem.data")))
#define NN_PORTABLE
#else
#define NN_FLASH PROGMEM
#endif
#define NN_FAR __attribute__((section(".lowtext.nn"))) /* behind all that LPM has to reach */
#define nn_flash8(address) pgm_read_byte(address)
#define nn_flash16(address) pgm_read_word(address)
#define nn_flash32(address) pgm_read_dword(address)
#define nn_far8(array, index) pgm_read_byte_far(pgm_get_far_address(array) + (uint32_t)(index))
#define NN_LAST __attribute__((section(".noinit"))) /* after all other statics, before the stack */
#define NN_ALIGNED
#else
#define NN_FLASH
#define NN_FAR
#define nn_flash8(address) (*(address))
#define nn_flash16(address) (*(address))
#define nn_flash32(address) (*(address))
#define nn_far8(array, index) ((array)[index])
#define NN_LAST
#define NN_ALIGNED __attribute__((aligned(16)))
#endif

#define NN_KEEP __attribute__((used)) /* not to be folded into code */
#define NN_NOINLINE __attribute__((noinline))

/* Kernels take addresses as arguments. GCC 12 would make copies of them for constant addresses, take
 * some of the copies for functions that write nothing, and leave out the calls. */
#if defined(__GNUC__) && !defined(__clang__)
#define NN_NOCLONE __attribute__((noclone))
#else
#define NN_NOCLONE
#endif
#if defined(__AVR__) || defined(NN_APART)
#define NN_KERNEL NN_NOCLONE NN_NOINLINE /* each has a stack of its own, while it runs */
#else
#define NN_KERNEL NN_NOCLONE
#endif

/* Elements wider than a byte, at any address. */
static inline int16_t nn_load_16(const uint8_t *from) {
    int16_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint16_t nn_load_u16(const uint8_t *from) { return (uint16_t)nn_load_16(from); }

static inline int32_t nn_load_32(const uint8_t *from) {
    int32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint32_t nn_load_u32(const uint8_t *from) { return (uint32_t)nn_load_32(from); }

static inline void nn_store_16(uint8_t *to, uint16_t value) { memcpy(to, &value, sizeof value); }

static inline void nn_store_32(uint8_t *to, uint32_t value) { memcpy(to, &value, sizeof value); }

#endif
