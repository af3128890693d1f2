#include "nn_cells.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint8_t nn_arena[%(bytes)d];
%(permutes)s
int main(int argc, char **argv) {
    const int bytes = atoi(argv[2]) + 0 * argc;
    if (fread(nn_arena, 1, bytes, stdin) != (size_t)bytes) return 2;
    switch (atoi(argv[1])) {%(cases)s}
    return fwrite(nn_arena, 1, bytes, stdout) != (size_t)bytes;
}
