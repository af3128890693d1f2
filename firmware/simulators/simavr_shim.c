/* Runs an AVR firmware cycle by cycle and carries bytes between it and a pipe.
 *
 *     simavr_shim ELF PART HZ SEED LINE GUARD_FROM GUARD_TO STATICS_END INVOKE_FROM INVOKE_TO
 *         CARD READ_COMMAND READ_BLOCK WRITE_COMMAND WRITE_BLOCK [FUNCTION_FROM FUNCTION_TO ...]
 *
 * LINE is `paced` (each byte takes its 10 bit times) or `instant` (a byte is there whenever the
 * firmware looks; spares the waiting, which no figure counts). Stores by the running program into
 * [GUARD_FROM, GUARD_TO), unless parameters are being loaded, or between STATICS_END and the stack
 * are reported. [INVOKE_FROM, INVOKE_TO) is the code of nn_invoke: each time it is left for another
 * function, that is a step of the network.
 *
 * CARD is the content of an SD card on the chip's SPI, which stays as it is; empty: there is none. The next four are the
 * cycles that it takes for a command and for each block, besides what passes on the line at the rate that SPCR sets.
 *
 * On standard input come requests: uint32 count, then the bytes to put on the line. Each is run
 * until the firmware waits for a byte that does not come and has sent all it had to say; then
 * goes to standard output: struct record, what the firmware sent, and of each step of the last
 * nn_invoke uint32 cycles. Little-endian.
 *
 * A program of its own because it links libsimavr, which is GPL-3. For parts whose USART0 and
 * GPIOR0 are where the ATmega328P has them, and SPI with the card's select on PB2; the firmware must poll, not use
 * interrupts of USART or SPI. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simavr_spi.h"

#include <simavr/sim_avr.h>
#include <simavr/sim_core.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_interrupts.h>

enum { GPIOR0 = 0x3E, UCSR0A = 0xC0, UBRR0L = 0xC4, UBRR0H = 0xC5, UDR0 = 0xC6 };
enum { U2X0 = 1 << 1, UDRE0 = 1 << 5, RXC0 = 1 << 7 };
enum { WAIT = 0, FEED = 1, INVOKE = 2, HARNESS = 3, LOAD = 4, PHASES = 8 }; /* firmware/protocol/port.h */
enum { FIFO_BYTES = 2, REPLY_BYTES = 1 << 26, STEPS = 1 << 12, OUT_SPH = 0xBE0E, OUT_SPL = 0xBE0D };
enum { LIMIT_SECONDS = 60 }; /* of the chip's time without an answer */

struct record {
    uint32_t state;         /* 0 waiting for input, 1 silent for LIMIT_SECONDS, 2 crashed, 3 asleep */
    uint32_t reply_bytes;   /* that follow */
    uint32_t overruns;      /* bytes the line lost because the firmware was late */
    uint32_t stack_bytes;   /* end of SRAM to the lowest stack pointer since reset */
    uint32_t overlap_bytes; /* of that in the statics */
    uint32_t stray_stores;  /* into guarded memory, so far */
    uint32_t stray_address; /* of the first of them */
    uint32_t byte_cycles;   /* a byte takes on the line */
    uint32_t steps;         /* whose cycles follow the reply */
    uint32_t functions;     /* whose cycles follow those */
    uint64_t feed_cycles;
    uint64_t invoke_cycles;
    uint64_t latency_cycles; /* last fed byte read -> first answer byte written, without waiting */
};

static avr_t *avr;
static int paced, guard_from, guard_to, statics_end;
static unsigned lowest_sp;
static struct record record;

/* The line. Byte k of a request arrives at start + (k + 1) * byte_cycles(). */
static uint8_t *line;
static uint32_t line_bytes, line_next;
static avr_cycle_count_t line_start, sent_until;
static uint8_t fifo[FIFO_BYTES + 1]; /* and the shift register */
static int fifo_bytes;
static uint8_t reply[REPLY_BYTES];
static int idle;

/* What the processor has been doing. */
static uint8_t phase;
static avr_cycle_count_t phase_since, spent[PHASES], active_when_read, active_when_fed;
static int answered;

/* The steps of nn_invoke. */
static avr_flashaddr_t invoke_from, invoke_to;
static uint32_t step_cycles[STEPS];
static avr_cycle_count_t step_since;
static int in_step;

/* The functions that are counted: of each word of the program the number of its function, from 1 on.
 * What none of them is, such as the compiler's own, counts with the one that it was entered from. */
static uint16_t *owners;
static uint32_t *function_cycles;
static unsigned owner;

static avr_cycle_count_t byte_cycles(void) {
    uint32_t divisor = (avr->data[UBRR0L] | avr->data[UBRR0H] << 8) + 1u;
    return paced ? 10u * divisor * (avr->data[UCSR0A] & U2X0 ? 8 : 16) : 0;
}

static void arrivals(void) {
    avr_cycle_count_t each = byte_cycles();
    while (line_next < line_bytes && line_start + (line_next + 1) * each <= avr->cycle) {
        if (!paced && fifo_bytes) {
            return;
        }
        uint8_t byte = line[line_next++];
        /* ATmega328P data sheet, 19.7.4: with two bytes unread a third waits in the shift
         * register and is lost to the next start bit. */
        if (fifo_bytes == FIFO_BYTES && line_next < line_bytes) {
            record.overruns++;
        } else {
            fifo[fifo_bytes++] = byte;
        }
    }
}

static uint8_t read_status(struct avr_t *chip, avr_io_addr_t address, void *unused) {
    (void)unused;
    arrivals();
    int drained = sent_until <= chip->cycle;
    idle = phase == WAIT && fifo_bytes == 0 && line_next == line_bytes && drained;
    return (uint8_t)((chip->data[address] & U2X0) | (fifo_bytes ? RXC0 : 0) |
                     (sent_until <= chip->cycle + byte_cycles() ? UDRE0 : 0));
}

static uint8_t read_data(struct avr_t *chip, avr_io_addr_t address, void *unused) {
    (void)chip, (void)address, (void)unused;
    arrivals();
    uint8_t byte = fifo[0];
    if (fifo_bytes) {
        memmove(fifo, fifo + 1, (size_t)--fifo_bytes);
    }
    return byte;
}

static void write_data(struct avr_t *chip, avr_io_addr_t address, uint8_t byte, void *unused) {
    (void)address, (void)unused;
    if (!answered) {
        answered = 1;
        avr_cycle_count_t active = spent[FEED] + spent[INVOKE] + spent[HARNESS];
        record.latency_cycles = active + (chip->cycle - phase_since) - active_when_fed;
    }
    if (record.reply_bytes < REPLY_BYTES) {
        reply[record.reply_bytes++] = byte;
    }
    sent_until = (sent_until > chip->cycle ? sent_until : chip->cycle) + byte_cycles();
}

static void write_phase(struct avr_t *chip, avr_io_addr_t address, uint8_t value, void *unused) {
    (void)unused;
    chip->data[address] = value;
    spent[phase] += chip->cycle - phase_since;
    phase_since = chip->cycle;
    avr_cycle_count_t active = spent[FEED] + spent[INVOKE] + spent[HARNESS];
    if (phase == WAIT) {
        active_when_read = active;
    }
    phase = value % PHASES;
    if (phase == FEED) {
        active_when_fed = active_when_read;
    }
    if (phase == INVOKE) {
        record.steps = 0;
        in_step = -1; /* nn_invoke has not been entered */
    }
}

/* Where nn_invoke is left and entered again. The program's own code stays as it is: a call's cycles are
 * nn_invoke's, a return's are the step's. */
static void watch_steps(void) {
    int inside = avr->pc >= invoke_from && avr->pc < invoke_to;
    if (inside == (in_step == 0)) {
        return;
    }
    if (inside && in_step > 0) {
        step_cycles[record.steps++] = (uint32_t)(avr->cycle - step_since);
    }
    in_step = inside ? 0 : in_step == 0 && record.steps < STEPS ? 1 : -1;
    step_since = avr->cycle;
}

/* The address the instruction at pc stores to with ST, STD or STS; -1 for all others. PUSH and
 * CALL store at the stack pointer, which is watched itself. */
static int store_address(void) {
    const uint8_t *d = avr->data, *code = avr->flash + avr->pc;
    unsigned op = code[0] | code[1] << 8;
    int x = d[26] | d[27] << 8, y = d[28] | d[29] << 8, z = d[30] | d[31] << 8;
    if ((op & 0xD200) == 0x8200) {
        return (op & 8 ? y : z) + (int)((op & 7) | (op >> 7 & 0x18) | (op >> 8 & 0x20));
    }
    if ((op & 0xFE00) != 0x9200) {
        return -1;
    }
    switch (op & 0xF) {
    case 0x0: return code[2] | code[3] << 8;
    case 0x1: return z;
    case 0x2: return z - 1;
    case 0x9: return y;
    case 0xA: return y - 1;
    case 0xC: case 0xD: return x;
    case 0xE: return x - 1;
    default: return -1;
    }
}

static void guard(void) {
    int address = store_address();
    int sp = avr->data[R_SPL] | avr->data[R_SPH] << 8;
    int guarded = address >= guard_from && address < guard_to && phase != LOAD;
    if (guarded || (address >= statics_end && address <= sp)) {
        if (record.stray_stores++ == 0) {
            record.stray_address = (uint32_t)address;
        }
    }
}

/* Until the firmware is idle. The stack pointer is looked at after every instruction except
 * between its two halves being written (avr-gcc writes SPH, SREG, SPL). */
static void run(int guarded) {
    const uint8_t *d = avr->data;
    avr_cycle_count_t limit = avr->cycle + (avr_cycle_count_t)LIMIT_SECONDS * avr->frequency +
                              line_bytes * byte_cycles();
    int half = 0;
    idle = 0;
    while (!idle) {
        avr_cycle_timer_slot_p timer = avr->cycle_timers.timer;
        avr_cycle_count_t due = timer ? timer->when : avr->cycle + 100000;
        do {
            if (guarded) {
                guard();
            }
            avr_flashaddr_t pc = avr->pc;
            avr_cycle_count_t before = avr->cycle;
            avr->pc = avr_run_one(avr);
            if (phase == INVOKE) {
                watch_steps();
            }
            if (record.functions && (phase == INVOKE || phase == FEED)) {
                owner = owners[pc >> 1] ? owners[pc >> 1] : owner;
                function_cycles[owner] += (uint32_t)(avr->cycle - before);
            }
            unsigned op = (avr->flash[pc] | avr->flash[pc + 1] << 8) & 0xFE0F;
            half = op == OUT_SPH || (half && op != OUT_SPL);
            unsigned sp = d[R_SPL] | d[R_SPH] << 8;
            if (sp < lowest_sp && !half) {
                lowest_sp = sp;
            }
        } while (avr->cycle < due && !idle && avr->state == cpu_Running);
        avr_cycle_timer_process(avr);
        record.state = avr->cycle > limit ? 1 : avr->state == cpu_Crashed ? 2 : 0;
        if (avr->state == cpu_Sleeping) {
            record.state = 3;
        }
        if (record.state) {
            return;
        }
    }
}

static void hook(avr_io_addr_t address, avr_io_read_t read, avr_io_write_t write) {
    if (read) {
        avr->io[AVR_DATA_TO_IO(address)].r.c = read;
    }
    if (write) {
        avr->io[AVR_DATA_TO_IO(address)].w.c = write;
    }
}

static void power_on(uint32_t seed) {
    for (int address = 0; address <= avr->ramend; address++) {
        seed = seed * 1664525u + 1013904223u;
        if (address < 32 || address > avr->ioend) {
            avr->data[address] = (uint8_t)(seed >> 24);
        }
    }
}

static void load(char **argv) {
    elf_firmware_t firmware;
    memset(&firmware, 0, sizeof firmware);
    if (elf_read_firmware(argv[1], &firmware) || !(avr = avr_make_mcu_by_name(argv[2]))) {
        fprintf(stderr, "cannot load %s for %s\n", argv[1], argv[2]);
        exit(1);
    }
    snprintf(firmware.mmcu, sizeof firmware.mmcu, "%s", argv[2]);
    firmware.frequency = (uint32_t)atol(argv[3]);
    avr_init(avr);
    avr_load_firmware(avr, &firmware);
    avr->log = LOG_ERROR;
    power_on((uint32_t)atol(argv[4]));
    hook(UCSR0A, read_status, NULL);
    hook(UDR0, read_data, write_data);
    hook(GPIOR0, NULL, write_phase);
    spi_connect(avr);
    paced = !strcmp(argv[5], "paced");
    guard_from = atoi(argv[6]);
    guard_to = atoi(argv[7]);
    statics_end = atoi(argv[8]);
    invoke_from = (avr_flashaddr_t)atoi(argv[9]);
    invoke_to = (avr_flashaddr_t)atoi(argv[10]);
}

/* Begin and end of each function, two arguments each. */
static void count_functions(int count, char **argv) {
    owners = calloc(avr->flashend / 2 + 1, sizeof *owners);
    function_cycles = calloc((unsigned)count + 1, sizeof *function_cycles);
    for (int n = 0; n < count; n++) {
        for (int pc = atoi(argv[2 * n]); pc < atoi(argv[2 * n + 1]); pc += 2) {
            owners[pc / 2] = (uint16_t)(n + 1);
        }
    }
    record.functions = (uint32_t)count;
}

static int tell(FILE *out) {
    record.stack_bytes = avr->ramend - lowest_sp;
    record.overlap_bytes = lowest_sp + 1 < (unsigned)statics_end ? statics_end - lowest_sp - 1 : 0;
    record.byte_cycles = (uint32_t)byte_cycles();
    record.feed_cycles = spent[FEED];
    record.invoke_cycles = spent[INVOKE];
    fwrite(&record, sizeof record, 1, out);
    fwrite(reply, 1, record.reply_bytes, out);
    fwrite(step_cycles, sizeof *step_cycles, record.steps, out);
    fwrite(function_cycles + 1, sizeof *function_cycles, record.functions, out);
    return fflush(out) == 0;
}

int main(int argc, char **argv) {
    if (argc < 16) {
        fprintf(stderr, "usage: simavr_shim ELF PART HZ SEED LINE GUARD_FROM GUARD_TO STATICS_END INVOKE_FROM INVOKE_TO "
                        "CARD READ_COMMAND READ_BLOCK WRITE_COMMAND WRITE_BLOCK [FUNCTION_FROM FUNCTION_TO ...]\n");
        return 2;
    }
    if (argv[11][0]) {
        spi_insert_card(argv + 11);
    }
    FILE *out = fdopen(dup(STDOUT_FILENO), "wb"); /* simavr prints to standard output */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    load(argv);
    count_functions((argc - 16) / 2, argv + 16);
    lowest_sp = avr->ramend;
    run(0); /* until the firmware is up: no byte is lost to a receiver not yet switched on */
    while (record.state == 0 && fread(&line_bytes, sizeof line_bytes, 1, stdin) == 1) {
        line = realloc(line, line_bytes + 1u);
        if (!line || fread(line, 1, line_bytes, stdin) != line_bytes) {
            return 1;
        }
        line_next = 0;
        line_start = avr->cycle;
        record.reply_bytes = record.overruns = record.steps = 0;
        record.latency_cycles = 0;
        memset(spent, 0, sizeof spent);
        memset(function_cycles, 0, (record.functions + 1) * sizeof *function_cycles);
        owner = 0;
        phase_since = avr->cycle;
        active_when_read = active_when_fed = 0;
        answered = 0;
        run(1);
        if (!tell(out)) {
            return 1;
        }
    }
    return record.state && !tell(out);
}
