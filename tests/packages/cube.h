#include <stdint.h>
enum { HAL_OK, HAL_MAX_DELAY };
static int huart2;
static int HAL_UART_Receive(int *line, uint8_t *bytes, unsigned count, int wait) {
    return line && bytes && count && wait ? HAL_OK : 1;
}
static void HAL_UART_Transmit(int *line, uint8_t *bytes, unsigned count, int wait) {
    (void)line, (void)bytes, (void)count, (void)wait;
}
