/* The first two words that a Cortex-M reads: its stack, and where it begins. */
#include <stdint.h>

extern uint32_t stack_top;
extern int main(void);

void reset(void) {
    main();
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {&stack_top, (const void *)reset};
