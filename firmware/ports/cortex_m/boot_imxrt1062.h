/* What the boot ROM of an i.MX RT1062 looks for (reference manual, 9.6, 9.7): how to read the flash, a table with the
 * place to begin, and how long the program is. The flash is read by 0x03, a bit a clock at 30 MHz, which all know. */
__attribute__((naked, noreturn)) void port_boot(void) {
    __asm__ volatile(
        ".syntax unified\n"
        "ldr r0, =0x400AC000\n" /* all banks of the FlexRAM are data memory, 512 KiB */
        "ldr r1, =0xAAAAAAAA\n"
        "str r1, [r0, #0x44]\n"
        "ldr r1, =0x00200006\n"
        "str r1, [r0, #0x40]\n"
        "ldr r1, =0x00A00000\n"
        "str r1, [r0, #0x38]\n"
        "dsb\n"
        "ldr r0, =port_stack_top\n"
        "msr msp, r0\n"
        "b port_reset\n"
        ".ltorg\n");
}

typedef struct {
    uint32_t read[1024]; /* of which the first 128 are the flash's */
    const void *table[8];
    const void *program[3];
} port_boot_t;

__attribute__((section(".boot"), used, aligned(4096))) static const port_boot_t port_boot_data = {
    .read = {
        [0] = 0x42464346, [1] = 0x56010000, /* "FCFB", version 1.1 */
        [3] = 0x00030300, /* chip select 3 cycles before and after */
        [17] = 0x00010101, /* 30 MHz, one line, a NOR flash */
        [20] = 0x00800000, /* 8 MiB */
        [32] = 0x08180403, [33] = 0x00002404, /* command 0x03, 24 bits of address, data */
        [112] = 256, [113] = 4096, /* page, sector */
    },
    .table = {
        (const void *)0x432000D1, (const void *)port_boot, 0, 0,
        port_boot_data.program, port_boot_data.table, 0, 0,
    },
    .program = {port_flash_start, port_flash_bytes, 0},
};
