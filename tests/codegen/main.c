/* Runs a network on frames, natively; the status says what is wrong. */
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef NN_PARAMETER_BYTES
/* Backwards in two pieces, twice: only the last bytes count, and only once they are checked. */
static int load(void) {
    static uint8_t sent[NN_PARAMETER_BYTES];
    const uint16_t half = NN_PARAMETER_BYTES / 2;
    if (fread(sent, 1, sizeof sent, stdin) != sizeof sent) return 20;
    if (nn_invoke() != NN_NO_PARAMETERS || nn_loaded() != NN_NO_PARAMETERS) return 21;
    sent[half] ^= 1;
    if (nn_load(half, sent + half, sizeof sent - half) != NN_OK) return 22;
    if (nn_load(0, sent, half) != NN_OK || nn_loaded() != NN_NO_PARAMETERS) return 23;
    sent[half] ^= 1;
    if (nn_load(half, sent + half, 1) != NN_OK) return 24;
    if (nn_invoke() != NN_NO_PARAMETERS) return 25;
    if (nn_loaded() != NN_OK || nn_invoke() != NN_INCOMPLETE) return 26;
    if (nn_load(1, sent, sizeof sent) != NN_CORRUPT) return 27;
    return nn_invoke() == NN_NO_PARAMETERS && nn_loaded() == NN_OK ? 0 : 28;
}
#else
static int load(void) { return 0; }
#endif
#if NN_INPUTS == 1
#define FILL(frame) memcpy(nn_input(), frame, sizeof frame)
#elif NN_INPUTS == 2
#define FIRST (NN_INPUT_0_COUNT * sizeof(nn_input_0_t))
#define LAST (NN_INPUT_BYTES - FIRST)
#define FILL(frame) memcpy(nn_input_0(), frame, FIRST), memcpy(nn_input_1(), frame + FIRST, LAST)
#endif
/* frames on stdin, in chunks of argv[1] bytes or, every other one, at once; outputs on stdout */
int main(int argc, char **argv) {
    static uint8_t frame[NN_INPUT_BYTES];
    /* on AVR nn_feed counts in 16 bits */
    const uint32_t half = NN_INPUT_BYTES / 2 + 1;
    const uint32_t chunk = argc > 1 ? (uint32_t)atoi(argv[1]) : half < 0x8000 ? half : 0x8000;
    const int refused = load();
    if (refused) return refused;
    for (unsigned n = 0; fread(frame, 1, sizeof frame, stdin) == sizeof frame; n++) {
#ifdef NN_STATE_BYTES
        if (!n)
#endif
        if (nn_init() != NN_OK) return 2;
#ifdef NN_INPUT_AGAIN
        (void)chunk;
        if (!n && nn_invoke() != NN_INCOMPLETE) return 3;
        nn_input_at((const nn_input_t *)frame);
#else
#if NN_INPUT_FILLABLE
        if (n % 2) {
            FILL(frame);
        } else
#endif
        {
            for (uint32_t at = 0; at < NN_INPUT_BYTES; at += chunk) {
                if ((at > 0 || !NN_INPUT_FILLABLE) && nn_invoke() != NN_INCOMPLETE) return 3;
                const uint32_t left = NN_INPUT_BYTES - at;
                if (nn_feed(frame + at, left < chunk ? left : chunk) != NN_OK) return 4;
            }
            if (nn_feed(frame, 1) != NN_CORRUPT) return 5;
        }
#endif
        if (nn_invoke() != NN_OK) return 6;
#ifdef NN_OUTPUT_TAKEN
        nn_output_t values[7];
        for (uint32_t left = NN_FRAMES * NN_OUTPUT_COUNT, some; left; left -= some) {
            some = left < 7 ? left : 7;
            if (nn_take(values, some) != NN_OK) return 8;
            fwrite(values, sizeof *values, some, stdout);
        }
        if (nn_take(values, 1) != NN_INCOMPLETE) return 9;
#else
#define WRITE(values, count) fwrite(values, sizeof *(values), count, stdout);
        NN_EACH_OUTPUT(WRITE)
#endif
#if NN_INPUT_KEPT && NN_INPUT_FILLABLE && NN_INPUTS == 1
        if (memcmp(nn_input(), frame, sizeof frame)) return 7;
#endif
        if (!NN_INPUT_FILLABLE && !NN_INPUT_KEPT && nn_invoke() != NN_INCOMPLETE) return 10;
    }
#ifdef NN_OUTPUT_TAKEN
    nn_output_t value; /* what is left of a result goes with nn_init */
    for (uint32_t at = 0; at < NN_INPUT_BYTES; at += chunk) {
        const uint32_t left = NN_INPUT_BYTES - at;
        if (at == 0 && nn_init() != NN_OK) return 11;
        if (nn_feed(frame + at, left < chunk ? left : chunk) != NN_OK) return 12;
    }
    if (nn_invoke() != NN_OK || nn_init() != NN_OK) return 13;
    if (nn_take(&value, 1) != NN_INCOMPLETE) return 14;
#endif
    return 0;
}
