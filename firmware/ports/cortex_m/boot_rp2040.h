/* What an RP2040's boot ROM copies to RAM, checks and runs (data sheet, 2.8.1): 252 bytes, and their CRC-32. It has
 * the flash read by 0x03, a bit a clock, which all know, and goes on at the table of vectors behind it. */
__attribute__((section(".boot"), used, naked, noreturn)) static void port_boot(void) {
    __asm__ volatile(
        ".syntax unified\n"
        "ldr r3, =0x18000000\n" /* the serial interface to the flash */
        "movs r0, #0\n"
        "str r0, [r3, #8]\n" /* off */
        "movs r1, #4\n"
        "str r1, [r3, #0x14]\n" /* a clock every 4 cycles */
        "ldr r1, =0x001F0300\n"
        "str r1, [r3, #0]\n" /* a command and an address, then 32 bits */
        "str r0, [r3, #4]\n" /* one word */
        "ldr r1, =0x03000218\n"
        "ldr r2, =0x180000F4\n"
        "str r1, [r2]\n" /* command 0x03 of 8 bits, 24 bits of address, all on one line */
        "movs r1, #1\n"
        "str r1, [r3, #8]\n" /* on */
        "ldr r0, =0x10000100\n"
        "ldr r1, =0xE000ED08\n"
        "str r0, [r1]\n" /* the table of vectors */
        "ldmia r0!, {r1, r2}\n"
        "msr msp, r1\n"
        "bx r2\n"
        ".align 2\n"
        ".ltorg\n"
        ".org 252\n"
        ".word 0x35C5B51E\n"); /* CRC-32, high bits first, begun with ones */
}
