/* ST's newer USART: STM32F0, F3, F7, G0, G4, H7, L4, L5, U5. */
#define UART_CONTROL PORT_REGISTER(PORT_UART)
#define UART_DIVISOR PORT_REGISTER(PORT_UART + 0x0C)
#define UART_STATUS PORT_REGISTER(PORT_UART + 0x1C)
#define UART_CLEAR PORT_REGISTER(PORT_UART + 0x20)
#define UART_RECEIVE PORT_REGISTER(PORT_UART + 0x24)
#define UART_SEND PORT_REGISTER(PORT_UART + 0x28)
#define UART_OVERRUN (1u << 3)

static inline void uart_open(void) {
    UART_DIVISOR = PORT_UART_DIVISOR;
    UART_CONTROL = 1u << 3 | 1u << 2 | 1u << 0; /* transmitter, receiver, on */
}

/* After an overrun the frame is lost, which its check will say. */
static inline uint32_t uart_received(void) {
    UART_CLEAR = UART_OVERRUN;
    return UART_STATUS & 1u << 5;
}
static inline uint8_t uart_take(void) { return (uint8_t)UART_RECEIVE; }
static inline uint32_t uart_free(void) { return UART_STATUS & 1u << 7; }
static inline void uart_put(uint8_t byte) { UART_SEND = byte; }
