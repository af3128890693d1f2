#include "storage.h"
static uint8_t nn_memory[1024];
#ifdef __AVR__
/* In 64 cycles; 0 where it failed. */
static uint16_t timed(storage_direction_t direction, uint16_t bytes) {
    TCNT1 = 0;
    storage_status_t status = storage_start(direction, 1024, nn_memory, bytes);
    while (status == STORAGE_BUSY) {
        status = storage_poll();
    }
    return status == STORAGE_OK ? TCNT1 : 0;
}
#endif
