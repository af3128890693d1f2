/* What the application of package=cmake uses of the Pico SDK beside the C library. */
#include <stdbool.h>
#include <stdint.h>
bool stdio_init_all(void);
