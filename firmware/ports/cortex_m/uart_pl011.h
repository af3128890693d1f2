/* Arm's PL011 (DDI 0183): RP2040, RP2350. Its divisor is in 64ths. The core has no reference clock. */
#define UART_DATA PORT_REGISTER(PORT_UART)
#define UART_FLAGS PORT_REGISTER(PORT_UART + 0x18)
#define UART_DIVISOR PORT_REGISTER(PORT_UART + 0x24)
#define UART_64THS PORT_REGISTER(PORT_UART + 0x28)
#define UART_LINE PORT_REGISTER(PORT_UART + 0x2C)
#define UART_CONTROL PORT_REGISTER(PORT_UART + 0x30)
#define TICK_CYCLES 1

static inline void uart_open(void) {
    UART_DIVISOR = PORT_UART_DIVISOR / 64;
    UART_64THS = PORT_UART_DIVISOR % 64;
    UART_LINE = 3u << 5 | 1u << 4; /* 8 bits, queues; a write here takes the divisor over */
    UART_CONTROL = 1u << 9 | 1u << 8 | 1u << 0; /* receiver, transmitter, on */
}

static inline uint32_t uart_received(void) { return ~UART_FLAGS & 1u << 4; }
static inline uint8_t uart_take(void) { return (uint8_t)UART_DATA; }
static inline uint32_t uart_free(void) { return ~UART_FLAGS & 1u << 5; }
static inline void uart_put(uint8_t byte) { UART_DATA = byte; }
