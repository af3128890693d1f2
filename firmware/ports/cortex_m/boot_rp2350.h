/* What an RP2350's boot ROM looks for in the first 4 KiB (data sheet, 5.9): a block that says "a program of a secure
 * Cortex-M33", alone in its loop. */
__attribute__((section(".boot_block"), used)) static const uint32_t port_boot[] = {
    0xFFFFDED3, 0x10210142, 0x000001FF, 0, 0xAB123579,
};
