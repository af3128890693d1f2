#ifdef __ARM_ARCH_PROFILE
static volatile float real = 1.5f;
__attribute__((noinline)) static void fill(volatile uint8_t *at, uint32_t bytes) {
    while (bytes) {
        at[--bytes] = 0x11;
    }
}
void port_card_interrupt(void);
void port_card_interrupt(void) {
    volatile uint8_t kept[200];
    fill(kept, sizeof kept);
}
__attribute__((noinline)) static void deep(void) {
    volatile uint8_t kept[ROOM];
    fill(kept, sizeof kept);
    if (FLOATS) {
        real = real * 1.25f;
    }
    /* SysTick */
    __asm__ volatile(PUSH "str %0, [%1]\n dsb\n isb\n" POP
                     ::"l"(1u << 26), "l"(0xE000ED04) : "memory");
}
#else
static void deep(void) {}
#endif
