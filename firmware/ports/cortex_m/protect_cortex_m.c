/* The memory protection unit: PMSAv7 (ARMv7-M reference manual, B3.5) or PMSAv8 (ARMv8-M, D1.2).
 * Code for ARMv6-M runs on a simulated Cortex-M3, which has PMSAv7. */
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && !defined(PORT_UART)
#include "memory_cortex_m.h"

#define MPU_CONTROL PORT_REGISTER(0xE000ED94)
#define MPU_NUMBER PORT_REGISTER(0xE000ED98)
#define MPU_BASE PORT_REGISTER(0xE000ED9C)
#define MPU_SIZE PORT_REGISTER(0xE000EDA0) /* RASR; PMSAv8: RLAR, the limit */
#define MPU_ENABLE 1u
#define PAGE_BYTES 0x1000u

static void changed(void) { __asm__ volatile("dsb\nisb" ::: "memory"); }

#if __ARM_ARCH == 8
#define MPU_MEMORY_TYPES PORT_REGISTER(0xE000EDC0)
#define NORMAL_AND_DEVICE 0x00FFu /* types 0 and 1 */
#define NO_EXECUTION 1u
#define READ_ONLY 4u

#define READ_AND_WRITE 0u
#define DEVICE (1u << 1)

/* The next number. */
static uint32_t grant(uint32_t number, uint32_t start, uint32_t bytes, uint32_t rights) {
    if (bytes == 0) {
        return number;
    }
    MPU_NUMBER = number;
    MPU_BASE = start | (rights & ~DEVICE);
    MPU_SIZE = (start + bytes - 32) | (rights & DEVICE) | MPU_ENABLE; /* 2: type 1 */
    return number + 1;
}

static void prepare(void) { MPU_MEMORY_TYPES = NORMAL_AND_DEVICE; }
#else
#define NO_EXECUTION (1u << 28)
#define READ_AND_WRITE (3u << 24)
#define READ_ONLY (6u << 24)
#define NORMAL (1u << 17)
#define DEVICE 0u
#define LEAST_BYTES 32u
#define LEAST_BYTES_IN_PARTS 256u

/* From `start`, a multiple of every region's size: each region is the smallest power of two that
 * holds what is left, with as many of its eighths as are wholly needed; the rest is left to the
 * next one, an eighth in size at most. `bytes` is a multiple of 32. The next number. */
static uint32_t grant(uint32_t number, uint32_t start, uint32_t bytes, uint32_t rights) {
    while (bytes) {
        uint32_t log2 = 5;
        while ((LEAST_BYTES << (log2 - 5)) < bytes) {
            log2++;
        }
        uint32_t size = (uint32_t)1 << log2, eighths = 8;
        if (size != bytes && size >= LEAST_BYTES_IN_PARTS) {
            eighths = bytes / (size / 8);
        } else if (size != bytes) { /* 96 B are 64 and 32 */
            log2--;
            size /= 2;
        }
        const uint32_t off = 0xFFu << eighths & 0xFFu;
        MPU_NUMBER = number++;
        MPU_BASE = start;
        MPU_SIZE = rights | NORMAL | off << 8 | (log2 - 1) << 1 | MPU_ENABLE;
        start += size / 8 * eighths;
        bytes -= size / 8 * eighths;
    }
    return number;
}

static void prepare(void) {}
#endif

#define DATA (NO_EXECUTION | READ_AND_WRITE)

void port_protect(void) {
    prepare();
    (void)grant(PORT_FLASH, (uint32_t)port_flash_start, (uint32_t)port_flash_bytes, READ_ONLY);
    (void)grant(PORT_DESK, (uint32_t)port_desk_start, (uint32_t)port_desk_bytes, DATA);
    (void)grant(PORT_TIMER_PAGE, PORT_TIMER, PAGE_BYTES, DATA | DEVICE);
    uint32_t next = grant(PORT_OTHERS, (uint32_t)port_weights_start, (uint32_t)port_weights_bytes,
                          NO_EXECUTION | READ_ONLY);
    next = grant(next, (uint32_t)port_activations_start, (uint32_t)port_activations_bytes, DATA);
    (void)grant(next, (uint32_t)port_ram_start, (uint32_t)port_ram_bytes, DATA);
    MPU_CONTROL = MPU_ENABLE;
    changed();
}

static void desk(uint32_t enable) {
    for (uint32_t number = PORT_DESK; number <= PORT_TIMER_PAGE; number++) {
        MPU_NUMBER = number;
        MPU_SIZE = (MPU_SIZE & ~MPU_ENABLE) | enable;
    }
    changed();
}

void port_close_desk(void) { desk(0); }

void port_open_desk(void) { desk(MPU_ENABLE); }
#endif
