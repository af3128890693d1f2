#include <stdio.h>
#include "crc32.h"

int main(void) {
    static uint8_t content[8192];
    uint32_t said[3]; /* a sum, bytes, and where in a word they begin */
    while (fread(said, sizeof said, 1, stdin) == 1 &&
           fread(content + said[2], 1, said[1], stdin) == said[1]) {
        const uint32_t sum = crc32_bytes(said[0], content + said[2], said[1]);
        fwrite(&sum, sizeof sum, 1, stdout);
    }
    return 0;
}
