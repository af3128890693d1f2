#include "model.h"
#include <stdio.h>
#include <stdlib.h>
/* sounds on stdin, heard in pieces of argv[1] bytes; outputs on stdout */
int main(int argc, char **argv) {
    static uint8_t sound[NN_SOUND_BYTES];
    const uint32_t piece = argc > 1 ? (uint32_t)atoi(argv[1]) : sizeof sound;
    if (nn_init() != NN_OK) return 2;
    while (fread(sound, 1, sizeof sound, stdin) == sizeof sound) {
        for (uint32_t at = 0; at < sizeof sound; at += piece) {
            const uint32_t left = sizeof sound - at;
            if (nn_listen(sound + at, left < piece ? left : piece) != NN_OK) return 4;
        }
        if (nn_listen(sound, 1) != NN_CORRUPT) return 5;
        if (nn_invoke() != NN_OK) return 6;
        fwrite(nn_output(), sizeof(nn_output_t), NN_OUTPUT_COUNT, stdout);
    }
    return 0;
}
