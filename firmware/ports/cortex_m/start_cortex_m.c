/* From reset to main, and what becomes of a fault: a line that says where, and the end. */
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#include "memory_cortex_m.h"
#include "semihosting.h"

#define CONFIGURATION PORT_REGISTER(0xE000ED14)
#define TRAP_UNALIGNED (1u << 3)
#define COPROCESSORS PORT_REGISTER(0xE000ED88)
#define FLOATING_POINT (0xFu << 20)
#define FAULT_STATUS PORT_REGISTER(0xE000ED28)
#define FAULT_ADDRESS PORT_REGISTER(0xE000ED34)
#define BUS_FAULT_ADDRESS PORT_REGISTER(0xE000ED38)
#define BUS_FAULT_ADDRESS_VALID (1u << 15)
#define FAULT_STACK_WORDS 128
#define STACKED_PC 6

int main(void);
void port_reset(void);

#ifdef PORT_BOOT /* what the chip's boot ROM asks for, before the vectors or behind them */
#include PORT_BOOT
#endif

/* Paints all of the RAM before anything is in it: what was never written can be told, and nothing
 * can rely on zeros. */
__attribute__((naked, noreturn)) void port_reset(void) {
    __asm__ volatile(
        ".syntax unified\n"
        "ldr r0, =port_ram_start\n"
        "ldr r1, =port_ram_bytes\n"
        "adds r1, r0, r1\n"
        "ldr r2, =%c0\n"
        "1: stmia r0!, {r2}\n"
        "cmp r0, r1\n"
        "blo 1b\n"
        "bl port_start\n" ::"i"(PORT_PAINT));
}

__attribute__((used, noreturn)) void port_start(void) {
    const uint32_t *from = port_data_from;
    for (uint32_t *to = port_data_start; to < port_data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = port_bss_start; to < port_bss_end; to++) {
        *to = 0;
    }
    if (port_activations_bytes) {
        for (uint8_t *to = port_arena_start; to < port_arena_end; to++) {
            *to = (uint8_t)PORT_PAINT;
        }
    }
#ifdef __ARM_FP
    COPROCESSORS |= FLOATING_POINT;
#endif
#if __ARM_ARCH == 6
    CONFIGURATION |= TRAP_UNALIGNED; /* as the real core does, and the simulated Cortex-M3 need not */
#endif
#ifdef PORT_UART
    (void)main();
    for (;;) {
    }
}

/* Nobody to tell: the host waits for an answer in vain. */
static void any_fault(void) {
    for (;;) {
    }
}
#else
    port_protect();
    (void)main();
    semihosting_exit(0);
}

PORT_ON_DESK uint32_t port_fault_stack[FAULT_STACK_WORDS];
PORT_ON_DESK static char said[64];

/* `name`=`value` in hexadecimal, and a space, at `to`; the place after it. */
static char *word(char *to, const char *name, uint32_t value) {
    while (*name) {
        *to++ = *name++;
    }
    *to++ = '=';
    for (uint32_t shift = 32; shift; shift -= 4) {
        *to++ = "0123456789abcdef"[value >> (shift - 4) & 15];
    }
    *to++ = ' ';
    return to;
}

/* `frame`: the stack pointer, at what the core has stacked, unless that was outside of the RAM. */
__attribute__((used, noreturn)) void port_fault(const uint32_t *frame) {
    const uint8_t *at = (const uint8_t *)frame;
    const uint32_t status = FAULT_STATUS;
    const uint32_t pc = at >= port_ram_start && at < port_stack_top ? frame[STACKED_PC] : 0;
    const uint32_t address =
        status & BUS_FAULT_ADDRESS_VALID ? BUS_FAULT_ADDRESS : FAULT_ADDRESS;
    char *end = word(said, "fault status", status);
    end = word(end, "address", address);
    end = word(end, "pc", pc);
    end[-1] = '\n';
    *end = 0;
    (void)semihosting(SEMIHOSTING_SAY, said);
    semihosting_exit(2);
}

__attribute__((naked)) static void any_fault(void) {
    __asm__ volatile(
        ".syntax unified\n"
        "mov r0, sp\n"
        "ldr r1, =port_fault_stack + %c0\n"
        "mov sp, r1\n"
        "ldr r1, =port_fault\n"
        "bx r1\n" ::"i"(FAULT_STACK_WORDS * 4));
}
#endif

/* A card's, where the program has one; nothing else interrupts. */
extern void port_card_interrupt(void) __attribute__((weak));

#define VECTORS 16
typedef void (*vector_t)(void);

__attribute__((section(".vectors"), used)) static const vector_t vectors[] = {
    (vector_t)(void *)port_stack_top,
    port_reset,
    [2 ... VECTORS - 2] = any_fault,
    port_card_interrupt, /* SysTick */
#ifdef STORAGE_STM32F7
    [VECTORS + 49] = port_card_interrupt, /* SDMMC1 */
    [VECTORS + 59] = port_card_interrupt, /* stream 3 of DMA2 */
#endif
};
#endif
