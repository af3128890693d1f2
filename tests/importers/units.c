#include "model.h"
#include <stdio.h>
/* reals on stdin; integers of the input and reals of the output on stdout */
int main(void) {
    float real[NN_INPUT_COUNT];
    while (fread(real, sizeof *real, NN_INPUT_COUNT, stdin) == NN_INPUT_COUNT) {
        nn_init();
        for (int n = 0; n < NN_INPUT_COUNT; n++) {
            const nn_input_t value = nn_quantize(real[n]);
            fwrite(&value, 1, 1, stdout);
            if (nn_feed((const uint8_t *)&value, 1) != NN_OK) return 1;
        }
        if (nn_invoke() != NN_OK) return 2;
        for (int n = 0; n < NN_OUTPUT_COUNT; n++) {
            const float out = nn_dequantize(nn_output()[n]);
            fwrite(&out, sizeof out, 1, stdout);
        }
    }
    return 0;
}
