/* Nordic's UART, nRF51 and nRF52, without the DMA that the newer ones have beside it. Its pins are registers of
 * its own (PSELTXD, PSELRXD at 0x50C, 0x514: in the board's YAML). */
#define UART_TASK_RECEIVE PORT_REGISTER(PORT_UART)
#define UART_TASK_SEND PORT_REGISTER(PORT_UART + 0x008)
#define UART_RECEIVED PORT_REGISTER(PORT_UART + 0x108)
#define UART_SENT PORT_REGISTER(PORT_UART + 0x11C)
#define UART_ENABLE PORT_REGISTER(PORT_UART + 0x500)
#define UART_RECEIVE PORT_REGISTER(PORT_UART + 0x518)
#define UART_SEND PORT_REGISTER(PORT_UART + 0x51C)
#define UART_RATE PORT_REGISTER(PORT_UART + 0x524)

static uint8_t uart_busy;

static inline void uart_open(void) {
    UART_RATE = PORT_UART_DIVISOR << 12; /* in 2^-32 of 16 MHz */
    UART_ENABLE = 4;
    UART_TASK_RECEIVE = UART_TASK_SEND = 1;
    uart_busy = 0;
}

static inline uint32_t uart_received(void) { return UART_RECEIVED; }

static inline uint8_t uart_take(void) {
    UART_RECEIVED = 0; /* before the byte is read: the next one may be there at once */
    return (uint8_t)UART_RECEIVE;
}

static inline uint32_t uart_free(void) { return !uart_busy || UART_SENT; }

static inline void uart_put(uint8_t byte) {
    UART_SENT = 0;
    uart_busy = 1;
    UART_SEND = byte;
}
