/* Microchip's SERCOM as an asynchronous line: SAMD21. The YAML's base has the pads in the low bits that an address
 * of a SERCOM leaves free: bit 0 for TXPO 1, bits 4 and 5 for RXPO. The core has no reference clock. */
#define SERCOM (PORT_UART & ~0x3FFu)
#define SERCOM_NUMBER ((SERCOM - 0x42000800u) / 0x400u)
#define SERCOM_16(offset) (*(volatile uint16_t *)(SERCOM + (offset)))
#define UART_CONTROL PORT_REGISTER(SERCOM)
#define UART_CONTROL_B PORT_REGISTER(SERCOM + 0x04)
#define UART_RATE SERCOM_16(0x0C)
#define UART_FLAGS (*(volatile uint8_t *)(SERCOM + 0x18))
#define UART_SYNC PORT_REGISTER(SERCOM + 0x1C)
#define UART_DATA SERCOM_16(0x28)
#define POWER_APBC PORT_REGISTER(0x40000420)
#define CLOCK_CONTROL (*(volatile uint16_t *)0x40000C02)
#define TICK_CYCLES 1

static inline void uart_sync(void) {
    while (UART_SYNC) {
    }
}

static inline void uart_open(void) {
    POWER_APBC |= 1u << (2 + SERCOM_NUMBER);
    CLOCK_CONTROL = (uint16_t)(1u << 14 | (0x14 + SERCOM_NUMBER)); /* generator 0: the core's */
    UART_CONTROL_B = 1u << 17 | 1u << 16; /* receiver, transmitter, 8 bits */
    uart_sync();
    UART_RATE = (uint16_t)(65536u - PORT_UART_DIVISOR);
    /* low bits first, pads, inner clock, on */
    UART_CONTROL = 1u << 30 | (PORT_UART & 0x30u) << 16 | (PORT_UART & 1u) << 16 | 1u << 2 | 1u << 1;
    uart_sync();
}

static inline uint32_t uart_received(void) { return UART_FLAGS & 1u << 2; }
static inline uint8_t uart_take(void) { return (uint8_t)UART_DATA; }
static inline uint32_t uart_free(void) { return UART_FLAGS & 1u << 0; }
static inline void uart_put(uint8_t byte) { UART_DATA = byte; }
