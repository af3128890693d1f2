#include "first.h"
#include "second.h"
#include <stdio.h>
static uint8_t image[FIRST_INPUT_BYTES];
int main(void) {
    if (fread(image, 1, sizeof image, stdin) != sizeof image) return 1;
    first_init();
    first_feed(image, sizeof image);
    if (fread(second_input(), 1, SECOND_INPUT_BYTES, stdin) != SECOND_INPUT_BYTES) return 2;
    if (first_invoke() != FIRST_OK || second_invoke() != SECOND_OK) return 3;
    fwrite(first_output(), sizeof(first_output_t), FIRST_OUTPUT_COUNT, stdout);
    fwrite(second_output(), sizeof(second_output_t), SECOND_OUTPUT_COUNT, stdout);
    return 0;
}
