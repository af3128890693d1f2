/* Arm's semihosting (Semihosting for AArch32 and AArch64, 2.0): files and messages of the computer that
 * simulates this core. An operation's operands lie in memory as words. */
#ifndef THIMBLE_SEMIHOSTING_H
#define THIMBLE_SEMIHOSTING_H

#include <stdint.h>

enum semihosting_operation {
    SEMIHOSTING_OPEN = 0x01,
    SEMIHOSTING_CLOSE = 0x02,
    SEMIHOSTING_SAY = 0x04, /* SYS_WRITE0: a string, to standard error */
    SEMIHOSTING_WRITE = 0x05,
    SEMIHOSTING_READ = 0x06,
    SEMIHOSTING_SEEK = 0x0A,
    SEMIHOSTING_LENGTH = 0x0C,
    SEMIHOSTING_EXIT = 0x20 /* SYS_EXIT_EXTENDED */
};

/* "rb", "r+b", "wb" */
enum semihosting_mode { SEMIHOSTING_TO_READ = 1, SEMIHOSTING_TO_UPDATE = 3, SEMIHOSTING_TO_WRITE = 5 };

#define SEMIHOSTING_APPLICATION_EXIT 0x20026u

static inline int32_t semihosting(enum semihosting_operation operation, const void *operands) {
    register uint32_t r0 __asm__("r0") = (uint32_t)operation;
    register const void *r1 __asm__("r1") = operands;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return (int32_t)r0;
}

/* A handle, or -1. */
static inline int32_t semihosting_open(const char *name, uint32_t length, enum semihosting_mode mode) {
    const uint32_t operands[] = {(uint32_t)name, mode, length};
    return semihosting(SEMIHOSTING_OPEN, operands);
}

/* How many of `bytes` were not read: all of them at the end of the file. */
static inline uint32_t semihosting_read(int32_t file, void *to, uint32_t bytes) {
    const uint32_t operands[] = {(uint32_t)file, (uint32_t)to, bytes};
    return (uint32_t)semihosting(SEMIHOSTING_READ, operands);
}

/* How many of `bytes` were not written. */
static inline uint32_t semihosting_write(int32_t file, const void *from, uint32_t bytes) {
    const uint32_t operands[] = {(uint32_t)file, (uint32_t)from, bytes};
    return (uint32_t)semihosting(SEMIHOSTING_WRITE, operands);
}

/* Negative where there is no byte `at`. */
static inline int32_t semihosting_seek(int32_t file, uint32_t at) {
    const uint32_t operands[] = {(uint32_t)file, at};
    return semihosting(SEMIHOSTING_SEEK, operands);
}

/* Bytes of a file. */
static inline uint32_t semihosting_length(int32_t file) {
    const uint32_t operands[] = {(uint32_t)file};
    return (uint32_t)semihosting(SEMIHOSTING_LENGTH, operands);
}

static inline uint32_t semihosting_close(int32_t file) {
    const uint32_t operands[] = {(uint32_t)file};
    return (uint32_t)semihosting(SEMIHOSTING_CLOSE, operands);
}

__attribute__((noreturn)) static inline void semihosting_exit(uint32_t code) {
    const uint32_t operands[] = {SEMIHOSTING_APPLICATION_EXIT, code};
    for (;;) {
        (void)semihosting(SEMIHOSTING_EXIT, operands);
    }
}

#endif
