/* NXP's LPUART: i.MX RT. */
#define UART_RATE PORT_REGISTER(PORT_UART + 0x10)
#define UART_STATUS PORT_REGISTER(PORT_UART + 0x14)
#define UART_CONTROL PORT_REGISTER(PORT_UART + 0x18)
#define UART_DATA PORT_REGISTER(PORT_UART + 0x1C)
#define UART_OVERRUN (1u << 19)

static inline void uart_open(void) {
    UART_RATE = 15u << 24 | PORT_UART_DIVISOR; /* 16 samples a bit */
    UART_CONTROL = 1u << 19 | 1u << 18; /* transmitter, receiver */
}

/* After an overrun the frame is lost, which its check will say. */
static inline uint32_t uart_received(void) {
    if (UART_STATUS & UART_OVERRUN) {
        UART_STATUS |= UART_OVERRUN;
    }
    return UART_STATUS & 1u << 21;
}
static inline uint8_t uart_take(void) { return (uint8_t)UART_DATA; }
static inline uint32_t uart_free(void) { return UART_STATUS & 1u << 23; }
static inline void uart_put(uint8_t byte) { UART_DATA = byte; }
