#include TIMING
#include <stdio.h>
int main(void) {
    unsigned op, next;
    timing_t before = timing_plain(TIMING_DATA, 0);
    while (scanf("%x %x", &op, &next) == 2) {
        before = timing_of((uint16_t)op, (uint16_t)next, before);
        printf("%u\n", before.pairs ? 0 : before.cycles);
    }
}
