__attribute__((noinline)) static uint8_t leaf(uint8_t a) {
    volatile uint8_t kept[5] = {a, a, a, a, a};
    return kept[a % 5];
}
__attribute__((noinline)) static uint8_t middle(uint8_t a, uint8_t b) {
    return (uint8_t)(leaf(a) + leaf(b) + a + b);
}
__attribute__((noinline)) static void work(uint8_t seed) {
    for (uint8_t i = 0; i < 3; i++) nn_arena[2] += middle(seed, i) + middle(i, seed);
}
