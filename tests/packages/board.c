/* board ELF PIECE IMAGE LINES: an Arduino Uno with simavr's own serial line. A piece of standard input is sent whenever a
 * dot comes, fewer bytes at the end of each IMAGE; what comes goes to standard output, until it has had LINES lines, and pins' changes of the LED as `L`.
 * The last line is the lowest stack pointer. Ends after 60 s of the board's time with 3, after a crash with 4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_ioport.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>

static avr_irq_t *to_board;
static int piece, image, asked, lines, due, ready = 1;

static void sent(struct avr_irq_t *irq, uint32_t value, void *unused) {
    (void)irq, (void)unused;
    putchar((int)value);
    if (value == '.') {
        const int left = image - asked, now = left < piece ? left : piece;
        due += now;
        asked = now == left ? 0 : asked + now;
    }
    lines -= value == '\n';
}

static void led(struct avr_irq_t *irq, uint32_t value, void *unused) {
    (void)irq, (void)unused;
    if (value) {
        putchar('L');
        lines--;
    }
}

static void may_send(struct avr_irq_t *irq, uint32_t value, void *unused) {
    (void)irq, (void)value, (void)unused;
    ready = 1;
}

static void must_wait(struct avr_irq_t *irq, uint32_t value, void *unused) {
    (void)irq, (void)value, (void)unused;
    ready = 0;
}

int main(int argc, char **argv) {
    elf_firmware_t firmware;
    memset(&firmware, 0, sizeof firmware);
    if (argc != 5 || elf_read_firmware(argv[1], &firmware)) {
        return 2;
    }
    piece = atoi(argv[2]);
    image = atoi(argv[3]);
    lines = atoi(argv[4]);
    avr_t *avr = avr_make_mcu_by_name("atmega328p");
    avr_init(avr);
    avr->log = LOG_NONE;
    avr_load_firmware(avr, &firmware);
    avr->frequency = 16000000;
    uint32_t flags = 0;
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), sent, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XON), may_send, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XOFF), must_wait, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('B'), 5), led, NULL);
    to_board = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT);
    unsigned lowest = avr->ramend;
    int started = 0;
    while (lines > 0) {
        const int state = avr_run(avr);
        if (state == cpu_Done || state == cpu_Crashed) {
            return 4;
        }
        if (avr->cycle > 60ull * avr->frequency) {
            return 3;
        }
        const unsigned sp = avr->data[R_SPL] | avr->data[R_SPH] << 8;
        started |= sp == avr->ramend; /* the core's first instructions set it */
        lowest = started && sp < lowest ? sp : lowest;
        if (due > 0 && ready) {
            const int byte = getchar();
            due = byte == EOF ? 0 : due - 1;
            if (byte != EOF) {
                avr_raise_irq(to_board, (uint32_t)byte);
            }
        }
    }
    printf("%u\n", lowest);
    return 0;
}
