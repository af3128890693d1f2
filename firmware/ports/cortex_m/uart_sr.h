/* ST's older USART: STM32F1, F2, F4, L1. */
#define UART_STATUS PORT_REGISTER(PORT_UART)
#define UART_DATA PORT_REGISTER(PORT_UART + 0x04)
#define UART_DIVISOR PORT_REGISTER(PORT_UART + 0x08)
#define UART_CONTROL PORT_REGISTER(PORT_UART + 0x0C)

static inline void uart_open(void) {
    UART_DIVISOR = PORT_UART_DIVISOR;
    UART_CONTROL = 1u << 13 | 1u << 3 | 1u << 2; /* on, transmitter, receiver */
}

/* Reading status and data clears an overrun; the frame is lost, which its check will say. */
static inline uint32_t uart_received(void) { return UART_STATUS & 1u << 5; }
static inline uint8_t uart_take(void) { return (uint8_t)UART_DATA; }
static inline uint32_t uart_free(void) { return UART_STATUS & 1u << 7; }
static inline void uart_put(uint8_t byte) { UART_DATA = byte; }
